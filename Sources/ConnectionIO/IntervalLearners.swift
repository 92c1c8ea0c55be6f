// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
package import DialtonePlatform

/// What keepalives have taught, by user: one user's server cannot shorten another's intervals. A connection of the
/// configuration learns with those of its owner.
@AgentQueue
package final class IntervalLearners {
    /// The one who learned last comes first; ``AdaptiveInterval/mostUsers`` at most.
    private var learners: [(user: UInt32, learner: IntervalLearner)] = []

    /// Called when something was learned that is worth keeping. It says nothing of how often.
    package var onLesson: (@AgentQueue () -> Void)?

    /// Learners that know what stands in ``text`` of earlier ones.
    package init(text: String = "") {
        for known in AdaptiveInterval.users(in: text) { add(IntervalLearner(known.learned), of: known.user) }
    }

    /// All that was learned, to be kept (``AdaptiveInterval/text(of:)``).
    package var text: String {
        AdaptiveInterval.text(of: learners.map { .init(user: $0.user, $0.learner.learned) })
    }

    /// What the connections of `user` learn with.
    func learner(of user: UInt32) -> IntervalLearner {
        if let known = learners.first(where: { $0.user == user }) { return known.learner }
        let learner = IntervalLearner()
        add(learner, of: user)
        return learner
    }

    private func add(_ learner: IntervalLearner, of user: UInt32) {
        learner.onLesson = { [weak self, unowned learner] in self?.learned(learner, user) }
        learners.append((user, learner))
        forgetTheLast()
    }

    private func learned(_ learner: IntervalLearner, _ user: UInt32) {
        learners.removeAll { $0.learner === learner }
        learners.insert((user, learner), at: 0)
        forgetTheLast()
        onLesson?()
    }

    /// Keepalive senders hold the one that they use: where it is forgotten here, it is back with its next lesson.
    private func forgetTheLast() {
        guard learners.count > AdaptiveInterval.mostUsers else { return }
        learners.removeLast()
    }
}
