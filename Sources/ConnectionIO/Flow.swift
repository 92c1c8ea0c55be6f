// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

/// Who made a flow and hears what becomes of it.
@AgentQueue
protocol FlowOwner: AnyObject {
    /// Told in a turn of the queue of its own, never while the flow is being made or closed.
    func flow(_ flow: Flow, did outcome: Flow.Outcome)
    /// Whose connection it belongs to, where somebody knows.
    var label: ConnectionLabel? { get }
    /// The user to whom it is given.
    var user: UInt32 { get }
}

/// One TCP socket from its connect to its close.
///
/// It is watched for its end and never read: the bytes are the client's, so neither their arrival nor the room for more
/// wakes the process. One with TLS is secured before it counts as connected, by `dialtone-tls`: what is read and
/// written then is one end of a pair of Unix sockets (``SecuredStream``). A flow lives until ``close(aborting:)``,
/// even if its owner lets go of it before.
@AgentQueue
final class Flow {
    /// What becomes of a flow. `securing` is told before `connected` and only of one with TLS; otherwise at most two
    /// are told: `connected`, and one of the others.
    enum Outcome: Hashable, Sendable {
        case securing(local: Endpoint)
        case connected(local: Endpoint, remote: Endpoint, security: TLSSummary?)
        case connectFailed(FlowFailure)
        case remoteClosed
        case failed(FlowFailure)
    }

    let epoch: UInt64
    let remote: Endpoint
    let owner: any FlowOwner
    /// The TCP socket. Shared, from when a client may have it (``OwnedDescriptor``).
    private var socket: OwnedDescriptor?
    /// What clients get in its place, of a flow with TLS.
    private(set) var secured: SecuredStream?
    /// Watches the socket; not that of a flow with TLS, from when `dialtone-tls` has it.
    private var registration: Poller.Registration?
    /// Whether there is nothing to be told any more.
    private(set) var hasEnded = false
    /// What the poller has reported since the last turn.
    var heard: Poller.Readiness = []
    /// Whether it waits for a turn.
    var isInLine = false
    private(set) var isConnected = false
    /// The socket's own end, once it is connected.
    private var local: Endpoint?
    /// What is known of the client's part in the stream.
    private var handed = Handed.toNobody

    private enum Handed {
        case toNobody
        /// How far the stream was when the client got it.
        case at(Progress)
        /// The client has read or written something since.
        case touched
        /// Nothing: an earlier process gave the flow away, or the socket did not say.
        case unknown
    }
    /// How it is to be secured, until it is connected.
    private var securing: Securing?
    var options: SocketOptions
    /// Where a copy of the socket is kept for a later process, and under which number.
    private var stored: (store: any FlowStore, number: UInt64)?
    /// Told that there is something to read, while somebody awaits it.
    private var inputArrived: (@AgentQueue () -> Void)?
    /// Whether it is told, too, that there is room to write.
    private var awaitsRoom = false

    /// Makes the socket and begins to connect.
    ///
    /// - Parameter securing: how one with TLS is secured; `nil` for one without.
    /// - Throws: what the kernel refused on the spot. Nothing is told to the owner then.
    init(_ request: FlowRequest, owner: any FlowOwner, securing: Securing? = nil) throws(FlowFailure) {
        epoch = request.epoch
        remote = request.remote
        options = request.options
        self.owner = owner
        self.securing = securing
        let descriptor = try request.connectingSocket()
        let number = descriptor.number
        socket = consume descriptor
        do throws(SystemError) {
            // The watch ends with close, which ends this reference to the flow too.
            registration = try Poller.shared.register(number, [.writable, .edgeTriggered]) { self.hear($0) }
        } catch {
            throw .other(code: error.code, text: error.description)
        }
    }

