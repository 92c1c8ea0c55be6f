// SPDX-License-Identifier: Apache-2.0

/// How far the opening exchange is on a flow.
struct OpeningProgress: Hashable {
    private let begunAt: Duration
    private var stepBegunAt: Duration
    /// The step whose answer is awaited, from 1.
    private var step: Int
    /// What is played.
    let opening: Opening

    init(of opening: Opening, at now: Duration) {
        self.opening = opening
        (begunAt, stepBegunAt) = (now, now)
        step = opening.stepAwaited(from: 0)
    }

    /// When it is given up.
    var deadline: Duration { min(stepBegunAt + Opening.answerDeadline, begunAt + Opening.deadline) }

    /// An answer came, and the one to `step` is next.
    mutating func answered(awaiting step: Int, at now: Duration) {
        self.step = step
        stepBegunAt = now
    }

    /// It failed here.
    func failure(_ cause: OpeningFailure.Cause) -> OpeningFailure { OpeningFailure(step: step, cause: cause) }
}
