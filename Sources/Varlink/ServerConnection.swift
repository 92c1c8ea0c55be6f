// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// One client of a server: reads calls, has each answered before it looks at the next, and writes the answers.
///
/// Everything happens in turns (``Turns``): what the kernel reports puts the connection in line, and what it has to
/// read stays in the socket until its user's turn comes. Only a stream that is told of an event writes at once.
///
/// While a call is answered, a stream runs or an answer waits for room in the socket, what comes is read all the same,
/// up to the length of one message: descriptors that nobody reads keep open what they are of, even the client's own end
/// of this connection. A stream takes no descriptors. Where that is not enough, because the limit is reached or because
/// descriptors wait here for something that only the client can do, the connection ends with the process that made it.
@AgentQueue
final class ServerConnection: TurnTaker {
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

    /// What its server is told.
    struct Notices {
        /// Descriptors came that nobody had asked for, and are closed: how many, and whether they are the first here.
        var refusedDescriptors: @AgentQueue (_ count: Int, _ isFirst: Bool) -> Void
        /// So many bytes more, or less, are held for the client.
        var heldBytes: @AgentQueue (Int) -> Void
        /// It has ended; with the reason if it was not this side's wish. Told once.
        var closed: @AgentQueue (ServerConnection, Channel.Ending?) -> Void
    }

    /// The most calls answered, or messages of a stream written, in one turn.
    private static let stepsPerTurn = 8
    /// How long a turn goes on with the next step. A few calls' worth: short enough that turns are cut where they can
    /// be, long enough that a turn is more than its overhead.
    private static let turnTime = Duration.microseconds(250)

    let peer: VarlinkPeer
    /// How many bytes are held for the client: what came and was not answered, and what waits for room in the socket.
    private(set) var heldBytes = 0
    private var hasRefusedDescriptors = false
    /// The answer to the first call, which is the last; `nil` for a client that is served.
    var refusal: VarlinkFailure?
    private let service: VarlinkService
    private var notices: Notices?
    private var channel: Channel?
    private var activity = Activity.idle
    private var answersCalls = true
    private var isOneway = false
    private var inputEnded = false
    /// What the kernel reported since the last turn.
    private var news: Poller.Readiness = []
    private var isInLine = false
    private var isAnswering = false
    private var isPumping = false
    /// The stream has more, and has had its turn.
    private var hasPumped = false
    private var processWatch: ProcessWatch?

    /// Serves a connected socket.
    init(
        _ descriptor: consuming OwnedDescriptor, peer: VarlinkPeer, service: VarlinkService, messageLimit: Int,
        inbox: DescriptorInbox, notices: Notices
    ) throws(SystemError) {
        self.peer = peer
        self.service = service
        let channel = Channel(descriptor, messageLimit: messageLimit, inbox: inbox) { [unowned self] in ready($0) }
        channel.firstChunkBytes = Self.firstChunkBytes
        channel.onRefusedDescriptors = { [unowned self] in refused(descriptors: $0) }
        try channel.resume()
        self.channel = channel
        self.notices = notices
    }

    /// The most bytes read where no message is begun: some ten calls, so that what a thousand clients send ahead stays
    /// in their sockets.
    private static let firstChunkBytes = 4096

    /// Ends the connection now, and whatever is being answered on it.
    func close(_ reason: Channel.Ending?) {
        guard let channel else { return }
        let activity = activity
        self.activity = .closed
        self.channel = nil
        processWatch = nil
        let notices = notices
        self.notices = nil
        channel.close()
        switch activity {
        case .idle, .closed: break
        case .answering(let progress): progress.cancel()
        case .streaming(let subscription): subscription.ended()
        }
        if heldBytes > 0 { notices?.heldBytes(-heldBytes) }
        heldBytes = 0
        notices?.closed(self, reason)
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
        notices = nil
        close(nil)
    }

    private func ready(_ readiness: Poller.Readiness) {
        news.formUnion(readiness)
        // Told already, and its turn has not come: nothing more until it has.
        if isInLine { channel?.pause() } else { standInLine() }
    }

    /// Waits for a turn.
    func standInLine(first: Bool = false) {
        guard !isInLine else { return }
        isInLine = true
        Turns.shared.add(self, for: peer.account, first: first)
    }

    /// Goes on with whatever is next: what waits to be written, a stream's messages, calls that were read, reading.
    func takeTurn() {
        isInLine = false
        guard let channel else { return }
        let readiness = news
        news = []
        do throws(Channel.Ending) {
            if readiness.contains(.writable) { try channel.flush() }
            hasPumped = false
            pump()
            let isHungUp = !readiness.isDisjoint(with: [.hangUp, .error])
            if isBusy {
                // The answer has nobody to go to.
                if isHungUp { throw .hungUp }
                if readiness.contains(.readable) { try readAhead(channel) }
            }
            try answerCalls(reading: isHungUp || readiness.contains(.readable))
            try settle()
        } catch {
            close(error)
        }
    }

    /// Whether a call has to wait for what was begun.
    private var isBusy: Bool {
        guard case .idle = activity else { return true }
        return channel?.isDrained == false
    }

    private func readAhead(_ channel: Channel) throws(Channel.Ending) {
        guard channel.hasRoom else { return }
        if case .end = try channel.receive() { inputEnded = true }
        if case .streaming = activity, !channel.hasRoom {
            throw .violated(.tooMuchBehindAStream(limit: channel.messageLimit))
        }
    }

