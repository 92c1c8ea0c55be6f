// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

/// What this process has of a flow with TLS beside the TCP socket: the client's end of the pair out of which plaintext
/// comes, and the channel over which `dialtone-tls` says what becomes of the flow. The keys are there.
@AgentQueue
final class SecuredStream {
    /// What each direction of the pair holds at most (`SO_SNDBUF`; the kernel doubles it for its own bookkeeping,
    /// socket(7)). Four of TLS's largest records.
    private static let capacity: CInt = 64 * 1024

    private let relay: RelayAccess
    /// Saved, so that what a client left unread is there for the next one.
    private let stream: OwnedDescriptor
    /// Who has or gets it.
    private let user: UInt32
    /// A copy of the other end, until it is known how the stream ends: that of a `dialtone-tls` which is killed would
    /// be a clean one for the client.
    private var theirs: OwnedDescriptor?
    private let channel: MessageSocket
    /// Whether it goes on when the service of this process ends.
    let outlivesAgent: Bool
    /// Where its ``StreamCounts`` are.
    let place: StreamCounts.Place
    private var registration: Poller.Registration?
    /// Whether `dialtone-tls` has not told anything yet.
    private var isNew = true
    /// Whether `dialtone-tls` has said that the server's part is over, or is no more.
    private(set) var hasTakenAll = false
    private var inputRegistration: Poller.Registration?

    /// Has a TCP socket that is connected secured.
    ///
    /// - Parameters:
    ///   - files: what ``SecuringRequest`` lists behind the first three.
    ///   - user: who gets the client's end.
    /// - Throws: what kept it from being asked for; `EAGAIN` where `dialtone-tls` has no room for one more just now.
    init(
        _ request: TLSRequest, _ socket: CInt, _ files: [CInt], of connection: String, for user: UInt32,
        by relay: RelayAccess
    ) throws(SystemError) {
        let way = try relay.connect()
        outlivesAgent = way.outlivesAgent
        let channel = MessageSocket(way.descriptor)
        let ends = try OwnedDescriptor.socketPair()
        for end in [ends.0, ends.1] { end.setSocketOption(SO_SNDBUF, to: Self.capacity) }
        let theirs = OwnedDescriptor(ends.1)
        stream = OwnedDescriptor(ends.0, sharedWith: user)
        self.user = user
        let place = try relay.takePlace()
        do throws(SystemError) {
            try channel.send(
                SecuringRequest(request, user: user, connection: connection, place: place).encoded,
                [socket, theirs.number, relay.countsNumber] + files)
        } catch {
            relay.giveBack(place)
            throw error
        }
        self.theirs = consume theirs
        self.place = place
        self.channel = channel
        self.relay = relay
    }

    /// One that an earlier process left.
    init(
        _ stream: consuming OwnedDescriptor, _ channel: consuming OwnedDescriptor, at place: StreamCounts.Place,
        for user: UInt32, by relay: RelayAccess
    ) {
        self.stream = stream.shared(with: user)
        self.user = user
        self.channel = MessageSocket(channel)
        outlivesAgent = true
        self.place = place
        self.relay = relay
        relay.claim(place)
    }

    deinit {
        let (relay, place) = (relay, place)
        AgentQueue.async { relay.giveBack(place) }
    }

    /// The number of the client's end.
    var number: CInt { stream.number }

    /// What a later process needs beside the TCP socket.
    var numbers: [CInt] { [stream.number, channel.number] }

    /// A descriptor of the client's end. Its reads wait, whatever the client before has left.
    func clientsEnd() throws(SystemError) -> OwnedDescriptor {
        let end = try stream.duplicate()
        let flags = fcntl(end.number, F_GETFL)
        if flags & O_NONBLOCK != 0 { _ = fcntl(end.number, F_SETFL, flags & ~O_NONBLOCK) }
        return end
    }

    /// How far the stream is; `nil` where nobody counts.
    var counts: StreamCounts? { relay.counts(at: place) }

    /// Whether `dialtone-tls` still has it: whatever it has not passed on is lost otherwise.
    var isServed: Bool {
        var entry = pollfd(fd: channel.number, events: 0, revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    // MARK: - What is heard

    /// Calls `handler` whenever there may be a word.
    func listen(_ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        registration = try Poller.shared.register(channel.number, [.readable, .edgeTriggered]) { _ in handler() }
    }

    /// What `dialtone-tls` says next; `nil` for nothing now.
    func nextWord() -> RelayWord? {
        guard !hasTakenAll else { return nil }
        let word: RelayWord
        switch channel.receive() {
        case .nothing: return nil
        case .message(let bytes, _):
            // Secured once, and ended once.
            let told = try? RelayWord(bytes[...])
            if case .secured? = told, !isNew {
                word = .ended(.socket(EPROTO))
            } else {
                word = told ?? .ended(.socket(EPROTO))
            }
            isNew = false
        // Of one that was not secured yet it is a failure as well.
        case .end: word = .ended(.socket(EOWNERDEAD))
        }
        switch word {
        case .secured: break
        case .failed, .ended:
            hasTakenAll = true
            registration?.cancel()
        }
        return word
    }

    /// Calls `handler` when there is input, or what else `interest` has.
    func awaitInput(_ interest: Poller.Readiness, _ handler: @escaping @AgentQueue (Poller.Readiness) -> Void) {
        if let inputRegistration { return inputRegistration.update(interest) }
        // Refused where there is no memory. The end, and whatever else is done with the flow, is heard of then.
        inputRegistration = try? Poller.shared.register(number, interest, handler)
    }

    /// Calls nobody any more.
    func stopAwaitingInput() {
        inputRegistration?.cancel()
        inputRegistration = nil
    }

    // MARK: - The end

    /// The server's part is over. Puts a byte into the stream that is none of the client's: `dialtone-tls` leaves it
    /// there where the stream ends in an error, so that the client reads one, and takes it out where it ends in order.
    /// Where it finds no room, there is something already.
    func markEnd() {
        Self.markEnd(of: number, for: user)
        // Behind it.
        if let theirs = theirs.take() { theirs.shared(with: user).close() }
    }

    /// The same, of a stream by its number.
    static func markEnd(of number: CInt, for user: UInt32) {
        UserThreads.begin(for: user) {
            _ = send(number, [0], 1, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
        }
    }

    /// What tells `dialtone-tls` that the flow is ended here.
    static let ending: [UInt8] = [1]

    /// Says the end to the server; what it has sent is delivered, however late it is read.
    func finish() {
        // One that is gone has ended it.
        try? channel.send(Self.ending)
    }

    /// Ends this process's part in it. A client that has its end still reads what has come, and then the end.
    func close() {
        finish()
        registration?.cancel()
        stopAwaitingInput()
    }
}

extension FlowFailure {
    /// What `dialtone-tls` said.
    init(_ failure: RelayFailure, of remote: Endpoint) {
        switch failure {
        case .tls(let failure): self = .tls(failure)
        case .socket(EOWNERDEAD): self = .securingEnded
        case .socket(let code): self.init(SystemError("the socket to \(remote)", code: code))
        }
    }
}
