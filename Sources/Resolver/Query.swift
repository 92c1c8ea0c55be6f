// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// A name that is being asked about. Dropping the last reference does not end it; ``cancel()`` does.
@AgentQueue
package final class Query {
    typealias Answer = Result<RecordSet, ResolutionError>

    /// How the answers for the types reach the one who asked.
    enum Delivery {
        /// Each as it comes.
        case each(@AgentQueue (RecordType, Answer) -> Void)
        /// Once, merged.
        case together(@AgentQueue (Answer) -> Void)
    }

    /// One type of the name's records, as c-ares is asked for it. It keeps its query until it is answered.
    @AgentQueue
    final class Question {
        nonisolated let type: RecordType
        nonisolated let query: Query
        /// What the channel had heard when it was asked.
        var hearingBefore = Channel.Hearing()

        fileprivate init(_ type: RecordType, _ query: Query) {
            self.type = type
            self.query = query
        }
    }

    let name: String
    let resolver: Resolver
    private(set) var unanswered: [Question] = []
    private let types: [RecordType]
    private var delivery: Delivery?
    private var answers: [RecordType: Answer] = [:]
    private var limit: Timers.Timer?
    private var patience: Timers.Timer?

    init(_ name: String, _ types: [RecordType], of resolver: Resolver, _ delivery: Delivery) {
        // The types are named in the calls of the resolver, and none is left out.
        precondition(!types.isEmpty, "a query asks for one type at least")
        self.name = name
        self.resolver = resolver
        self.types = types
        self.delivery = delivery
        unanswered = types.map { Question($0, self) }
        limit = Timers.shared.schedule(after: Resolver.answerLimit) { [self] in
            for question in unanswered {
                resolver.limitReached(question)
            }
        }
    }

    /// Whether it asks for addresses, which are found elsewhere than in DNS, too, and under names with search domains.
    var isForAddresses: Bool { types.allSatisfy { $0.family != nil } }

    /// Ends the query. No call of its handler follows.
    package func cancel() {
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
            handler(question.type, answer)
        case .together:
            answers[question.type] = answer
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
        handler(.merging(types.compactMap { answers[$0] }))
    }
}
