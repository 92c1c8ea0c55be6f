// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import DialtoneTLS
internal import Glibc

/// One flow with TLS: a session between a TCP socket and one end of a pair of Unix sockets, out of whose other end its
/// client reads plaintext. Belongs to one thread.
///
/// Both directions push back: a client that does not read fills the pair, then one TLS record, then the socket, and the
/// server waits; a server that does not read fills the socket, then the session's output, then the pair, and the client
/// waits.
final class RelayedFlow {
    /// What of a flow its worker watches.
    enum Part: UInt64, CaseIterable {
        case socket, stream, channel
    }

    /// What came of a part, and what it is to be watched for.
    typealias Events = Poller.Readiness

    /// What is read at once: a record of TLS, which is more than a piece of the client's.
    static let bufferSize = TLSSession.inputLimit
    private static let clientsPiece = 16 * 1024

    /// On whose account it is.
    let user: UInt32
    private let socket: OwnedDescriptor
    /// Its client can have sent anything into it.
    private let stream: OwnedDescriptor
    private let channel: MessageSocket
    private let session: TLSSession
    private let countsFile: CountsFile
    private let place: StreamCounts.Place
    private var counts = StreamCounts()
    private var published = StreamCounts()
    /// How many bytes came from the socket.
    private var received: UInt64 = 0

    /// What has come since the last turn.
    var heard: [Part: Events] = [:]
    /// What its parts are watched for.
    var watched: [Part: Events] = [:]
    /// Whether it waits for a turn.
    var isInLine = false
    /// Whether there is nothing more to be done: it can be closed.
    private(set) var isOver = false
    /// Of one that has ended and that the agent has let go of: since when its client has taken nothing.
    private(set) var waitsSince: Duration?
    /// Whether there is something to write down, once there is time.
    private(set) var owesCount = false

    // What the agent knows, and what it has said.
    private var isOpen = false
    private var hasToldEnd = false
    private var isEndedHere = false
    private var hasSaidEnd = false
    private var isLetGo = false
    // What became of the socket.
    private var isSocketAtEnd = false
    private var socketError: CInt?
    // What became of the client's end of the pair.
    private var isClientDone = false
    private var isDeserted = false
    private var refusesClient = false

    /// Takes over what came with a request.
    init(
        _ request: SecuringRequest, _ socket: consuming OwnedDescriptor, _ stream: consuming OwnedDescriptor,
        counts: CountsFile, over channel: consuming MessageSocket, _ session: TLSSession
    ) {
        user = request.user
        place = request.place
        countsFile = counts
        self.session = session
        self.socket = socket
        self.stream = stream.shared(with: request.user)
        self.channel = channel
        self.stream.acceptDescriptors(false)
        self.stream.readUrgentInTurn()
    }

    /// The number of a part.
    func number(of part: Part) -> CInt {
        switch part {
        case .socket: socket.number
        case .stream: stream.number
        case .channel: channel.number
        }
    }

    // MARK: - A turn

    /// Does what can be done now, one buffer each way at most.
    func takeTurn(_ buffer: UnsafeMutableRawBufferPointer) {
        let heard = heard
        self.heard = [:]
        if heard[.channel] != nil { hearAgent() }
        if isOver { return }
        let isBroken = !heard[.socket, default: []].isDisjoint(with: [.error, .hangUp, .peerClosed])
        receive(buffer)
        send()
        tellOfHandshake()
        deliver(buffer)
        if heard[.stream] != nil || isEndedHere { takeFromClient(buffer) }
        if heard[.stream, default: []].contains(.hangUp) { isDeserted = true }
        send()
        countTurn()
        judge(isBroken: isBroken)
    }

    private func hearAgent() {
        while true {
            switch channel.receive() {
            case .nothing: return
            case .message:
                // The one word that the agent has: the flow is ended. Not by it, where the server's part was over.
                if hasToldEnd { break }
                isEndedHere = true
                // What was written is still taken; the client writes no more.
                shutdown(stream.number, CInt(SHUT_RD))
            case .end:
                isLetGo = true
                // Nobody waits for a handshake any more.
                if !isOpen { isOver = true }
                return
            }
        }
    }

