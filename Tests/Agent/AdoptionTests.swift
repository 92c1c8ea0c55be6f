// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent

/// Sockets that clients bring, of whatever kind.
@Suite(.timeLimit(.minutes(5))) @AgentQueue
struct AdoptionTests {
    let fixture = ServiceFixture()
    let client: VarlinkConnection

    init() throws {
        fixture.network.becomeReachable()
        client = try fixture.client()
    }

    private func adopt(
        _ descriptors: VarlinkDescriptors?, name: String = "brought", at place: Int = 0, remote: String? = nil
    ) async throws -> Result<VarlinkAnswer<ConnectionsAPI.Adopt>, VarlinkCallError> {
        try await answer("an answer to Adopt") { done in
            client.callWithDescriptors(
                ConnectionsAPI.Adopt.self, .init(name: name, fileDescriptor: place, remote: remote), descriptors, done)
        }
    }

    private func adopt(
        _ socket: consuming OwnedDescriptor, name: String = "brought", remote: String? = nil
    ) async throws -> Result<VarlinkAnswer<ConnectionsAPI.Adopt>, VarlinkCallError> {
        let descriptors = VarlinkDescriptors()
        _ = descriptors.append(socket)
        return try await adopt(descriptors, name: name, remote: remote)
    }

    private func refusal<E: VarlinkErrorReply>(
        _ error: E.Type = E.self, in result: Result<VarlinkAnswer<ConnectionsAPI.Adopt>, VarlinkCallError>
    ) throws -> E {
        guard case .failure(.refused(let failure)) = result else {
            throw NothingCame(description: "a refusal, in place of \(result)")
        }
        return try #require(failure.decoded(as: E.self), "\(failure)")
    }

    // MARK: - What is refused