    /// A flow out of a socket that is connected, made elsewhere.
    ///
    /// - Parameter secured: what clients get in its place, of a flow with TLS that an earlier process left.
    init(
        adopting descriptor: consuming OwnedDescriptor, _ adoption: Adoption, _ options: SocketOptions,
        secured: SecuredStream? = nil, owner: any FlowOwner
    ) throws(SystemError) {
        epoch = adoption.epoch
        remote = adoption.remote
        local = adoption.local
        self.options = options
        self.owner = owner
        self.secured = secured
        isConnected = true
        if adoption.ownership.holder == .client { handed = .unknown }
        let number = descriptor.number
        socket = secured == nil ? descriptor.shared(with: owner.user) : descriptor
        try UserThreads.checkRoom(for: owner.user)
        if let secured {
            try secured.listen { [weak self] in self?.hearRelay() }
            // What was said while nobody listened; or to a process that had no time to write it down.
            AgentQueue.async { [weak self] in
                self?.hearRelay()
                self?.lookForEnd()
            }
        } else {
            registration = try Poller.shared.register(number, [.peerClosed, .edgeTriggered]) { self.hear($0) }
        }
    }

    /// What a flow that has ended had received, made of what an earlier process left.
    init(
        ended descriptor: consuming OwnedDescriptor, secured: SecuredStream?, epoch: UInt64, to remote: Endpoint,
        _ options: SocketOptions, owner: any FlowOwner
    ) {
        self.epoch = epoch
        self.remote = remote
        self.options = options
        self.owner = owner
        self.secured = secured
        isConnected = true
        hasEnded = true
        socket = consume descriptor
        guard let secured else { return }
        // The process before may have heard of the end and not come so far.
        secured.markEnd()
        try? secured.listen { [weak self] in self?.hearRelay() }
        AgentQueue.async { [weak self] in self?.hearRelay() }
    }

    /// What ends the process while it reads what the server sent is held against the connection.
    func noted(_ readiness: Poller.Readiness) {
        guard let label = owner.label else { return take(readiness) }
        BlackBox.noteBytes(of: label.name, label.user) { take(readiness) }
    }

    private func take(_ readiness: Poller.Readiness) {
        if local == nil { return takeConnectOutcome() }
        if readiness.contains(.readable) || (awaitsRoom && readiness.contains(.writable)) { inputArrived?() }
        if secured == nil { takeEnd(readiness) }
    }

    private func takeConnectOutcome() {
        if let failure = pendingFailure() { return end(.connectFailed(failure)) }
        do throws(SystemError) {
            let local = try localEndpoint()
            self.local = local
            if let securing = securing.take() { return begin(securing, at: local) }
            isConnected = true
            // Asked anew, so that an end of stream that came together with the connect is reported again.
            registration?.update([.peerClosed, .edgeTriggered])
            owner.flow(self, did: .connected(local: local, remote: remote, security: nil))
        } catch {
            end(.connectFailed(FlowFailure(error)))
        }
    }

    private func takeEnd(_ readiness: Poller.Readiness) {
        // Closed by whoever was told of input.
        guard !hasEnded else { return }
        if let failure = pendingFailure() {
            end(.failed(failure))
        } else if !readiness.isDisjoint(with: [.peerClosed, .hangUp, .error]) {
            end(.remoteClosed)
        }
    }

    private func begin(_ securing: Securing, at local: Endpoint) {
        // `dialtone-tls` watches the socket from here on.
        registration?.cancel()
        registration = nil
        owner.flow(self, did: .securing(local: local))
        secure(securing)
    }

    /// How long a flow waits before it asks again, where `dialtone-tls` has more to do than its queue holds.
    private static let crowdedPause = Duration.milliseconds(20)
    /// What the kernel says then: of its queue, and of the descriptors that are in it.
    private static let crowded = [EAGAIN, ETOOMANYREFS, ENOBUFS]

    private func secure(_ securing: Securing) {
        // Closed by the owner when it was told.
        guard let number = socketNumber else { return }
        do throws(SystemError) {
            let secured = try securing.begin(number, for: owner.user)
            self.secured = secured
            try secured.listen { [weak self] in self?.hearRelay() }
        } catch {
            guard !Self.crowded.contains(error.code) else {
                _ = Timers.shared.schedule(after: Self.crowdedPause) { [weak self] in self?.secure(securing) }
                return
            }
            end(.connectFailed(.other(code: error.code, text: error.description)))
        }
    }

