// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import Dialer
internal import Platform
internal import Supervisor

/// What a connection's waker needs of the connection.
@AgentQueue
protocol WakeSubject: AnyObject {
    /// The connection as it is; `nil` before it is at work.
    var status: ConnectionStatus? { get }
    /// Whether somebody watches it who may be the client, which is this process where it is known.
    func isWatched(by process: ProcessHandle?) -> Bool
    /// How many bytes wait for the client.
    var unreadBytes: Int { get }
    /// Whether the last flow has ended, and left bytes that its client has not read.
    var hasUnreadEnd: Bool { get }
    /// Calls `handler` once, when more than `count` bytes wait, unless somebody takes the flow before.
    func awaitBytes(beyond count: Int, _ handler: @escaping @AgentQueue () -> Void)
    /// The flow for a program that is about to be launched; `nil` where none stands.
    func takeForProgram() -> HandedFlow?
    /// The program runs, and has the flow until it ends.
    func programHas(_ epoch: UInt64, _ process: ProcessHandle)
    /// The program ended, or never ran.
    func programGaveBack(_ epoch: UInt64, _ way: ReturnOfFlow)
    /// Something happened to a wake.
    func wake(did report: WakeReport)
    /// Something that the next process is to know changed, and no event tells of it.
    func needsWritingDown()
}

/// How a program's flow comes back.
enum ReturnOfFlow {
    /// It ended with 0: with a session on it.
    case inOrder
    /// It failed, or nobody saw how it ended, and nobody knows where in the stream it was.
    case abandoned
    /// It never ran: nobody has read anything.
    case untouched
}
