// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc

/// `dialtone-tls`, and a server whose certificate is trusted.
final class RelayFixture {
    static let name = "sip.example.com"

    let relay: TestRelay
    let policy: TLSPolicy
    let server: TestServer
    private let files = TestFiles()

    init(workers: Int = 1) {
        relay = TestRelay(workers: workers)
        let authority = TestCertificate(.authority("Test Authority"))
        server = TestServer(
            TestCertificate(.init("server", alternatives: "DNS:\(Self.name)"), issuer: authority))
        var policy = TLSPolicy()
        policy.authorities = files.write(authority.pem, to: "authority.pem", mode: 0o644)
        self.policy = policy
    }
}

/// One flow of `dialtone-tls` with the three who are at its ends: the test is the agent, the client and the server.
final class RelayLink {
    private(set) var channel: MessageSocket?
    /// The client's end of the pair; -1 once it is closed.
    private(set) var client: CInt
    /// The server's end of the line; -1 once it is closed.
    private(set) var line: CInt
    let server: TestServer.Session
    private(set) var words: [RelayWord] = []
    /// What the client has read, and what ended that: 0 for the end of the stream, or the error.
    private(set) var read: [UInt8] = []
    private(set) var clientsEnd: CInt?
    private let counts: OwnedDescriptor
    private var unsent: [UInt8] = []

    private static let place = StreamCounts.Place(number: 3, mark: 7)

    /// Asks for a flow.
    ///
    /// - Parameter socket: what is passed as its socket; `nil` for one end of a line.
    init(_ fixture: RelayFixture, user: UInt32 = 1000, socket: CInt? = nil) throws {
        let (ours, theirs) = socketPair()
        let (client, stream) = socketPair()
        (line, self.client) = (ours, client)
        defer { for number in [theirs, stream] { close(number) } }
        let opened = try SettingsFiles(of: fixture.policy)
        counts = try .fileInMemory("counts")
        server = fixture.server.accept()
        let channel = MessageSocket(try fixture.relay.connect())
        let request = SecuringRequest(
            TLSRequest(to: .name(RelayFixture.name), under: fixture.policy), user: user, connection: "office",
            place: Self.place)
        try channel.send(request.encoded, [socket ?? theirs, stream, counts.number] + opened.numbers)
        self.channel = consume channel
    }

    deinit { for number in [line, client] where number >= 0 { close(number) } }

    /// How far it is counted to be.
    var counted: StreamCounts { StreamCounts(of: counts, at: Self.place) ?? StreamCounts() }

    /// Whether it was secured.
    var isSecured: Bool {
        if case .secured = words.first { true } else { false }
    }

    // MARK: - What the three do

    /// The server sends what it has to, as far as the line takes it.
    private func sendFromServer() {
        unsent += server.takeOutput()
        guard !unsent.isEmpty, line >= 0 else { return }
        let count = send(line, unsent, unsent.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
        guard count > 0 else { return }
        unsent.removeFirst(count)
        carried += UInt64(count)
    }

    /// How many bytes of the server's are on the line, or were.
    private(set) var carried: UInt64 = 0

    /// So many of the bytes that the server has to send, and no more.
    func sendFromServer(_ count: Int) {
        unsent += server.takeOutput()
        let part = Array(unsent.prefix(count))
        let sent = send(line, part, part.count, CInt(MSG_NOSIGNAL))
        precondition(sent == part.count, "the line is empty")
        unsent.removeFirst(sent)
        carried += UInt64(sent)
    }

    /// Whether `dialtone-tls` has taken all that is on the line.
    var isLineEmpty: Bool {
        var count: CInt = 0
        return ioctl(line, UInt(TIOCOUTQ), &count) == 0 && count == 0
    }

    /// Whether all is counted as done with that the server has sent.
    var isSettled: Bool { counted.settled == .init(bytes: carried) }

    /// How much the server has that the line does not take.
    var backlog: Int { unsent.count }

    private func receiveAtServer() {
        guard line >= 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(line, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        if count > 0 { server.receive(Array(buffer[..<count])) }
        if count == 0 { hasLineEnded = true }
    }

    /// Whether the server has read the end of the line.
    private(set) var hasLineEnded = false

    func hangUp() {
        close(line)
        line = -1
    }

    /// The client reads so much at most.
    func readSome(_ most: Int = 65_536) {
        guard client >= 0, clientsEnd == nil else { return }
        var buffer = [UInt8](repeating: 0, count: most)
        let count = recv(client, &buffer, most, CInt(MSG_DONTWAIT))
        if count > 0 { read += buffer[..<count] }
        if count == 0 { clientsEnd = 0 }
        if count < 0, errno != EAGAIN { clientsEnd = errno }
    }

    /// The client writes; says how much was taken.
    func write(_ bytes: some Collection<UInt8>) -> Int {
        let bytes = Array(bytes)
        return send(client, bytes, bytes.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
    }

    func closeClient() {
        close(client)
        client = -1
    }

    /// The agent ends the flow.
    func finish() { try? channel?.send([1]) }

    /// The agent lets go of it.
    func letGo() { channel = nil }

    /// The agent has heard of the end.
    func markEnd() { _ = write([0]) }

    private func hear() {
        guard channel != nil else { return }
        while true {
            guard case .message(let bytes, _)? = channel?.receive() else { return }
            if let word = try? RelayWord(bytes[...]) { words.append(word) }
        }
    }

    /// Whether the channel has ended: both directions are shut.
    var isForgotten: Bool {
        guard let number = channel?.number else { return true }
        var entry = pollfd(fd: number, events: 0, revents: 0)
        return poll(&entry, 1, 0) == 1
    }

    /// Goes on until this is so; false where it is not for half a minute.
    func run(reading: Bool = false, until isDone: () -> Bool) -> Bool {
        let deadline = BootClock.now() + .seconds(30)
        while !isDone() {
            guard BootClock.now() < deadline else { return false }
            step()
            if reading { readSome() }
            sched_yield()
        }
        return true
    }

    /// Carries what there is, once.
    func step() {
        sendFromServer()
        receiveAtServer()
        hear()
    }
}