    nonisolated enum Kind: String, CaseIterable {
        case file, pipe, epoll, datagram, seqpacket, listening, unconnected, connectedHere, listeningHere

        func make() throws -> OwnedDescriptor {
            var ends: [CInt] = [-1, -1]
            let stream = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            let number: CInt
            switch self {
            case .file: number = open("/dev/null", O_RDONLY | O_CLOEXEC)
            case .pipe:
                guard Glibc.pipe(&ends) == 0 else { throw SystemError.last("making a pipe") }
                close(ends[1])
                number = ends[0]
            case .epoll:
                // Glibc's module leaves it out.
                typealias Create = @convention(c) (CInt) -> CInt
                guard let symbol = dlsym(nil, "epoll_create1") else { throw SystemError.last("finding epoll_create1") }
                number = unsafeBitCast(symbol, to: Create.self)(O_CLOEXEC)
            case .datagram: number = socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            case .seqpacket:
                let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
                guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemError.last("making a pair") }
                close(ends[1])
                number = ends[0]
            case .listening: return try LoopbackListener().duplicate()
            case .unconnected: number = socket(AF_INET, stream, 0)
            case .connectedHere:
                let pair = socketPair()
                close(pair.1)
                number = pair.0
            case .listeningHere:
                number = socket(AF_UNIX, stream, 0)
                // Bound to no name, the kernel gives it one (autobind, unix(7)).
                var address = sockaddr_un()
                address.sun_family = sa_family_t(AF_UNIX)
                let length = socklen_t(MemoryLayout<sa_family_t>.size)
                let result = withUnsafePointer(to: &address) { address in
                    address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, length) }
                }
                guard result == 0, listen(number, 1) == 0 else { throw SystemError.last("listening") }
            }
            guard number >= 0 else { throw SystemError.last("making a \(rawValue)") }
            return OwnedDescriptor(number)
        }

        var reason: String {
            switch self {
            case .file, .pipe, .epoll: "it is not a socket"
            case .datagram, .seqpacket, .connectedHere, .listeningHere: "it is not a TCP socket"
            case .listening: "it listens, and is connected to nobody"
            case .unconnected: "it is not connected"
            }
        }
    }

    @Test(arguments: Kind.allCases) func `what is no connected stream is refused with the reason`(kind: Kind)
        async throws
    {
        let error = try refusal(ConnectionsAPI.InvalidDescriptor.self, in: try await adopt(try kind.make()))
        #expect(error.reason == kind.reason)
        #expect(fixture.registry.count == 0)
    }

    @Test(arguments: [0, 1, -1]) func `where no descriptor is, the parameter is wrong`(place: Int) async throws {
        let error = try refusal(ServiceAPI.InvalidParameter.self, in: try await adopt(nil, at: place))
        #expect(error.parameter == "fileDescriptor")
    }

    @Test func `of a thousand descriptors the one that is fit stays, and no other`() async throws {
        let listener = try LoopbackListener()
        let socket = try listener.connect()
        let accepted = try listener.accept()
        var others: [End] = []
        /// Descriptors for a message, with `named` as the second.
        func luggage(_ count: Int, _ named: consuming OwnedDescriptor) throws -> VarlinkDescriptors {
            let descriptors = VarlinkDescriptors()
            var named = Optional(named)
            for place in 0..<count {
                if place == 1, let named = named.take() {
                    _ = descriptors.append(named)
                    continue
                }
                let pair = socketPair()
                _ = descriptors.append(OwnedDescriptor(pair.0))
                others.append(End(OwnedDescriptor(pair.1)))
            }
            return descriptors
        }
        /// Nobody has any of them any more.
        func expectEnds() async throws {
            for other in others { while other.isConnected { try await turn() } }
            others = []
        }
        for _ in 0..<250 {
            let result = try await adopt(try luggage(4, try Kind.file.make()), at: 1)
            #expect(try refusal(ConnectionsAPI.InvalidDescriptor.self, in: result).reason == "it is not a socket")
            // A user whose descriptors are closed slower than new ones come is hung up on.
            try await expectEnds()
        }
        expect(try await adopt(try luggage(4, socket), at: 1).get().reply.name, is: "brought")
        // More on one message than anybody needs is no call at all.
        guard case .failure(.hungUp) = try await adopt(try luggage(200, try Kind.file.make()), at: 1) else {
            Issue.record("it was answered")
            return
        }
        try await expectEnds()
        #expect(fixture.registry.visible(to: 0).first?.wire?.state == .ready)
        withExtendedLifetime(accepted.number) {}
    }

    /// Closing it would wait until its peer has taken everything, or for a thousand seconds.
    @Test func `a socket that lingers is refused without waiting for it`() async throws {
        try await fixture.open("taken")
        let socket = try LingeringSocket()
        let answer = try await adopt(OwnedDescriptor(socket.number), name: "taken")
        #expect(try refusal(ConnectionsAPI.NameTaken.self, in: answer).name == "taken")
        socket.hangUp()
    }

    // MARK: - What is taken

    @Test func `whoever brought it is woken for what comes, and to log in again`() async throws {
        let listener = try LoopbackListener()
        let events = try fixture.client().monitor()
        let socket = try listener.connect()
        let server = End(try listener.accept())
        _ = try await adopt(socket, remote: "tcp://127.0.0.1:\(listener.port)").get()
        func wake() async throws -> ConnectionsAPI.Wake {
            while true {
                if let wake = try await events.one().event?.wake, wake.stage == .began { return wake }
            }
        }
        server.write("INVITE")
        expect(try await wake().reasons, is: [.data])
        expect(try await client.take("brought").socket.read(6), is: "INVITE")
        _ = try await client.ask(ConnectionsAPI.Park.self, .init(name: "brought", epoch: 1))
        server.hangUp()
        let next = try await wake()
        #expect(next.reasons == [.reconnected])
        _ = try await client.ask(ConnectionsAPI.Acknowledge.self, .init(name: "brought", wake: next.number))
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections.first?.wake, is: nil)
    }

    @Test func `what the last flow leaves wakes its client until it is taken`() async throws {
        let events = try fixture.client().monitor()
        let listener = try LoopbackListener()
        let socket = try listener.connect()
        let peer = End(try listener.accept())
        _ = try await adopt(socket).get()
        peer.write("BYE")
        peer.hangUp()
        while try await events.one().connections.first?.state != .closed {}
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections.first?.wake) { $0 != nil }
        expect(try await client.take("brought").socket.read(3), is: "BYE")
        while try await events.one().event?.wake?.stage != .acknowledged {}
    }

    /// A program that knows IPv6 alone connects to `::ffff:127.0.0.1`.
    @Test func `a socket with mapped addresses is one of IPv4`() async throws {
        let listener = try LoopbackListener()
        let socket = OwnedDescriptor(socket(AF_INET6, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let address = SocketAddress(try #require(IPAddress("::ffff:127.0.0.1")), port: listener.port)
        let number = socket.number
        try #require(address.withPointer { connect(number, $0, $1) } == 0)
        let copy = try socket.duplicate()
        let accepted = try listener.accept()
        _ = try await adopt(socket).get()
        let brought = try #require(try await client.ask(ConnectionsAPI.List.self, .init()).connections.first)
        #expect(brought.remote == "tcp://127.0.0.1:\(listener.port)")
        #expect(brought.remoteAddress == "127.0.0.1:\(listener.port)")
        #expect(fixture.network.targets.map(\.host) == [.address(.loopback)])
        // What every flow gets, in the right protocol's terms: CS5, and the kernel's keepalive.
        #expect(option(copy.number, CInt(IPPROTO_IP), CInt(IP_TOS)) == 0xA0)
        #expect(option(copy.number, SOL_SOCKET, SO_KEEPALIVE) == 1)
        withExtendedLifetime(accepted.number) {}
    }
}