    private func answerCalls(reading: Bool) throws(Channel.Ending) {
        isAnswering = true
        defer { isAnswering = false }
        var mayRead = reading
        let end = BootClock.now() + Self.turnTime
        for step in 0..<Self.stepsPerTurn where step == 0 || BootClock.now() < end {
            guard !isBusy, let channel else { return }
            guard answersCalls else { throw .hungUp }
            var message = try channel.next()
            if message == nil, mayRead, !inputEnded {
                mayRead = false
                if case .end = try channel.receive() { inputEnded = true }
                message = try channel.next()
            }
            guard let message else {
                // Calls of a client that is gone are carried out: one with `oneway` before a hang-up is complete.
                if inputEnded { throw .hungUp }
                return
            }
            try begin(message)
        }
        if !isBusy { standInLine() }
    }

    private func begin(_ message: Channel.Incoming) throws(Channel.Ending) {
        // What ends the process from here on is held against the client's user.
        try BlackBox.noteCall(of: peer.account, message.bytes) { () throws(Channel.Ending) in try answer(message) }
    }

    private func answer(_ message: Channel.Incoming) throws(Channel.Ending) {
        if let failure = service.refusal?(peer) {
            (isOneway, activity) = (false, .answering(CallInProgress(self, message.descriptors)))
            if case .answering(let progress) = activity { progress.finish(failure.message) }
            return
        }
        let call: VarlinkCall
        do { call = try VarlinkCall(message.bytes) } catch { throw .violated(error) }
        isOneway = call.mode == .oneway
        let progress = CallInProgress(self, message.descriptors)
        activity = .answering(progress)
        guard let refusal else { return service.begin(call, progress) }
        progress.refuseDescriptors()
        progress.finish(refusal.message)
        answersCalls = false
    }

    /// What is to be so between turns.
    private func settle() throws(Channel.Ending) {
        guard let channel else { return }
        countBytes()
        channel.wantsInput = channel.hasRoom
        do throws(SystemError) {
            if !isInLine { try channel.resume() }
            try watchProcess(!isInLine && (!channel.hasRoom || channel.holdsDescriptors || callHoldsDescriptors))
        } catch {
            throw .failed(error)
        }
    }

    private var callHoldsDescriptors: Bool {
        if case .answering(let progress) = activity { progress.descriptors != nil } else { false }
    }

    private func watchProcess(_ isNeeded: Bool) throws(SystemError) {
        guard isNeeded else { return processWatch = nil }
        guard processWatch == nil, let channel else { return }
        let process: OwnedDescriptor
        do throws(SystemError) {
            process = try channel.openPeerProcess(peer)
        } catch {
            // Gone already; or nobody whose end could be waited for.
            return closeLater(.hungUp)
        }
        processWatch = try ProcessWatch(process) { [unowned self] in close(.hungUp) }
    }

    /// Tells how much is held, where that is another number than before.
    private func countBytes() {
        guard let channel, channel.heldBytes != heldBytes else { return }
        let change = channel.heldBytes - heldBytes
        heldBytes = channel.heldBytes
        notices?.heldBytes(change)
    }

    /// Notes that descriptors came that nobody had asked for.
    func refused(descriptors count: Int) {
        notices?.refusedDescriptors(count, !hasRefusedDescriptors)
        hasRefusedDescriptors = true
    }

    /// Another descriptor of the connection.
    func duplicateDescriptor() throws(SystemError) -> OwnedDescriptor {
        guard let channel else { throw SystemError("asking who is connected", code: ENOTCONN) }
        return try channel.duplicateDescriptor()
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
            // Now: this connection's next turn comes after those of all others of its user, which may hold as much.
            countBytes()
        }
        // An answer from inside the loop over the calls is followed by the next turn of that loop.
        if !isAnswering { standInLine() }
    }

    /// Answers the call in progress with what `subscription` has.
    func stream(from subscription: any VarlinkSubscription) {
        guard case .answering = activity else { return subscription.ended() }
        activity = .streaming(subscription)
        channel?.acceptsDescriptors = false
        pump()
    }

    /// Writes messages of the stream, if there is one, until it has none, the socket no room, or the turn is over.
    func pump() {
        guard case .streaming(let subscription) = activity, let channel, !isPumping, !hasPumped else { return }
        isPumping = true
        defer {
            isPumping = false
            countBytes()
        }
        let end = BootClock.now() + Self.turnTime
        for step in 0..<Self.stepsPerTurn where step == 0 || BootClock.now() < end {
            guard channel.isDrained, let message = subscription.next(), channel.isOpen else { return }
            do { try channel.send(message) } catch { return closeLater(error) }
            guard message.continues else {
                activity = .idle
                channel.acceptsDescriptors = true
                AgentQueue.async { subscription.ended() }
                return standInLine()
            }
        }
        hasPumped = true
        standInLine()
    }

    /// Closes in a turn of its own: the caller may be a handler, or somebody who told many streams of an event, and
    /// neither expects to be told in the middle of it that one ended.
    func closeLater(_ reason: Channel.Ending) {
        AgentQueue.async { [weak self] in self?.close(reason) }
    }
}
