// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

// What is known of the messages that are answered for a client that sleeps, and what is checked of them.

extension Checker {
    struct Answers {
        /// What a client left in place of the policy's.
        var left: AnsweredMessages?
        /// How many stanzas the client of the flow that stands has handled, where that was said.
        var handled: UInt32?
        /// What the driver was told last of each flow.
        var told: [UInt64: AnsweredMessages] = [:]
    }

    /// Takes note of what an input says of them, once its answer was looked at.
    func noteAnswers(_ input: ConnectionInput, _ before: Knowledge) {
        let wasStanding = before.standing == known.standing
        if !wasStanding { known.answers.handled = nil }
        let isHeld = before.ownership.holder == .client
        switch input {
        case .answersLeft(let answers): known.answers.left = answers
        case .policyChanged(let policy):
            if policy.answers != before.policy.answers || Self.isElsewhere(policy, before.policy) {
                known.answers.left = nil
            }
        case .adopted(let adoption): known.answers.handled = adoption.handled
        case .parked(let epoch, let handled) where epoch == before.standing && isHeld: known.answers.handled = handled
        case .abandoned(let epoch, let isUntouched, let isAlone) where epoch == before.standing && isHeld:
            if !(isUntouched && isAlone) { known.answers.handled = nil }
        case .sessionOpened(let epoch) where epoch == before.play?.epoch:
            let resumes = before.play?.opening.steps.contains {
                String(decoding: $0.send, as: UTF8.self).contains("<resume")
            }
            known.answers.handled = resumes == true ? (known.answers.left ?? known.policy.answers).handled : 0
        default: break
        }
    }

    /// Whether the driver answers what it should on the flow that stands: where it is parked, and nothing elsewhere.
    func checkAnswers() throws {
        known.answers.told = known.answers.told.filter { known.sockets[$0.key] != nil }
        let asked = known.answers.left ?? known.policy.answers
        let isParked = known.ownership.isParked && !known.isSealed
        for epoch in known.sockets.keys {
            let isMeant = epoch == known.standing && isParked && !asked.messages.isEmpty
            let expected = asked.messages.map { message in
                if case .xmpp = message { AnsweredMessage.xmpp(handled: known.answers.handled) } else { message }
            }
            let told = known.answers.told[epoch]
            try require(
                told?.messages == (isMeant ? expected : nil), .answersForSleepers,
                "\(epoch) \(known.ownership): \(told?.messages ?? []) with \(told?.handled ?? 0)")
        }
    }
}
