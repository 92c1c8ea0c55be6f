// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
package import DialtonePlatform

/// The client's end of a connection.
///
/// Calls may be made without waiting for earlier ones; their answers come in order. A stream holds the connection until
/// it ends. Replies are read when somebody wants them: while the consumer of a stream is busy nothing is read, and the
/// service finds the socket full. An instance lives until ``close()`` or until the service hangs up.
@AgentQueue
package final class VarlinkConnection {
    /// The most bytes of a reply, as in systemd's clients. A list of all that a service has can be long.
    package nonisolated static let defaultMessageLimit = 16 * 1024 * 1024

    /// The most descriptors that ride on a reply, and that wait for the rest of one.
    private static let descriptorLimit = 16

    private var channel: Channel?
    private var waiting: Deque<any ReplyConsumer> = []
    private var isDelivering = false
    private var ending: VarlinkCallError = .closed
    /// A connection that waits for a reply needs no other owner.
    private var itself: VarlinkConnection?

    /// Connects to the service that listens on `path`. It does not block: the kernel connects at once or not at all.
    ///
    /// - Throws: `ENOENT` or `ECONNREFUSED` if nobody is there, `EACCES` without permission, `EAGAIN` if the service
    ///   has as many clients waiting as it allows.
    package static func connect(
        to path: String, messageLimit: Int = defaultMessageLimit
    ) throws(SystemError) -> VarlinkConnection {
        try VarlinkConnection(try UnixSocket.connect(to: path), messageLimit: messageLimit)
    }

    /// Takes over a connected socket.
    package init(
        _ socket: consuming OwnedDescriptor, messageLimit: Int = defaultMessageLimit
    ) throws(SystemError) {
        let allowance = DescriptorAllowance(limit: Self.descriptorLimit)
        let inbox = DescriptorInbox(limit: Self.descriptorLimit, allowance: allowance)
        let channel = Channel(socket, messageLimit: messageLimit, inbox: inbox) { [unowned self] in ready($0) }
        try channel.resume()
        self.channel = channel
        itself = self
    }

    /// Calls `method`. `completion` is called once, never from inside this function. Descriptors that ride on the reply
    /// are closed.
    package func call<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters,
        _ completion: @escaping @AgentQueue (Result<M.Reply, VarlinkCallError>) -> Void
    ) {
        send(.call(method, parameters), for: SingleReply<M>(completion))
    }

    /// Calls `method`, with descriptors that the parameters name by their place, and wants those of the reply as well.
    /// `completion` is called once, never from inside this function. The descriptors are closed on this side when they
    /// are in the socket.
    package func callWithDescriptors<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ descriptors: VarlinkDescriptors? = nil,
        _ completion: @escaping @AgentQueue (Result<VarlinkAnswer<M>, VarlinkCallError>) -> Void
    ) {
        send(.call(method, parameters), descriptors, for: SingleReply<M>(completion))
    }

    /// Calls `method` for a stream of replies.
    package func stream<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters) -> VarlinkReplies<M> {
        let replies = VarlinkReplies<M>(self)
        send(.call(method, parameters, .more), for: replies)
        return replies
    }

    /// Hangs up. Calls without an answer end with ``VarlinkCallError/closed``.
    package func close() {
        end(.closed)
    }

    private func send(
        _ message: VarlinkMessage, _ descriptors: VarlinkDescriptors? = nil, for consumer: any ReplyConsumer
    ) {
        guard let channel else {
            let ending = ending
            return AgentQueue.async { consumer.fail(ending) }
        }
        waiting.append(consumer)
        do { try channel.send(message, descriptors) } catch { closeLater(error) }
    }

    private func closeLater(_ error: Channel.Ending) {
        AgentQueue.async { [weak self] in self?.end(VarlinkCallError(error)) }
    }

    /// The consumer of a stream wants its next reply.
    func demand() {
        guard let channel else { return }
        deliver()
        do { try channel.resume() } catch { end(.failed(error)) }
    }

    private func ready(_ readiness: Poller.Readiness) {
        guard let channel else { return }
        do throws(Channel.Ending) {
            if readiness.contains(.writable) { try channel.flush() }
            if let first = waiting.first, !first.wantsReply {
                // A hang-up would be reported again and again, and what came before it is still to be read.
                if readiness != .writable { channel.pause() }
                return
            }
            switch try channel.receive() {
            case .nothing: break
            case .bytes: deliver()
            case .end: throw .hungUp
            }
        } catch {
            end(VarlinkCallError(error))
        }
    }

    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        defer { isDelivering = false }
        do throws(Channel.Ending) {
            while waiting.first?.wantsReply ?? true, let message = try channel?.next() {
                guard let consumer = waiting.first else { throw .violated(.unexpectedReply) }
                do throws(VarlinkViolation) {
                    let isLast = try consumer.take(message)
                    // The consumer may have closed the connection, and with it the queue it stood in.
                    if isLast, waiting.first === consumer { waiting.removeFirst() }
                } catch {
                    throw .violated(error)
                }
            }
        } catch {
            end(VarlinkCallError(error))
        }
    }

    private func end(_ reason: VarlinkCallError) {
        guard let channel else { return }
        ending = reason
        self.channel = nil
        channel.close()
        let unanswered = waiting
        waiting = []
        for consumer in unanswered { consumer.fail(reason) }
        itself = nil
    }
}
