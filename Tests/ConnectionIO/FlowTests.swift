// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnectionIO

/// Hears what becomes of flows.
@AgentQueue
final class Listener: FlowOwner {
    let label: ConnectionLabel? = nil
    let user: UInt32 = 4001
    private let inbox = Inbox<Flow.Outcome>()

    func flow(_ flow: Flow, did outcome: Flow.Outcome) { inbox.put(outcome) }

    func next() async -> Flow.Outcome? { await inbox.next() }
}

extension FlowRequest {
    static func to(_ remote: Endpoint, source: IPAddress? = nil, options: SocketOptions = .usual) -> FlowRequest {
        FlowRequest(epoch: 1, remote: remote, source: source, options: options)
    }
}

extension SocketOptions {
    static let usual = SocketOptions(keepalive: KeepalivePolicy(), userTimeout: .seconds(150))
}

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct FlowTests {
    @Test(arguments: [IPAddress.loopback, .loopbackV6])
    func `a flow connects and knows its ends`(address: IPAddress) async throws {
        guard address.family == .v4 || FileSystem.hasIPv6 else { return print("skipped: this kernel has no IPv6") }
        let server = try LoopbackServer(address)
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        guard case .connected(let local, let remote, _) = await listener.next() else {
            Issue.record("not connected")
            return
        }
        #expect(remote == server.endpoint)
        #expect(local.address == address)
        #expect(local.port != 0)
        #expect(try #require(flow.lastAcknowledgement(withData: true)) <= BootClock.now())
        flow.close(aborting: false)
    }

    @Test func `the socket is set up as asked`() async throws {
        let server = try LoopbackServer()
        let keepalive = KeepalivePolicy(idle: .seconds(50), interval: .seconds(7), count: 4)
        let options = SocketOptions(keepalive: keepalive, userTimeout: .milliseconds(78_500))
        let flow = try Flow(.to(server.endpoint, options: options), owner: Listener())
        let tcp = CInt(IPPROTO_TCP)
        #expect(option(flow.number, SOL_SOCKET, SO_KEEPALIVE) == 1)
        #expect(option(flow.number, tcp, TCP_KEEPIDLE) == 50)
        #expect(option(flow.number, tcp, TCP_KEEPINTVL) == 7)
        #expect(option(flow.number, tcp, TCP_KEEPCNT) == 4)
        #expect(option(flow.number, tcp, TCP_USER_TIMEOUT) == 78_500)
        #expect(option(flow.number, tcp, TCP_NODELAY) == 1)
        let number = try #require(flow.number)
        #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)

        try flow.configure(SocketOptions(keepalive: nil, userTimeout: .seconds(20)))
        #expect(option(flow.number, SOL_SOCKET, SO_KEEPALIVE) == 0)
        #expect(option(flow.number, tcp, TCP_USER_TIMEOUT) == 20_000)
        flow.close(aborting: false)
    }

    @Test func `it is bound to its source`() async throws {
        let server = try LoopbackServer()
        let source = IPAddress(v4: 0x7F00_0009)
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint, source: source), owner: listener)
        let peer = try server.accept()
        #expect(peer.remoteAddress == source)
        guard case .connected(let local, _, _) = await listener.next() else {
            Issue.record("not connected")
            return
        }
        #expect(local.address == source)
        flow.close(aborting: false)
    }

    @Test func `a source that is not there fails on the spot`() throws {
        #expect(throws: FlowFailure.addressNotAvailable) {
            try Flow(.to(Endpoint(address: .loopback, port: 9), source: .nobodys), owner: Listener())
        }
    }

    @Test func `a port that nobody listens on refuses`() async throws {
        let server = try LoopbackServer(backlog: nil)
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        expect(await listener.next(), is: .connectFailed(.refused))
        flow.close(aborting: false)
    }

    @Test func `the remote's close is told and its bytes are left`() async throws {
        let (flow, listener, peer) = try await connected()
        peer.send("hello")
        peer.close()
        expect(await listener.next(), is: .remoteClosed)
        #expect(flow.unreadBytes == 5)
        flow.close(aborting: false)
        #expect(flow.unreadBytes == 0)
    }

    @Test func `a reset is told as one`() async throws {
        let (flow, listener, peer) = try await connected()
        peer.reset()
        expect(await listener.next(), is: .failed(.reset))
        flow.close(aborting: false)
    }

    @Test func `a close that comes with the connect is told after it`() async throws {
        let server = try LoopbackServer()
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        // The handshake is the kernel's; nothing of the flow has run on the queue since.
        try server.accept().close()
        guard case .connected = await listener.next() else {
            Issue.record("not connected")
            return
        }
        expect(await listener.next(), is: .remoteClosed)
        flow.close(aborting: false)
    }

    @Test func `a reset that comes with the connect fails the dial`() async throws {
        let server = try LoopbackServer()
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        try server.accept().reset()
        expect(await listener.next(), is: .connectFailed(.reset))
        flow.close(aborting: false)
    }

    @Test func `closing sends a fin even over bytes that nobody read`() async throws {
        let (flow, _, peer) = try await connected()
        peer.send("unread")
        // On loopback the bytes are there when send returns; asking proves it.
        #expect(flow.unreadBytes == 6)
        flow.close(aborting: false)
        #expect(try peer.receive() == .closed)
    }

    @Test func `aborting leaves nothing to answer`() async throws {
        let (flow, _, peer) = try await connected()
        flow.close(aborting: true)
        #expect(try peer.receive() == .reset)
    }

    @Test func `after its close nothing is told`() async throws {
        let server = try LoopbackServer()
        let listener = Listener()
        let closed = try Flow(.to(server.endpoint), owner: listener)
        closed.close(aborting: false)
        closed.close(aborting: false)
        let open = try Flow(
            FlowRequest(epoch: 2, remote: Endpoint(address: .loopback, port: 0), options: .usual), owner: listener)
        expect(await listener.next(), is: .connectFailed(.refused))
        open.close(aborting: false)
    }

    @Test func `a mark is set or the dial fails with the kernel's words`() throws {
        let server = try LoopbackServer()
        var options = SocketOptions.usual
        options.mark = 77
        if try canSetMark() {
            let flow = try Flow(.to(server.endpoint, options: options), owner: Listener())
            #expect(option(flow.number, SOL_SOCKET, SO_MARK) == 77)
            flow.close(aborting: false)
        } else {
            #expect(
                throws: FlowFailure.other(
                    code: EPERM, text: "setting the firewall mark 77: Operation not permitted")
            ) { try Flow(.to(server.endpoint, options: options), owner: Listener()) }
        }
    }

    @Test func `the socket is given to its user or the dial fails`() throws {
        let server = try LoopbackServer()
        var options = SocketOptions.usual
        options.user = 4711
        do {
            let flow = try Flow(.to(server.endpoint, options: options), owner: Listener())
            var status = stat()
            fstat(try #require(flow.number), &status)
            #expect(status.st_uid == 4711)
            flow.close(aborting: false)
        } catch let FlowFailure.other(code, text) {
            // The latter where there is no such user: in a user namespace of a single one, even root gets that.
            #expect([EPERM, EINVAL].contains(code))
            #expect(text == "giving the socket to user 4711: \(SystemError.text(code))")
        }
        options.user = geteuid()
        try Flow(.to(server.endpoint, options: options), owner: Listener()).close(aborting: false)
    }

    // MARK: -

    private func connected() async throws -> (Flow, Listener, Peer) {
        let server = try LoopbackServer()
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        let peer = try server.accept()
        _ = await listener.next()
        return (flow, listener, peer)
    }

    private func canSetMark() throws -> Bool {
        let scratch = OwnedDescriptor(socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        var mark: CInt = 1
        return setsockopt(scratch.number, SOL_SOCKET, SO_MARK, &mark, socklen_t(MemoryLayout<CInt>.size)) == 0
    }
}

enum FileSystem {
    /// Whether the kernel has IPv6 and the loopback interface its address.
    static var hasIPv6: Bool { (try? LoopbackServer(.loopbackV6)) != nil }
}