    /// Takes what `dialtone-tls` says of the flow.
    func hearRelay() {
        while let secured, let word = secured.nextWord() {
            // What comes of one that has ended here is noted there.
            if hasEnded { continue }
            switch word {
            case .secured(let summary):
                guard !isConnected, let local else { break }
                isConnected = true
                owner.flow(self, did: .connected(local: local, remote: remote, security: summary))
            case .failed(let failure):
                fail(FlowFailure(failure, of: remote))
            case .ended(let failure):
                // What came before it.
                inputArrived?()
                failure.map { fail(FlowFailure($0, of: remote)) } ?? end(.remoteClosed)
            }
        }
    }

    /// Once `dialtone-tls` has told the end, it has shut the socket.
    private func lookForEnd() {
        guard !hasEnded, let information, information.tcpi_state != UInt8(TCP_ESTABLISHED) else { return }
        end(.remoteClosed)
    }

    private func fail(_ failure: FlowFailure) {
        end(isConnected ? .failed(failure) : .connectFailed(failure))
    }

    /// Tells the last outcome. The socket stays open until the owner closes it; there is nothing more to watch.
    private func end(_ outcome: Outcome) {
        // Closed by the owner when it was told something before this.
        guard !hasEnded else { return }
        stopWatching()
        // Not afterwards: the owner may close it.
        if isConnected { secured?.markEnd() }
        owner.flow(self, did: outcome)
    }

    /// Closes the socket in this very moment; nothing is told afterwards.
    ///
    /// The remote gets a FIN and not a reset, which could overtake what was sent just before. With `aborting` it gets
    /// nothing that must be answered: the local address is gone, and the kernel would keep a closed socket for minutes
    /// to repeat a FIN that cannot leave.
    func close(aborting: Bool) {
        registration?.cancel()
        registration = nil
        hasEnded = true
        guard let socket = socket.take() else { return leaveStore() }
        let number = socket.number
        if let secured = secured.take() {
            // `dialtone-tls` may have asked for the opposite.
            Self.setLinger(of: number, aborting)
            // What is to be sent yet cannot leave.
            if aborting || secured.hasTakenAll || !isConnected { shutdown(number, CInt(SHUT_RDWR)) }
            secured.close()
        } else if let user = socket.user {
            UserThreads.begin(for: user) {
                // Who still holds a descriptor reads what came before, and then the end.
                shutdown(number, CInt(SHUT_RDWR))
                // A client may have asked for the opposite.
                Self.setLinger(of: number, aborting)
            }
        } else if aborting {
            Self.setLinger(of: number, true)
        } else if local != nil {
            // Closing over bytes that nobody read sends a reset (RFC 1122, 4.2.2.13). Discarded without a copy
            // (tcp(7)), as far as they have come by now.
            recv(number, nil, number.unreadBytes ?? 0, CInt(MSG_TRUNC | MSG_DONTWAIT))
            // The remote is to hear of the end now, not when the store has closed its copy.
            if stored != nil { shutdown(number, CInt(SHUT_RDWR)) }
        }
        socket.close()
        leaveStore()
    }

    // MARK: - Beyond this process

    /// Leaves copies of its descriptors in the store, unless they are there already.
    func keep(in store: any FlowStore) {
        guard stored == nil, let socketNumber, secured?.outlivesAgent ?? true else { return }
        if let number = store.keep([socketNumber] + (secured?.numbers ?? [])) { stored = (store, number) }
    }

    /// The store has had a copy since an earlier process left it there, under this number.
    func isKept(in store: any FlowStore, as number: UInt64) { stored = (store, number) }

    /// The socket ends with this process.
    func leaveStore() {
        if let stored = stored.take() { stored.store.discard(stored.number) }
    }

    /// Under which number the store has a copy of the socket; `nil` for a flow that ends with this process.
    var storeNumber: UInt64? { stored?.number }

    // MARK: - Input

    /// Calls `handler` whenever bytes arrive, from now on, until ``stopAwaitingInput()``.
    ///
    /// - Parameter orRoom: whether it is called, too, when there is room to write that was not there before.
    func awaitInput(orRoom: Bool = false, _ handler: @escaping @AgentQueue () -> Void) {
        inputArrived = handler
        awaitsRoom = orRoom
        var interest: Poller.Readiness = [.readable, .peerClosed, .edgeTriggered]
        if orRoom { interest.insert(.writable) }
        if let secured {
            secured.awaitInput(interest) { [weak self] in self?.hear($0) }
        } else {
            registration?.update(interest)
        }
    }

