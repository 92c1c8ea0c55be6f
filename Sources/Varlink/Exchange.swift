// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc

/// One call from its arrival to its last reply, as the connection and the handler share it.
@AgentQueue
final class CallInProgress {
    let peer: VarlinkPeer
    /// What rode on the call and is still here.
    private(set) var descriptors: VarlinkDescriptors?
    private weak var connection: ServerConnection?
    private(set) var isFinished = false
    var onCancel: (@AgentQueue () -> Void)?

    init(_ connection: ServerConnection, _ descriptors: VarlinkDescriptors?) {
        peer = connection.peer
        self.descriptors = descriptors
        self.connection = connection
    }

    /// Ends the call with `message`. Descriptors that go nowhere, since nobody wants an answer, are closed.
    func finish(_ message: VarlinkMessage, _ answer: VarlinkDescriptors? = nil) {
        guard !isFinished else { return }
        isFinished = true
        onCancel = nil
        closeDescriptors()
        connection?.finish(with: message, answer)
    }

    /// Closes what rode on a call that takes no descriptors.
    func refuseDescriptors() {
        guard let count = descriptors?.count else { return }
        closeDescriptors()
        connection?.refused(descriptors: count)
    }

    private func closeDescriptors() {
        descriptors?.closeAll()
        descriptors = nil
    }

    /// The connection itself, for the kernel's word on who called.
    func duplicateConnection() throws(SystemError) -> OwnedDescriptor {
        guard let connection else { throw SystemError("asking who is connected", code: ENOTCONN) }
        return try connection.duplicateDescriptor()
    }

    /// A pidfd of the process that called.
    func openPeerProcess() throws(SystemError) -> OwnedDescriptor {
        guard let connection else { throw SystemError("asking who is connected", code: ENOTCONN) }
        return try connection.openPeerProcess()
    }

    /// Answers with the messages of `subscription` from now on.
    func stream(from subscription: any VarlinkSubscription) {
        isFinished = true
        connection?.stream(from: subscription)
    }

    /// Sends what the stream has, if the connection can take it.
    func pump() {
        connection?.pump()
    }

    /// Sends it in the connection's next turn, before its user's others or after them.
    func pumpInTurn(first: Bool) {
        connection?.standInLine(first: first)
    }

    /// The connection is gone.
    func cancel() {
        guard !isFinished else { return }
        isFinished = true
        closeDescriptors()
        let cancelled = onCancel
        onCancel = nil
        cancelled?()
    }

    /// The handler lost the call without answering it.
    func abandon() {
        guard !isFinished else { return }
        isFinished = true
        connection?.close(nil)
    }
}

