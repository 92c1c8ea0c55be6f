// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import Glibc
internal import NetworkPath
internal import Platform
internal import TLS

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
/// wakes the process. One with TLS is secured before it counts as connected, and read as far as TLS has something to
/// say of its own; what that takes is done in the turns of the connection's user. A flow lives until
/// ``close(aborting:)``, whoever holds it.
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
    /// Shared, from when a client may have it (``OwnedDescriptor``).
    private var descriptor: OwnedDescriptor?
    private(set) var registration: Poller.Registration?
    /// What came of a flow with TLS that waits for its turn, and whether it does.
    var heard: Poller.Readiness = []
    var isInLine = false
    private(set) var isConnected = false
    /// Whether the remote or the line ended it, and not this process.
    private var isEndedElsewhere = false
    /// The socket's own end, once it is connected.
    private var local: Endpoint?
    /// Whether what arrives is for a client that sleeps.
    var isParked = false {
        didSet {
            relay?.isDelivering = !isParked
            if isParked { handed = .toNobody }
        }
    }
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
    /// What the client of a flow with TLS reads and writes, from when one first took it.
    private(set) var relay: Relay?
    /// What it is secured with, from its connect on.
    private(set) var security: SecuredStream?
    private(set) var secure: Securing?
    var options: SocketOptions
    /// Where a copy of the socket is kept for a later process, and under which number.
    private var stored: (store: any FlowStore, number: UInt64)?
    /// Told that there is something to read, while somebody awaits it.
    private var inputArrived: (@AgentQueue () -> Void)?
    /// Whether it is told, too, that there is room to write.
    private var awaitsRoom = false
    /// Told that the client took some of what an ended flow had received, and whether there is nothing more to deliver.
    private var delivered: (@AgentQueue (_ isAll: Bool) -> Void)?

    /// Begins a TLS session. Not before the socket is connected: a session spends a ticket.
    typealias Securing = @AgentQueue () throws(TLSFailure) -> TLSSession

    /// Makes the socket and begins to connect.
    ///
    /// - Parameter secure: begins the session of a flow with TLS; `nil` for one without.
    /// - Throws: what the kernel refused on the spot. Nothing is told to the owner then.
    init(_ request: FlowRequest, owner: any FlowOwner, secure: Securing? = nil) throws(FlowFailure) {
        epoch = request.epoch
        remote = request.remote
        options = request.options
        self.owner = owner
        self.secure = secure
        let descriptor = try request.connectingSocket()
        let number = descriptor.number
        self.descriptor = consume descriptor
        do throws(SystemError) {
            // The watch ends with close, which ends this reference to the flow too.
            registration = try Poller.shared.register(number, [.writable, .edgeTriggered]) { self.hear($0) }
        } catch {
            throw .other(code: error.code, text: error.description)
        }
    }

    /// A flow out of a socket that is connected, made elsewhere.
    init(
        adopting descriptor: consuming OwnedDescriptor, _ adoption: Adoption, _ options: SocketOptions,
        owner: any FlowOwner
    ) throws(SystemError) {
        epoch = adoption.epoch
        remote = adoption.remote
        local = adoption.local
        self.options = options
        self.owner = owner
        isConnected = true
        if adoption.ownership.holder == .client { handed = .unknown }
        let number = descriptor.number
        self.descriptor = descriptor.shared(with: owner.user)
        try UserThreads.checkRoom(for: owner.user)
        registration = try Poller.shared.register(number, [.peerClosed, .edgeTriggered]) { self.hear($0) }
    }

    /// What a flow that has ended had received, made of a socket that an earlier process left.
    init(
        ended descriptor: consuming OwnedDescriptor, epoch: UInt64, to remote: Endpoint, _ options: SocketOptions,
        owner: any FlowOwner
    ) {
        self.epoch = epoch
        self.remote = remote
        self.options = options
        self.owner = owner
        isConnected = true
        isParked = true
        self.descriptor = descriptor.shared(with: owner.user)
    }

    /// What ends the process while it reads what the server sent is held against the connection.
    func noted(_ readiness: Poller.Readiness) {
        guard let label = owner.label else { return take(readiness) }
        BlackBox.noteBytes(of: label.name, label.user) { take(readiness) }
    }

    private func take(_ readiness: Poller.Readiness) {
        if local == nil {
            takeConnectOutcome()
        } else if let security {
            carry(security, readiness)
        } else {
            if readiness.contains(.readable) || (awaitsRoom && readiness.contains(.writable)) { inputArrived?() }
            takeEnd(readiness)
        }
    }

    private func takeConnectOutcome() {
        if let failure = pendingFailure() { return end(.connectFailed(failure)) }
        do throws(SystemError) {
            let local = try localEndpoint()
            self.local = local
            if let secure { return begin(secure, at: local) }
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
        guard registration != nil else { return }
        if let failure = pendingFailure() {
            end(.failed(failure))
        } else if !readiness.isDisjoint(with: [.peerClosed, .hangUp, .error]) {
            end(.remoteClosed)
        }
    }

    private func begin(_ secure: Securing, at local: Endpoint) {
        self.secure = nil
        owner.flow(self, did: .securing(local: local))
        do throws(TLSFailure) {
            let security = SecuredStream(try secure())
            self.security = security
            carry(security, .writable)
        } catch {
            fail(.tls(error))
        }
    }

    /// Has TLS do what it has to, and tells what comes of it.
    private func carry(_ security: SecuredStream, _ readiness: Poller.Readiness) {
        // Closed by the owner when it was told of `securing`.
        guard let number = number else { return }
        security.carry(over: number, reading: !readiness.isDisjoint(with: [.readable, .peerClosed, .hangUp]))
        if let failure = pendingFailure() ?? security.failure.map({ FlowFailure($0) }) {
            // A server that refuses a certificate says so and may reset the connection in the same moment: the reason
            // still lies in the socket.
            security.takeLastWords(from: number)
            switch security.state {
            case .handshaking, .open: return fail(failure)
            case .closed: return end(.remoteClosed)
            case .failed(let word): return fail(.tls(word))
            }
        }
        switch security.state {
        case .handshaking: break
        case .open:
            if !isConnected, let local {
                isConnected = true
                owner.flow(self, did: .connected(local: local, remote: remote, security: security.summary))
            }
            if let relay { exchange(relay, security, over: number) }
            if security.unreadBytes > 0 || (awaitsRoom && security.takesPlaintext) { inputArrived?() }
            // With plaintext that nobody read, the end is seen by the kernel's word alone, as without TLS.
            if security.unreadBytes > 0 { takeEnd(readiness) }
        case .closed, .failed: break
        }
        // Anew: behind what was read just now the server may have ended it.
        switch security.state {
        case .handshaking, .open: registration?.update(security.interest)
        case .closed: end(.remoteClosed)
        case .failed(let failure): fail(.tls(failure))
        }
    }

    private func fail(_ failure: FlowFailure) {
        end(isConnected ? .failed(failure) : .connectFailed(failure))
    }

    /// Tells the last outcome. The socket stays open until the owner closes it; there is nothing more to watch.
    private func end(_ outcome: Outcome) {
        // Closed by the owner when it was told something before this.
        guard registration != nil else { return }
        stopWatching()
        isEndedElsewhere = true
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
        delivered = nil
        let owed = owesClient
        guard let descriptor = descriptor.take() else { return }
        if owed || isCutOff { relay?.cut() } else { relay?.close() }
        relay = nil
        let number = descriptor.number
        if let user = descriptor.user {
            UserThreads.begin(for: user) {
                // Who still holds a descriptor reads what came before, and then the end.
                shutdown(number, CInt(SHUT_RDWR))
                // A client may have asked for the opposite.
                Self.setLinger(of: number, aborting)
            }
        } else if aborting {
            Self.setLinger(of: number, true)
        } else if local != nil {
            security?.close(over: number)
            // Closing over bytes that nobody read sends a reset (RFC 1122, 4.2.2.13). Discarded without a copy
            // (tcp(7)), as far as they have come by now.
            recv(number, nil, Self.queued(number), CInt(MSG_TRUNC | MSG_DONTWAIT))
            // The remote is to hear of the end now, not when the store has closed its copy.
            if stored != nil { shutdown(number, CInt(SHUT_RDWR)) }
        }
        descriptor.close()
        leaveStore()
    }

    // MARK: - Beyond this process

    /// Leaves a copy of the socket in the store, unless it is there already or would be of no use: of a flow with TLS,
    /// the keys are in this process alone.
    func keep(in store: any FlowStore) {
        guard stored == nil, security == nil, secure == nil else { return }
        switch descriptor {
        case .some(let descriptor):
            if let number = store.keep(descriptor) { stored = (store, number) }
        case .none: break
        }
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
        let interest: Poller.Readiness = [.readable, .peerClosed, .edgeTriggered]
        if security == nil { registration?.update(orRoom ? interest.union(.writable) : interest) }
    }

    /// Whether somebody is told of bytes.
    var awaitsInput: Bool { inputArrived != nil }

    /// The bytes are the client's again, and their arrival is nobody's concern.
    func stopAwaitingInput() {
        guard inputArrived != nil else { return }
        inputArrived = nil
        awaitsRoom = false
        if security == nil { registration?.update([.peerClosed, .edgeTriggered]) }
    }

    // MARK: - What can be asked

    /// The socket's descriptor; `nil` for a flow that is closed.
    var number: CInt? {
        switch descriptor {
        case .some(let descriptor): descriptor.number
        case .none: nil
        }
    }

    /// The user whose clients have, or had, the socket.
    var sharer: UInt32? {
        switch descriptor {
        case .some(let descriptor): descriptor.user
        case .none: nil
        }
    }

    // MARK: - The client's turn

    /// Gives a client the socket: a descriptor of it, or with TLS one end of a pair behind which this process encrypts.
    /// The flow stays watched for its end.
    ///
    /// - Throws: `EMFILE` or `ENFILE` when descriptors have run out.
    func handOver() throws(SystemError) -> OwnedDescriptor {
        guard let number else { throw SystemError("handing over the flow", code: EBADF) }
        try UserThreads.checkRoom(for: owner.user)
        guard let security else {
            let own: OwnedDescriptor
            switch descriptor {
            case .some(let descriptor): own = try descriptor.duplicate()
            case .none: throw SystemError("handing over the flow", code: EBADF)
            }
            // From here on a client may have it.
            let copy = own.shared(with: owner.user)
            if let own = descriptor.take() { descriptor = own.shared(with: owner.user) }
            // Of the open file description, which both share: this process says for each call that it does not wait.
            ask(()) { number in
                let flags = fcntl(number, F_GETFL)
                if flags & O_NONBLOCK != 0 { _ = fcntl(number, F_SETFL, flags & ~O_NONBLOCK) }
            }
            noteHandover()
            return copy
        }
        let relay: Relay
        if let known = self.relay {
            relay = known
        } else {
            relay = try Relay(for: owner.user) { self.standInLine() }
            self.relay = relay
        }
        if hasEnded { relay.endInput() }
        let copy = try relay.clientsEnd()
        noteHandover()
        if hasEnded {
            passOn()
        } else {
            exchange(relay, security, over: number)
            registration?.update(security.interest)
        }
        return copy
    }

    private func noteHandover() {
        isParked = false
        if case .toNobody = handed, let progress { handed = .at(progress) }
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
        guard let registration else { return }
        let touch = touch
        registration.cancel()
        self.registration = nil
        switch touch {
        case .untouched: handed = progress.map { .at($0) } ?? .toNobody
        case .touched: handed = .touched
        case .unknown: handed = .unknown
        }
    }

    // MARK: - After its end

    /// Whether there is nothing to be watched any more.
    var hasEnded: Bool { registration == nil }

    /// Ends the flow, but for what it has received: that is there for the client to take.
    func finish() {
        stopWatching()
        guard let number else { return }
        security?.close(over: number)
        guard let sharer else { return _ = shutdown(number, CInt(SHUT_RDWR)) }
        UserThreads.begin(for: sharer) { shutdown(number, CInt(SHUT_RDWR)) }
    }

    /// Ends the flow, but for what it has received: that is there to be taken, or is delivered where somebody has it.
    func retire(isHeld: Bool) {
        finish()
        guard isHeld else { return isParked = true }
        relay?.endInput()
        passOn()
    }

    /// Whether a client has the other end of the pair and is still to get some of what came. Without TLS it has the
    /// socket, and all that is in it.
    var owesClient: Bool {
        guard let security, relay != nil, !isParked else { return false }
        return security.unreadBytes > 0 || hasInput(for: security)
    }

    /// Ends the flow, and delivers what it has received as fast as its client reads. Nobody takes it again.
    ///
    /// - Parameter progressed: called whenever the client has read, with whether there is nothing more to be done: all
    ///   is delivered, or nobody is there to read it. Then the flow can be closed.
    func deliverRest(_ progressed: @escaping @AgentQueue (_ isAll: Bool) -> Void) {
        finish()
        delivered = progressed
        relay?.endInput()
        relay?.letGo()
        passOn()
    }

    /// Delivers what an ended flow has received, as far as the client has room for it.
    func passOn() {
        guard let security, let relay, let number, !isParked else { return }
        relay.deliver(security)
        if relay.hasRoom, hasInput(for: security) {
            let before = Self.queued(number)
            security.carry(over: number, reading: true)
            // The rest in a turn of its own; unless it cannot be read.
            if Self.queued(number) != before { return standInLine() }
        }
        if relay.hasRoom {
            // The server's last word may stand behind what was read.
            if isEndedElsewhere { security.carry(over: number, reading: true) }
            if isCutOff { relay.cut() } else { relay.close() }
        }
        delivered?(relay.hasRoom || relay.isDeserted)
    }

    /// Whether a stream with TLS has ended without the server's word that it ends there (RFC 8446, section 6.1): then
    /// something may be missing, and the client reads an error as on a socket that was reset.
    private var isCutOff: Bool {
        guard isEndedElsewhere, let security else { return false }
        return security.state != .closed
    }

    private func localEndpoint() throws(SystemError) -> Endpoint {
        switch descriptor {
        case .some(let descriptor): try Endpoint.local(of: descriptor)
        case .none: throw SystemError("asking for the flow's local address", code: EBADF)
        }
    }

    /// The error that the kernel holds for the socket, if any; asking for it clears it.
    private func pendingFailure() -> FlowFailure? {
        guard let number = number else { return nil }
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : FlowFailure(SystemError("the flow to \(remote)", code: code))
    }
}
