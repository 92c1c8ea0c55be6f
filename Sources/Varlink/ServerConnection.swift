// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

/// One client of a server: reads calls, has each answered before it looks at the next, and writes the answers.
///
/// Held at most: one message of the limit's length and one chunk behind it on the way in, one message on the way out.
/// While a call is being answered, a stream runs or an answer waits for room in the socket, nothing is read; what the
/// client sends meanwhile stays in its socket.
@AgentQueue
final class ServerConnection {
    /// What becomes of an instance:
    private enum Activity {
        /// Nothing is being answered. A call makes it `answering`.
        case idle
        /// A handler has the call. Its answer leads back to `idle`, its stream to `streaming`, a hang-up to `closed`.
        case answering(CallInProgress)
        /// Messages are drawn from a subscription. Its last one leads back to `idle`, a hang-up to `closed`.
        case streaming(any VarlinkSubscription)
        /// Over.
        case closed
    }

    /// The most calls answered, or messages of a stream written, in one turn of the queue. A client that floods gets
    /// its turns between the others' and a kernel event's, not before them: eight calls take some 100 µs.
    private static let stepsPerTurn = 8

    let peer: VarlinkPeer
    /// Called with their number when descriptors came that nobody had asked for, and that are closed; and with whether
    /// they are the first on this connection.
    var onRefusedDescriptors: (@AgentQueue (Int, Bool) -> Void)?
    private var hasRefusedDescriptors = false
    private let service: VarlinkService
    private var onClose: (@AgentQueue (ServerConnection, Channel.Ending?) -> Void)?
    private var channel: Channel?
    private var activity = Activity.idle
    private var answersCalls = true
    private var isOneway = false
    private var inputEnded = false
    private var isTurnScheduled = false
    private var isAnswering = false
    private var isPumping = false

    /// Serves a connected socket. `onClose` is called once, with the reason if it was not this side's wish.
    init(
        _ descriptor: consuming OwnedDescriptor, peer: VarlinkPeer, service: VarlinkService, messageLimit: Int,
        inbox: DescriptorInbox, onClose: @escaping @AgentQueue (ServerConnection, Channel.Ending?) -> Void
    ) throws(SystemError) {
        self.peer = peer
        self.service = service
        self.onClose = onClose
        let channel = Channel(descriptor, messageLimit: messageLimit, inbox: inbox) { [unowned self] in ready($0) }
        try channel.resume()
        self.channel = channel
    }

    /// Ends the connection now, and whatever is being answered on it.
    func close(_ reason: Channel.Ending?) {
        guard let channel else { return }
        let activity = activity
        self.activity = .closed
        self.channel = nil
        channel.close()
        switch activity {
        case .idle, .closed: break
        case .answering(let progress): progress.cancel()
        case .streaming(let subscription): subscription.ended()
        }
        onClose?(self, reason)
    }

    /// Answers no call any more. A stream goes on to its end; without one the connection ends now.
    func stopAnswering() {
        answersCalls = false
        switch activity {
        case .idle, .answering: close(nil)
        case .streaming, .closed: break
        }
    }

    /// Ends the connection for an owner that is going away and must not be told.
    func discard() {
        onClose = nil
        close(nil)
    }

    private func ready(_ readiness: Poller.Readiness) {
        guard let channel else { return }
        do throws(Channel.Ending) {
            if readiness.contains(.writable) {
                try channel.flush()
                takeTurn()
            } else if case .idle = activity, channel.isDrained {
                // Calls that wait for their turn are finished first, also those of a client that is gone: a oneway call
                // followed by a hang-up is a complete message.
                if isTurnScheduled { channel.wantsInput = false } else { try receive(channel) }
            } else {
                if !readiness.isDisjoint(with: [.hangUp, .error]) { throw .hungUp }
                channel.wantsInput = false
            }
        } catch {
            close(error)
        }
    }

    private func receive(_ channel: Channel) throws(Channel.Ending) {
        switch try channel.receive() {
        case .nothing: break
        case .bytes: takeTurn()
        case .end:
            inputEnded = true
            takeTurn()
        }
    }

    private func scheduleTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        AgentQueue.async { [weak self] in
            self?.isTurnScheduled = false
            self?.takeTurn()
        }
    }

    /// Goes on with whatever is next: a stream's messages, calls that were read, reading.
    private func takeTurn() {
        pump()
        do throws(Channel.Ending) {
            try answerCalls()
        } catch {
            close(error)
        }
    }

    private func answerCalls() throws(Channel.Ending) {
        isAnswering = true
        defer { isAnswering = false }
        for _ in 0..<Self.stepsPerTurn {
            guard case .idle = activity, let channel, channel.isDrained else { return }
            guard answersCalls else { throw .hungUp }
            guard let message = try channel.next() else {
                if inputEnded { throw .hungUp }
                channel.wantsInput = true
                return
            }
            try begin(message)
        }
        if case .idle = activity { scheduleTurn() }
    }

    private func begin(_ message: Channel.Incoming) throws(Channel.Ending) {
        let call: VarlinkCall
        do { call = try VarlinkCall(message.bytes) } catch { throw .violated(error) }
        isOneway = call.mode == .oneway
        let progress = CallInProgress(self, message.descriptors)
        activity = .answering(progress)
        service.begin(call, progress)
    }

    /// Notes that descriptors came with a call that takes none.
    func refused(descriptors count: Int) {
        onRefusedDescriptors?(count, !hasRefusedDescriptors)
        hasRefusedDescriptors = true
    }

    /// A pidfd of the client's process.
    func openPeerProcess() throws(SystemError) -> OwnedDescriptor {
        guard let channel else { throw SystemError("asking who is connected", code: ENOTCONN) }
        return try channel.openPeerProcess(peer)
    }

    /// Answers the call in progress.
    func finish(with message: VarlinkMessage, _ descriptors: VarlinkDescriptors?) {
        guard case .answering = activity, let channel else { return }
        activity = .idle
        if !isOneway {
            do { try channel.send(message, descriptors) } catch { return closeLater(error) }
        }
        // An answer from inside the loop over the calls is followed by the next turn of that loop.
        if !isAnswering { scheduleTurn() }
    }

    /// Answers the call in progress with what `subscription` has.
    func stream(from subscription: any VarlinkSubscription) {
        guard case .answering = activity else { return subscription.ended() }
        activity = .streaming(subscription)
        pump()
    }

    /// Writes messages of the stream, if there is one, until it has none, the socket no room, or the turn is over.
    func pump() {
        guard case .streaming(let subscription) = activity, let channel, !isPumping, !isTurnScheduled else { return }
        isPumping = true
        defer { isPumping = false }
        for _ in 0..<Self.stepsPerTurn {
            guard channel.isDrained, let message = subscription.next(), channel.isOpen else { return }
            do { try channel.send(message) } catch { return closeLater(error) }
            guard message.continues else {
                activity = .idle
                AgentQueue.async { subscription.ended() }
                return scheduleTurn()
            }
        }
        scheduleTurn()
    }

    /// Closes in a turn of its own: the caller may be a handler, or somebody who told many streams of an event, and
    /// neither expects to be told in the middle of it that one ended.
    private func closeLater(_ reason: Channel.Ending) {
        AgentQueue.async { [weak self] in self?.close(reason) }
    }
}