    private func receive(_ buffer: UnsafeMutableRawBufferPointer) {
        guard session.wantsInput, !isSocketAtEnd else { return }
        let count = recv(socket.number, buffer.baseAddress, Self.bufferSize, CInt(MSG_DONTWAIT))
        if count > 0 {
            received += UInt64(count)
            return session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        // A socket that refuses what is sent says no more than what it has already.
        if count < 0, errno == EINTR || (errno == EAGAIN && socketError == nil) { return }
        if count < 0, errno != EAGAIN { socketError = errno }
        isSocketAtEnd = true
        session.receiveEnd()
    }

    /// Sends what waits to be sent, as far as the socket takes it. One that fails is still read to its end: a server
    /// that refuses a certificate says so and may reset the connection in the same moment.
    private func send() {
        guard session.pendingOutput > 0 else { return }
        var error = socketError
        session.drain { bytes in
            if error != nil { return bytes.count }
            let count = Glibc.send(socket.number, bytes.baseAddress, bytes.count, Self.sendFlags)
            if count >= 0 { return count }
            if errno == EAGAIN || errno == EINTR { return 0 }
            error = errno
            return bytes.count
        }
        socketError = error
        if session.pendingOutput == 0, error == nil { counts.sent = counts.taken }
    }

    private static let sendFlags = CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)

    private func tellOfHandshake() {
        guard !isOpen, let summary = session.summary else { return }
        isOpen = true
        tell(.secured(summary))
    }

