// SPDX-License-Identifier: Apache-2.0

/// Plays an opening exchange on one flow: says what to send when, and which of the received bytes are its answers.
///
/// ## Run loop
///
/// Call ``next(_:)`` with the flow's unread bytes, all from the first on, at the beginning, after each thing that it
/// said to do, and whenever there are more bytes. No byte is taken but as part of an answer: what stands behind the
/// last one is the client's and stays unread, in its order, and so does a short answer that is not recognized. Its
/// memory is the opening's, and the answer that has begun.
package struct OpeningPlay: Sendable {
    /// What to do next.
    package enum Move: Hashable, Sendable {
        /// Send these, whole.
        case send([UInt8])
        /// Wait for more bytes.
        case wait
        /// Read so many bytes, and drop them: the end of the answer to what was sent last.
        case read(Int)
        /// Read so many bytes, all that were given, and drop them: they are of the answer, which goes on behind them.
        /// In the socket they would be looked through again for each byte that comes, and a queue of small segments
        /// costs the kernel the square of their number at each look.
        case keep(Int)
        /// The session stands. Nothing more is to be called.
        case done
        /// The server refused. Nothing more is to be called.
        case failed(OpeningFailure)
    }

    /// So many bytes are left unread of an answer that is not recognized yet: a client looks at a refusal.
    static let leftUnread = 1024

    private let opening: Opening
    /// The step that is played, from 0.
    private var index = 0
    private var hasSent = false
    /// What was read of the answer that is awaited.
    private var begun: [UInt8] = []

    /// An exchange that begins.
    package init(_ opening: Opening) { self.opening = opening }

    /// The number, from 1, of the step whose answer comes next.
    package var stepAwaited: Int { opening.stepAwaited(from: index) }

    /// What to do now.
    package mutating func next(_ unread: [UInt8]) -> Move {
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
            return look(for: answer, or: step.overtakers, in: unread)
        }
        return .done
    }

    private mutating func look(
        for answer: ExpectedAnswer, or overtakers: [BytePattern], in unread: [UInt8]
    ) -> Move {
        let input = (begun + unread)[...]
        if overtakers.contains(where: { $0.begins(input) }) {
            index = opening.steps.count
            return .done
        }
        let mayBeOvertaken = overtakers.contains { $0.agrees(with: input) }
        switch answer.match(input) {
        case .whole(let length):
            defer { advance() }
            // It ends behind what was undecided before.
            return .read(max(length - begun.count, 0))
        case .beginning:
            if mayBeOvertaken || unread.count < Self.leftUnread { return .wait }
            begun = Array(input)
            return .keep(unread.count)
        case .mismatch: return mayBeOvertaken ? .wait : refused(by: input)
        case .tooLong: return failed(.tooLong)
        }
    }

    private mutating func advance() {
        index += 1
        hasSent = false
        begun = []
    }

    /// Another answer than expected. One that has only begun to say why is waited for.
    private func refused(by input: ArraySlice<UInt8>) -> Move {
        switch LoginRefusal.read(input) {
        case .refusal(let refusal): failed(.mismatch, refusal)
        case .begun: input.count < Self.leftUnread ? .wait : failed(.mismatch)
        case .none: failed(.mismatch)
        }
    }

    private func failed(_ cause: OpeningFailure.Cause, _ refusal: LoginRefusal? = nil) -> Move {
        .failed(OpeningFailure(step: index + 1, cause: cause, refusal: refusal))
    }
}

extension OpeningPlay: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How far it is. What was said on either side may be a secret.
    package var description: String { "an opening at step \(stepAwaited) of \(opening.steps.count)" }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["play": description]) }
}

extension OpeningPlay.Move: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What it is, without what is sent.
    package var description: String {
        switch self {
        case .send(let bytes): "send \(bytes.count) bytes"
        case .wait: "wait"
        case .read(let count): "read \(count) bytes"
        case .keep(let count): "keep \(count) bytes"
        case .done: "done"
        case .failed(let failure): "failed: \(failure)"
        }
    }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["move": description]) }
}