/// A call that is answered later. Its connection answers nothing else until then.
///
/// An exchange that is dropped without an answer closes its connection, so that the client does not wait for ever.
@AgentQueue
package final class VarlinkExchange<M: VarlinkMethod> {
    private let progress: CallInProgress

    init(_ progress: CallInProgress) {
        self.progress = progress
    }

    isolated deinit {
        // Not at once: a handler that throws drops the exchange first, and its error is the answer.
        guard !progress.isFinished else { return }
        let progress = progress
        AgentQueue.async { progress.abandon() }
    }

    /// Who called.
    package var peer: VarlinkPeer { progress.peer }

    /// Called when the client is gone before it was answered. What is answered afterwards goes nowhere.
    package var onCancel: (@AgentQueue () -> Void)? {
        get { progress.onCancel }
        set { progress.onCancel = newValue }
    }

    /// The number of a descriptor that rode on the call and stays the call's, to look at it before it is taken.
    ///
    /// - Throws: as ``takeDescriptor(_:parameter:)``.
    package func descriptor(_ place: Int, parameter: String) throws(VarlinkFailure) -> CInt {
        guard let number = progress.descriptors?.number(at: place) else {
            throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: parameter))
        }
        return number
    }

    /// A descriptor that rode on the call, for the caller of this function to own. Those that nobody took are closed
    /// when the call is answered.
    ///
    /// - Parameters:
    ///   - place: its place among them, as the call's parameter says.
    ///   - parameter: that parameter's name.
    /// - Throws: `org.varlink.service.InvalidParameter` if there is none, or if it was taken before.
    package func takeDescriptor(_ place: Int, parameter: String) throws(VarlinkFailure) -> OwnedDescriptor {
        guard let descriptor = progress.descriptors?.take(place) else {
            throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: parameter))
        }
        return descriptor
    }

    /// A pidfd of the process that made the connection: it stands for that process also when its number has become
    /// another's. Before Linux 6.5 the kernel is asked by number, and one that died in between may be mistaken.
    ///
    /// - Throws: `ESRCH` if it is gone, `ENOTCONN` if the connection is.
    package func openPeerProcess() throws(SystemError) -> OwnedDescriptor {
        try progress.openPeerProcess()
    }

    /// Runs `work` when it is the caller's turn: for an answer that is long in the making, so that the time it takes is
    /// its user's. Not when the client is gone by then.
    ///
    /// - Parameter isGoingOn: whether it comes before all else of its user: for a large answer, of which a user with a
    ///   thousand connections is to have one half made and not a thousand.
    package func inTurn(isGoingOn: Bool = false, _ work: @escaping @AgentQueue () -> Void) {
        let progress = progress
        Turns.shared.add(Errand { if !progress.isFinished { work() } }, for: peer.account, first: isGoingOn)
    }

    /// A descriptor of the connection, as the kernel's word on who is at its other end (`SO_PEERPIDFD`, `SO_PEERCRED`),
    /// for somebody else to ask. It is not to be read or written. The client is hung up on as ever when the connection
    /// ends; where this process dies, the process that has the descriptor then does that.
    package func duplicateConnection() throws(SystemError) -> OwnedDescriptor { try progress.duplicateConnection() }

    /// Answers, with descriptors that the reply names by their place. Only the first answer counts; the descriptors of
    /// one that goes nowhere are closed.
    package func reply(_ reply: M.Reply, _ descriptors: VarlinkDescriptors? = nil) {
        progress.finish(.reply(reply), descriptors)
    }

    /// Answers with a reply of the method's that was encoded already.
    package func reply(_ message: VarlinkMessage) {
        progress.finish(message)
    }

    /// Answers with an error.
    package func fail(_ failure: VarlinkFailure) {
        progress.finish(failure.message)
    }
}

/// What the replies of a stream are drawn from.
///
/// The connection asks for one message at a time, and for the next only when the one before is wholly in the socket.
/// So the transport never queues a second message, and what happens between two questions is for the subscription to
/// keep, to conflate or to count as a gap: a subscriber that does not read costs what its subscription holds, no more.
@AgentQueue
package protocol VarlinkSubscription: AnyObject, Sendable {
    /// The next message to send; `nil` when there is none until ``VarlinkStream/wake()``. One that does not announce
    /// another (`continues`) ends the stream. Called from inside `wake()` among other places.
    func next() -> VarlinkMessage?

    /// The stream is over: its last message was taken, or its client is gone. Called once, never from inside `wake()`.
    func ended()
}

/// The connection's side of a stream, which the subscription keeps.
@AgentQueue
package final class VarlinkStream {
    private let progress: CallInProgress

    init(_ progress: CallInProgress) {
        self.progress = progress
    }

    /// Who subscribed.
    package var peer: VarlinkPeer { progress.peer }

    /// Says that the subscription has something new. If the socket has room it is written before this returns;
    /// otherwise it will be asked for when there is room. Without effect before the handler returned and after the end.
    package func wake() {
        progress.pump()
    }

    /// Likewise, in the subscriber's next turn: for a subscription that has looked for its next message long enough
    /// and has not found it yet.
    ///
    /// - Parameter isGoingOn: as of ``VarlinkExchange/inTurn(isGoingOn:_:)``.
    package func wakeInTurn(isGoingOn: Bool = false) {
        progress.pumpInTurn(first: isGoingOn)
    }
}
