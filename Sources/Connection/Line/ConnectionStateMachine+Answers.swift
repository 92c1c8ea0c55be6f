// SPDX-License-Identifier: Apache-2.0

// Which messages of the server's are answered for a client that sleeps.

extension ConnectionStateMachine {
    /// What is answered while a flow is parked.
    var answers: AnsweredMessages { leftAnswers ?? policy.answers }

    mutating func answersLeft(_ answers: AnsweredMessages, _ turn: inout Turn<some RandomNumberGenerator>) {
        let before = self.answers
        leftAnswers = answers
        answersChanged(from: before, &turn)
    }

    /// Other messages are answered from now on.
    mutating func answersChanged(from before: AnsweredMessages, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard answers != before, let flow else { return }
        answerMessages(on: flow, &turn)
    }

    /// Has a flow's messages answered, or not, by the hands that it is in.
    mutating func answerMessages(on flow: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        turn.perform(.answerMessages(epoch: flow.epoch, answers(on: flow)))
    }

    /// What is answered on a flow in the hands that it is in; `nil` for nothing. Only where somebody said that it is
    /// between two messages: who parked it, or the opening that was answered to its end.
    private func answers(on flow: StandingFlow) -> AnsweredMessages? {
        guard flow.ownership.isParked, !flow.isSealed, !answers.isEmpty
        else { return nil }
        return answers.counting(flow.handled)
    }

    /// How many stanzas a client has handled on the flow that it has; `nil` where it does not say.
    mutating func count(_ handled: UInt32?, on epoch: UInt64) {
        guard var flow, flow.epoch == epoch, flow.ownership.holder == .client else { return }
        flow.handled = handled
        state = .ready(flow)
    }
}
