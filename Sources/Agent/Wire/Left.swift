// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneVarlink

/// What a client left when it parked, and in which words, for the next process of the agent.
struct Left<Value> {
    /// What it means.
    let value: Value
    /// As the client gave it: in JSON, for memory alone.
    let given: [UInt8]
}

/// An opening exchange that a client left.
typealias LeftOpening = Left<Opening>
/// The messages that are to be answered for a client that sleeps.
typealias LeftAnswers = Left<AnsweredMessages>

extension Left<Opening> {
    /// What a client leaves. Validated.
    init(_ steps: [ConnectionsAPI.OpeningStep]) throws(VarlinkFailure) {
        let check = OpeningCheck(steps)
        guard let opening = check.opening else { throw VarlinkFailure(check.problems) }
        (value, given) = (opening, steps.json)
    }

    /// What a client left to an earlier process; `nil` for what this one cannot play.
    init?(given: [UInt8]) {
        guard let steps = [ConnectionsAPI.OpeningStep](json: given), let left = try? Self(steps) else { return nil }
        self = left
    }
}

extension Left<AnsweredMessages> {
    /// What a client leaves. Validated.
    init(_ messages: [ConnectionsAPI.AnsweredMessage]) throws(VarlinkFailure) {
        let check = AnswersCheck(messages)
        guard let answers = check.answers else { throw VarlinkFailure(check.problems, in: "") }
        (value, given) = (answers, messages.json)
    }

    /// What a client left to an earlier process; `nil` for what this one cannot answer.
    init?(given: [UInt8]) {
        guard let messages = [ConnectionsAPI.AnsweredMessage](json: given), let left = try? Self(messages) else {
            return nil
        }
        self = left
    }
}
