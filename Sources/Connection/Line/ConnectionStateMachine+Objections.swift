// SPDX-License-Identifier: Apache-2.0

// What its driver cannot have heard: to be told so is a fault of the agent's, and of nobody on the network.

extension ConnectionStateMachine {
    /// Why an input cannot be; `nil` for one that may come. A word that comes late may: it is of what was, and not of
    /// what never was. Of the input it says the name alone: some have passwords.
    func objection(to input: ConnectionInput) -> String? {
        if case .closed = state { return nil }
        let why: String? =
            switch input.subject {
            case .beginning: hasBegun ? "it has begun already" : nil
            case .early: nil
            case _ where !hasBegun: "it has not begun"
            case .flow(let epoch): epoch > numbers.epoch ? "flow \(epoch), after \(numbers.epoch)" : nil
            case .query(let query): query > numbers.query ? "query \(query), after \(numbers.query)" : nil
            case .connection: nil
            }
        return why.map { "\(Mirror(reflecting: input).children.first?.label ?? "\(input)"): \($0)" }
    }
}

extension ConnectionInput {
    /// What an input is of.
    enum Subject {
        /// What is told first, and once.
        case beginning
        /// What may be told before.
        case early
        case connection
        case flow(UInt64)
        case query(UInt64)
    }

    var subject: Subject {
        switch self {
        case .opened, .adopted, .reopened: .beginning
        case .answersLeft: .early
        case .resolved(let query, _), .resolutionFailed(let query, _): .query(query)
        case .flowPathChanged(let epoch, _), .handshakeBegan(let epoch, _), .dialSucceeded(let epoch, _, _, _),
            .certificateEnds(let epoch), .dialFailed(let epoch, _), .remoteClosed(let epoch), .flowFailed(let epoch, _),
            .probeSent(let epoch), .answered(let epoch, _), .answerHidden(let epoch), .undelivered(let epoch),
            .acknowledged(let epoch, _), .arrived(let epoch), .taken(let epoch, _), .parked(let epoch, _),
            .returned(let epoch), .abandoned(let epoch, _, _), .openingAnswered(let epoch, _, _),
            .sessionOpened(let epoch), .openingFailed(let epoch, _):
            .flow(epoch)
        case .pathChanged, .detourFound, .openingLeft, .resumed, .serverAsked, .localAddressRemoved, .timerFired,
            .redialRequested, .policyChanged, .closeRequested:
            .connection
        }
    }
}
