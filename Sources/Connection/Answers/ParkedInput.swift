// SPDX-License-Identifier: Apache-2.0

/// The unread bytes of a flow that the agent has: which are the answer to a keepalive, which a message that the agent
/// answers, and which the client's. It reads nothing itself.
package struct ParkedInput: Sendable {
    /// What to do about the first unread bytes.
    package enum Step: Hashable, Sendable {
        /// They are so many bytes that answer so many keepalives: read exactly these.
        case answer(length: Int, answers: Int)
        /// They are a message of so many bytes with this reply, which may be none: write the reply whole, read exactly
        /// these bytes, and say ``ParkedInput/answered(at:)``.
        case reply(length: Int, [UInt8])
        /// Wait for more, where a time is given no longer than until that.
        case wait(until: Duration?)
        /// They are the client's, and so is all that follows. Read nothing.
        case forClient
    }

    /// The keepalives that are sent on the flow; `nil` where none are.
    package var keepalive: KeepaliveDialogue?
    /// The messages that are answered on it; `nil` for none.
    package var questions: ServerQuestions?

    /// Nothing is looked for.
    package init() {}

    /// Whether any byte would be looked at.
    package var isLooked: Bool { keepalive?.isAwaitingAnswer == true || questions?.areOver == false }

    /// Judges the unread bytes, all of them from the first on, at least one.
    package mutating func next(
        _ unread: [UInt8], at now: Duration, using random: inout some RandomNumberGenerator
    ) -> Step {
        // First: an answer that was asked for is no question, even if it looks like one.
        let answer = keepalive?.peeked(unread) ?? .forClient
        if case .answer(let length, let answers) = answer { return .answer(length: length, answers: answers) }
        let before = questions
        let judgement = questions?.peeked(unread[...], at: now) ?? .forClient
        if case .message(let length, let reply) = judgement {
            return .reply(length: length, reply.bytes(using: &random))
        }
        if answer == .undecided {
            // As long as the answer may take, which is judged elsewhere, nothing is the client's for that.
            questions = before
            return .wait(until: nil)
        }
        if case .undecided(let end) = judgement { return .wait(until: end) }
        return .forClient
    }

    /// The reply was written, and what it answers was read.
    package mutating func answered(at now: Duration) { questions?.answered(at: now) }

    /// There is no room for the reply yet.
    ///
    /// - Returns: until when to try; `nil` where the message is the client's by now.
    package mutating func lacksRoom(at now: Duration) -> Duration? { questions?.waits(at: now) }
}