    /// Whether somebody is told of bytes.
    var awaitsInput: Bool { inputArrived != nil }

    /// The bytes are the client's again, and their arrival is nobody's concern.
    func stopAwaitingInput() {
        guard inputArrived != nil else { return }
        inputArrived = nil
        awaitsRoom = false
        if let secured { secured.stopAwaitingInput() } else { registration?.update([.peerClosed, .edgeTriggered]) }
    }

    // MARK: - What can be asked

    /// The number of the TCP socket; `nil` for a flow that is closed.
    var socketNumber: CInt? {
        switch socket {
        case .some(let socket): socket.number
        case .none: nil
        }
    }

    /// The number of what is read and written: the socket or, with TLS, the client's end of the pair.
    var number: CInt? { secured?.number ?? socketNumber }

    /// The user whose clients have, or had, what is read and written.
    var sharer: UInt32? {
        if secured != nil { return owner.user }
        switch socket {
        case .some(let socket): return socket.user
        case .none: return nil
        }
    }

    // MARK: - The client's turn

    /// Gives a client the socket: a descriptor of it, or with TLS of the end of the pair.
    /// The flow stays watched for its end.
    ///
    /// - Throws: `EMFILE` or `ENFILE` when descriptors have run out.
    func handOver() throws(SystemError) -> OwnedDescriptor {
        try UserThreads.checkRoom(for: owner.user)
        defer { noteHandover() }
        if let secured { return try secured.clientsEnd() }
        let own: OwnedDescriptor
        switch socket {
        case .some(let socket): own = try socket.duplicate()
        case .none: throw SystemError("handing over the socket", code: EBADF)
        }
        // From here on a client may have it.
        let copy = own.shared(with: owner.user)
        if let own = socket.take() { socket = own.shared(with: owner.user) }
        // Of the open file description, which both share: this process says for each call that it does not wait.
        ask(()) { number in
            let flags = fcntl(number, F_GETFL)
            if flags & O_NONBLOCK != 0 { _ = fcntl(number, F_SETFL, flags & ~O_NONBLOCK) }
        }
        return copy
    }

    /// Nobody has it any more: what the client that had it has done on it is of no interest.
    func takeBack() { handed = .toNobody }

    private func noteHandover() {
        guard case .toNobody = handed else { return }
        guard let progress, !progress.isAhead else { return handed = .unknown }
        handed = .at(progress)
    }

    /// What the client that has the flow, or had it last, has done on it.
    var touch: Touch {
        switch handed {
        case .touched: .touched
        case .at(let start): progress?.touch(since: start) ?? .unknown
        case .toNobody, .unknown: .unknown
        }
    }

    /// Watches for nothing any more. How far the stream is shows by another measure from then on, in which what is
    /// known of the client's part is put.
    private func stopWatching() {
        guard !hasEnded else { return }
        let touch = touch
        registration?.cancel()
        registration = nil
        hasEnded = true
        switch touch {
        case .untouched: handed = progress.map { .at($0) } ?? .toNobody
        case .touched: handed = .touched
        case .unknown: handed = .unknown
        }
    }

    // MARK: - After its end

    /// Ends the flow, but for what it has received: that is there for the client to take.
    func finish() {
        stopWatching()
        guard let number else { return }
        if let secured {
            if secured.hasTakenAll, let socketNumber { shutdown(socketNumber, CInt(SHUT_RDWR)) }
            return secured.finish()
        }
        guard let sharer else { return _ = shutdown(number, CInt(SHUT_RDWR)) }
        UserThreads.begin(for: sharer) { shutdown(number, CInt(SHUT_RDWR)) }
    }

    /// Ends the flow, but for what it has received: that is there to be taken, or is delivered where somebody has it.
    func retire(isHeld: Bool) {
        finish()
        if !isHeld { takeBack() }
    }

    private func localEndpoint() throws(SystemError) -> Endpoint {
        switch socket {
        case .some(let socket): try Endpoint.local(of: socket)
        case .none: throw SystemError("asking for the socket's local address", code: EBADF)
        }
    }

    /// The error that the kernel holds for the socket, if any; asking for it clears it.
    private func pendingFailure() -> FlowFailure? {
        socketNumber?.pendingError.map { FlowFailure(SystemError("the socket to \(remote)", code: $0)) }
    }
}