    /// Delivers plaintext as far as there is room.
    private func deliver(_ buffer: UnsafeMutableRawBufferPointer) {
        while session.unreadPlaintext > 0 {
            let count = session.peek(into: buffer)
            guard count > 0 else { return }
            var taken = count
            if !isDeserted {
                counts.delivered += UInt64(count)
                publish(ahead: true)
                taken = max(Glibc.send(stream.number, buffer.baseAddress, count, Self.sendFlags), 0)
                isDeserted = taken == 0 && (errno == EPIPE || errno == ECONNRESET)
                counts.delivered -= UInt64(count - taken)
                if isDeserted { taken = count }
                if taken == 0 { return }
                if waitsSince != nil { waitsSince = BootClock.now() }
            }
            _ = session.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<taken]))
        }
    }

    private var takesFromClient: Bool {
        !isClientDone && !hasToldEnd && session.state == .open && session.pendingOutput == 0
    }

    private func takeFromClient(_ buffer: UnsafeMutableRawBufferPointer) {
        guard takesFromClient else { return }
        // Something is about to be taken; how much is known afterwards.
        counts.taken += 1
        publish(ahead: true)
        let count = stream.receiveBytes(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Self.clientsPiece]))
        counts.taken -= 1
        if count > 0 {
            counts.taken += UInt64(count)
            _ = session.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else if count == 0 {
            // The client has nothing more to say, and may still read.
            isClientDone = true
            counts.taken += 1
            session.close()
        }
    }

    /// Writes down how far it is. Not once the agent has let go of it: its place may be another flow's then.
    func publish(ahead: Bool = false) {
        counts.isAhead = ahead
        if !ahead { settle() }
        owesCount = false
        guard counts != published, !isLetGo else { return }
        published = counts
        counts.write(to: countsFile.descriptor, at: place)
    }

    /// Writes down what a turn did. If nothing of what it took is for the client, as with a part of a record, that
    /// waits until there is time: so a record that comes in many pieces costs no more calls than another.
    private func countTurn() {
        settle()
        counts.isAhead = false
        var delivered = published
        delivered.settled = counts.settled
        if counts == delivered { owesCount = counts != published } else { publish() }
    }

    /// Counts what has come as done with, unless plaintext of it waits for room in the pair.
    private func settle() {
        guard isOpen else { return }
        if serversEnd != nil {
            counts.settled = .all
        } else if session.unreadPlaintext == 0 {
            counts.settled = .init(bytes: received)
        } else if counts.settled == nil {
            counts.settled = .init(bytes: 0)
        }
    }

    // MARK: - The end

    private func judge(isBroken: Bool) {
        if let end = serversEnd {
            guard isOpen else {
                return fail(end ?? .tls(.endedInHandshake))
            }
            isSocketAtEnd = true
            tellOfEnd(isEndedHere ? nil : end)
            sayEnd()
        } else if isBroken, session.unreadPlaintext > 0 {
            // Of what stands behind plaintext that nobody reads, the kernel's word is all there is for now.
            tellOfEnd(socket.number.pendingError.map { .socket($0) })
        }
        if isEndedHere, isOpen { endHere() }
        if isDeserted { leave() }
        if hasToldEnd {
            refuseClient()
            deliverEnd()
        }
        if isLetGo, hasToldEnd || isEndedHere, waitsSince == nil { waitsSince = BootClock.now() }
    }

    /// How the server's part ended, behind all that it sent; `nil` while it has not, `.some(nil)` for in order.
    private var serversEnd: RelayFailure?? {
        switch session.state {
        case .handshaking, .open: return .none
        case .closed: return .some(nil)
        // That the stream ended is the socket's failure, where it failed.
        case .failed(.truncated), .failed(.endedInHandshake):
            if let socketError { return .some(.socket(socketError)) }
            fallthrough
        case .failed:
            guard case .failed(let failure) = session.state else { return .none }
            return .some(.tls(failure))
        }
    }

    private func tellOfEnd(_ failure: RelayFailure?) {
        guard !hasToldEnd else { return }
        hasToldEnd = true
        tell(.ended(failure))
    }

    /// Ends the flow for the agent: says so to the server once all that was written is sent. What has come is read on.
    private func endHere() {
        if isClientDone || socketError != nil, session.pendingOutput == 0 { sayEnd() }
    }

    /// Says the end to the server, as far as the socket takes it at once. The agent has the socket as well, so closing
    /// it here would not.
    private func sayEnd() {
        guard !hasSaidEnd else { return }
        hasSaidEnd = true
        session.close()
        send()
        shutdown(socket.number, CInt(SHUT_RDWR))
    }

    /// It came to nothing.
    func fail(_ failure: RelayFailure) {
        tell(.failed(failure))
        isOver = true
    }

    /// Nobody reads any more: once what was written is sent, it is over.
    private func leave() {
        guard isOpen, !hasToldEnd, socketError == nil else { return isOver = true }
        guard isClientDone, session.pendingOutput == 0 else { return }
        // By its client, as a socket that is closed.
        tellOfEnd(nil)
        sayEnd()
        isOver = true
    }

    /// What the client writes from now on is refused, as by a socket whose flow has ended.
    private func refuseClient() {
        guard !refusesClient else { return }
        if endsInOrder {
            refuseAndDrop()
        } else if stream.number.unreadBytes ?? 0 > 0 {
            // What is there, or else the byte that the agent puts there when it hears of the end, stays: a Unix socket
            // that is closed over bytes that nobody read resets the other end (`unix_release_sock` in the kernel's
            // net/unix/af_unix.c).
            shutdown(stream.number, CInt(SHUT_RD))
            refusesClient = true
        }
    }

    private func refuseAndDrop() {
        shutdown(stream.number, CInt(SHUT_RD))
        withUnsafeTemporaryAllocation(byteCount: Self.clientsPiece, alignment: 16) { buffer in
            while stream.receiveBytes(into: buffer) > 0 {}
        }
        refusesClient = true
    }

    /// Whether it is known that the stream ends in order behind what is still to be delivered.
    private var endsInOrder: Bool { isEndedHere || session.state == .closed }

    /// Ends the client's stream, once all is delivered.
    private func deliverEnd() {
        guard isSocketAtEnd, session.unreadPlaintext == 0 else { return }
        if endsInOrder {
            refuseAndDrop()
            // For the agent has a copy of this end.
            shutdown(stream.number, CInt(SHUT_RDWR))
        }
        if refusesClient || isDeserted { isOver = true }
    }

    /// Tells the agent. What one does not hear that ends, its successor finds in the channel.
    private func tell(_ word: RelayWord) {
        publish()
        if isLetGo { return }
        do throws(SystemError) {
            try channel.send(word.encoded)
        } catch {
            isLetGo = true
        }
    }

    // MARK: - What to watch for

    /// What a part is to be watched for now, beside its end; `nil` for not even that.
    func interest(in part: Part) -> Events? {
        switch part {
        case .channel:
            return isLetGo ? nil : .readable
        case .socket:
            if isSocketAtEnd { return nil }
            var events: Events = []
            if session.wantsInput { events.insert(.readable) }
            if session.pendingOutput > 0 { events.insert(.writable) }
            // While there is plaintext that nobody reads, for its end, once.
            if events.isEmpty { return hasToldEnd ? nil : .peerClosed }
            return events
        case .stream:
            if isDeserted, !takesFromClient { return nil }
            var events: Events = []
            if isOpen, takesFromClient || (hasToldEnd && !refusesClient) { events.insert(.readable) }
            if session.unreadPlaintext > 0 { events.insert(.writable) }
            return events
        }
    }
}
