// SPDX-License-Identifier: Apache-2.0

@testable import Supervisor

/// What is known of whether the other end of the flow that stands is there.
struct FlowLife {
    var figures = KeepaliveProtocol.kernel.figures
    var hasAnswered = false
    /// When the keepalives under way were sent.
    var probes: [Duration] = []
    /// Since when a proof is owed.
    var event: Duration?
    var lastProof: Duration?

    mutating func begin(_ policy: ConnectionPolicy, _ now: Duration) {
        figures = (policy.heartbeat?.kind ?? .kernel).figures
        (probes, event, lastProof) = ([], nil, now)
    }

    mutating func end() { (probes, event, lastProof) = ([], nil, nil) }

    mutating func adopt(_ figures: KeepaliveFigures) {
        self.figures = figures
        probes = []
        hasAnswered = false
    }

    mutating func sent(_ now: Duration) { probes = (probes + [now]).suffix(2) }

    mutating func answered(_ count: Int, _ now: Duration) {
        guard let begun = probes.prefix(count).last else { return }
        probes.removeFirst(min(count, probes.count))
        hasAnswered = true
        proved(begun, now)
    }

    mutating func proved(_ begun: Duration, _ now: Duration) {
        guard begun <= now, begun >= event ?? begun else { return }
        event = nil
        lastProof = now
    }

    var deadline: Duration? {
        [probes.first.map { $0 + figures.answerDeadline }, event.map { $0 + .seconds(3) }].compactMap(\.self).min()
    }

    func isLost(at now: Duration) -> Bool {
        if let event, now >= event + .seconds(3) { return true }
        guard let first = probes.first, now >= first + figures.answerDeadline else { return false }
        return hasAnswered || figures.isAnswerMandatory
    }
}
