// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform

/// Plays an opening exchange on a flow: an ``OpeningPlay`` with its socket.
///
/// It reads what is of an answer and nothing else. When the exchange is over, or ``stop()`` was called,
/// it lets go of the flow. Deadlines are the state machine's.
@AgentQueue
final class OpeningPlayer {
    /// How far it is.
    enum Outcome {
        /// An answer was read, to what was sent at `begun` if anything was; the one to the step `awaiting` comes next.
        case answered(awaiting: Int, begun: Duration?)
        /// All have come. The last outcome.
        case opened
        /// The server refused. The last outcome.
        case failed(OpeningFailure)
    }

    private let flow: Flow
    private let tell: @AgentQueue (Outcome) -> Void
    private var play: OpeningPlay
    /// What the socket had no room for yet.
    private var unsent: ArraySlice<UInt8> = []
    /// When the step was sent whose answer is awaited.
    private var sentAt: Duration?
    private var isOver = false

    /// A player that has sent nothing yet.
    init(_ opening: Opening, on flow: Flow, tell: @escaping @AgentQueue (Outcome) -> Void) {
        self.flow = flow
        self.tell = tell
        play = OpeningPlay(opening)
    }

    /// Does what can be done now, and goes on by itself when there is more.
    func goOn() {
        while !isOver {
            guard sendRest() else { return flow.awaitInput(orRoom: true) { [weak self] in self?.goOn() } }
            let unread = flow.peek(look)
            switch play.next(unread) {
            case .send(let bytes):
                unsent = bytes[...]
                sentAt = BootClock.now()
            case .wait:
                // A pattern of the client's is longer than what was looked at.
                if unread.count == look, look < Self.longestLook {
                    look = Self.longestLook
                    continue
                }
                return flow.awaitInput { [weak self] in self?.goOn() }
            case .keep(let count):
                flow.discard(count)
            case .read(let count):
                flow.discard(count)
                tell(.answered(awaiting: play.stepAwaited, begun: sentAt))
                sentAt = nil
            case .done:
                stop()
                tell(.opened)
            case .failed(let failure):
                stop()
                tell(.failed(failure))
            }
        }
    }

    /// Sends and reads nothing any more.
    func stop() {
        guard !isOver else { return }
        isOver = true
        flow.stopAwaitingInput()
    }

    /// How far it looks. Little at first: what is of the answer is read at once, and the look goes on behind it.
    private var look = 1024

    /// The longest answer, and enough to see that one is longer.
    private static let longestLook = ExpectedAnswer.longestAnswer + 1

    private func sendRest() -> Bool {
        guard !unsent.isEmpty else { return true }
        unsent = unsent.dropFirst(flow.sendPart(unsent))
        return unsent.isEmpty
    }
}
