// SPDX-License-Identifier: Apache-2.0

/// Plays an opening exchange on one flow: says what to send when, and which of the received bytes are its answers.
///
/// ## Run loop
///
/// Call ``next(_:)`` with the flow's unread bytes, all from the first on, at the beginning, after each thing that it
/// said to do, and whenever there are more bytes. No byte is taken but as part of an answer that was recognized whole:
/// what stands behind the last one is the client's and stays unread, in its order. Its memory is the opening's.
public struct OpeningPlay: Sendable {
    /// What to do next.
    public enum Move: Hashable, Sendable {
        /// Send these, whole.
        case send([UInt8])
        /// Wait for more bytes.
        case wait
        /// Read so many bytes, and drop them: the answer to what was sent last.
        case read(Int)
        /// The session stands. Nothing more is to be called.
        case done
        /// The server refused. Nothing more is to be called.
        case failed(OpeningFailure)
    }

    private let opening: Opening
    /// The step that is played, from 0.
    private var index = 0
    private var hasSent = false

    /// An exchange that begins.
    public init(_ opening: Opening) { self.opening = opening }

    /// The number, from 1, of the step whose answer comes next.
    public var stepAwaited: Int { opening.stepAwaited(from: index) }

    /// What to do now.
    public mutating func next(_ unread: [UInt8]) -> Move {
        while index < opening.steps.count {
            let step = opening.steps[index]
            if !hasSent {
                hasSent = true
                if !step.send.isEmpty { return .send(step.send) }
            }
            guard let answer = step.answer else {
                advance()
                continue
            }
            return look(for: answer, or: step.overtakers, in: unread[...])
        }
        return .done
    }

    private mutating func look(
        for answer: ExpectedAnswer, or overtakers: [BytePattern], in unread: ArraySlice<UInt8>
    ) -> Move {
        if overtakers.contains(where: { $0.begins(unread) }) {
            index = opening.steps.count
            return .done
        }
        let mayBeOvertaken = overtakers.contains { $0.agrees(with: unread) }
        switch answer.match(unread) {
        case .whole(let length):
            advance()
            return .read(length)
        case .beginning: return .wait
        case .mismatch: return mayBeOvertaken ? .wait : failed(.mismatch)
        case .tooLong: return failed(.tooLong)
        }
    }

    private mutating func advance() {
        index += 1
        hasSent = false
    }

    private func failed(_ cause: OpeningFailure.Cause) -> Move {
        .failed(OpeningFailure(step: index + 1, cause: cause))
    }
}
