// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath
public import Platform

/// A name that is being resolved. Dropping the last reference does not end it; ``cancel()`` does.
@AgentQueue
public final class Query {
    typealias Answer = Result<Resolution, ResolutionError>

    /// How the answers for the families reach the one who asked.
    enum Delivery {
        /// Each as it comes.
        case each(@AgentQueue (IPAddress.Family, Answer) -> Void)
        /// Once, merged.
        case together(@AgentQueue (Answer) -> Void)
    }

    /// One family of the name, as c-ares is asked for it. It keeps its query until it is answered.
    @AgentQueue
    final class Question {
        nonisolated let family: IPAddress.Family
        nonisolated let query: Query
        /// What the channel had heard when it was asked.
        var hearingBefore = Channel.Hearing()

        fileprivate init(_ family: IPAddress.Family, _ query: Query) {
            self.family = family
            self.query = query
        }
    }

    let name: String
    let resolver: Resolver
    private(set) var unanswered: [Question] = []
    private let families: [IPAddress.Family]
    private var delivery: Delivery?
    private var answers: [IPAddress.Family: Answer] = [:]
    private var limit: Timers.Timer?
    private var patience: Timers.Timer?

    init(_ name: String, _ families: [IPAddress.Family], of resolver: Resolver, _ delivery: Delivery) {
        precondition(!families.isEmpty, "a query asks for one family at least")
        self.name = name
        self.resolver = resolver
        self.families = families
        self.delivery = delivery
        unanswered = families.map { Question($0, self) }
        limit = Timers.shared.schedule(after: Resolver.answerLimit) { [self] in
            for question in unanswered {
                resolver.limitReached(question)
            }
        }
    }

    /// Ends the query. No call of its handler follows.
    public func cancel() {
        delivery = nil
        limit?.cancel()
        patience?.cancel()
        let questions = unanswered
        unanswered = []
        for question in questions { resolver.forget(question) }
    }

    /// Hands the answer to one question on, unless it was answered before or cancelled.
    func answer(_ question: Question, _ answer: Answer) {
        guard let position = unanswered.firstIndex(where: { $0 === question }), let delivery else { return }
        unanswered.remove(at: position)
        resolver.forget(question)
        switch delivery {
        case .each(let handler):
            if unanswered.isEmpty { cancel() }
            handler(question.family, answer)
        case .together:
            answers[question.family] = answer
            if unanswered.isEmpty {
                finish()
            } else if case .success = answer, patience == nil {
                patience = Timers.shared.schedule(after: Resolver.otherFamilyPatience) { self.finish() }
            }
        }
    }

    /// Answers with what there is.
    private func finish() {
        guard case .together(let handler) = delivery else { return }
        cancel()
        handler(.merging(families.compactMap { answers[$0] }))
    }
}
