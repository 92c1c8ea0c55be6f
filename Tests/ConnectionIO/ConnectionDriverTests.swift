// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct ConnectionDriverTests {
    let surroundings = Surroundings(.loopback())

    @Test func `a connect that came while the queue was busy is no timeout`() async throws {
        func keepQueueBusy(for time: Duration) {
            let end = BootClock.now() + time
            while BootClock.now() < end {}
        }
        let server = try LoopbackServer()
        // What waits for the queue with this rings all timers that are due by then, before the connect is heard of.
        let other = Timers.shared.schedule(after: .milliseconds(1)) {}
        keepQueueBusy(for: .milliseconds(50))
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)") { $0.connectTimeout = .seconds(1) }
        keepQueueBusy(for: .milliseconds(1100))
        defer { other.cancel() }
        let event = await surroundings.events.next { $0.kind == .stateChanged && $0.previousState == .connecting }
        #expect((event?.status.state, event?.status.epoch) == (.ready, 1))
        connection.close()
    }

    @Test func `words that come after its observer is gone find none`() throws {
        var observer: Bystander? = Bystander()
        let connection = ConnectionDriver(
            policy: ConnectionPolicy(remote: try Remote("tcp://127.0.0.1:9")), wakes: surroundings.clientWakes,
            context: surroundings.context, observer: try #require(observer))
        connection.open()
        connection.close()
        observer = nil
        connection.resumed()
        connection.process(.processEnded(KnownProcess(1), .unseen))
        #expect(connection.status.state == .closed)
    }

    @Test func `a word that cannot be is told before it ends a build for debugging`() async {
        await #expect(processExitsWith: .success) { try await ConnectionDriverTests.tellWhatCannotBe() }
    }

    private static func tellWhatCannotBe() throws -> Never {
        let surroundings = Surroundings(.loopback())
        surroundings.context.onObjection = { told, _ in
            exit(told == "arrived: flow 9, after 1" ? EXIT_SUCCESS : EXIT_FAILURE)
        }
        try surroundings.connection(to: "tcp://127.0.0.1:9").process(.arrived(epoch: 9))
        exit(EXIT_FAILURE)
    }

    @AgentQueue
    private final class Bystander: ConnectionObserver {
        func connection(
            _ connection: ConnectionDriver, did event: ConnectionEvent, wake: StandingWake?, _ report: WakeReport?
        ) {}
        func connectionAnswered(_ connection: ConnectionDriver) {}
        func connection(_ connection: ConnectionDriver, attempts attempt: WakeAttempt, _ process: KnownProcess?) {}
        func connection(
            _ connection: ConnectionDriver, launches attempt: WakeAttempt, with flow: consuming HandedFlow?
        ) {}
        func connection(_ connection: ConnectionDriver, finds attempt: WakeAttempt.ID) {}
        func presence(of process: KnownProcess) -> ClientPresence { [] }
        func isWatched(by process: KnownProcess?) -> Bool { false }
    }

    @Test func `a connection becomes ready and tells its story`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        #expect(surroundings.targets == [connection.policy.target])
        let story = [
            await surroundings.events.next(), await surroundings.events.next(), await surroundings.events.next(),
        ]
        #expect(story.map { $0?.kind } == [.opened, .stateChanged, .stateChanged])
        #expect(story.map { $0?.status.state } == [.waiting, .connecting, .ready])
        let status = connection.status
        #expect(status.remoteAddress == server.endpoint)
        #expect(status.interface == "lo")
        #expect(try #require(status.lastProof) >= status.since)
        #expect(connection.unreadBytes == 0)
        connection.close()
    }

    @Test func `the path's loss closes the socket and its return dials`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)") { $0.grace = .zero }
        let first = try server.accept()
        _ = await surroundings.entered(.ready)
        surroundings.path = .none
        #expect(connection.status.state == .waiting)
        #expect(try first.receive() == .closed)

        surroundings.path = .loopback()
        // Dialled in the same turn: the connection stands in the server's queue already.
        _ = try server.accept()
        expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        connection.close()
    }

    @Test func `a dial that fails on the spot is told after it began`() async throws {
        surroundings.path = .loopback(source: .nobodys)
        let connection = try surroundings.connection(to: "tcp://127.0.0.1:9")
        let states = [
            await surroundings.events.next(), await surroundings.events.next(), await surroundings.events.next(),
        ]
        #expect(states.map { $0?.status.state } == [.waiting, .connecting, .backingOff])
        #expect(
            connection.status.reason
                == .dialFailed(.addressNotAvailable, Endpoint(address: .loopback, port: 9)))
        connection.close()
    }

    @Test func `a local address that goes takes the flow at once where it has no grace`() async throws {
        let server = try LoopbackServer()
        let source = IPAddress(v4: 0x7F00_0009)
        surroundings.path = .loopback(source: source)
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)") { $0.grace = .zero }
        let first = try server.accept()
        _ = await surroundings.entered(.ready)
        connection.localAddressRemoved(.nobodys)
        #expect(connection.status.state == .ready)
        connection.localAddressRemoved(source)
        #expect(try first.receive() == .reset)
        // The new flow does not bind to the address that is gone.
        #expect(try server.accept().remoteAddress == .loopback)
        expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        connection.close()
    }

    @Test func `a name is resolved on every dial and its addresses walked`() async throws {
        let server = try LoopbackServer()
        let dead = IPAddress(v4: 0x7F00_0063)
        surroundings.answer = .success([dead, .loopback])
        let connection = try surroundings.connection(to: "tcp://sip.example.com:\(server.endpoint.port)")
        let failed = await surroundings.events.next { $0.kind == .addressFailed }
        #expect(
            failed?.reason == .dialFailed(.refused, Endpoint(address: dead, port: server.endpoint.port)))
        expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        connection.redial()
        _ = await surroundings.entered(.ready)
        let both = [IPAddress.Family.v6, .v4].map { NameQuestion.addresses("sip.example.com", $0) }
        #expect(surroundings.questions == both + both)
        connection.close()
    }

    @Test func `closing leaves nothing in any state`() async throws {
        let server = try LoopbackServer()
        let ready = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        surroundings.answer = nil
        let resolving = try surroundings.connection(to: "tcp://sip.example.com:5060")
        #expect(surroundings.openQuestions == 2)
        #expect(surroundings.watchedPaths == 2)
        ready.close()
        resolving.close()
        #expect(try peer.receive() == .closed)
        #expect(surroundings.openQuestions == 0)
        #expect(surroundings.watchedPaths == 0)
        #expect(ready.status.state == .closed)
        #expect(ready.unreadBytes == nil)
    }

    @Test func `a closed connection is released`() async throws {
        let server = try LoopbackServer()
        weak var weakly: ConnectionDriver?
        do {
            let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
            weakly = connection
            _ = await surroundings.entered(.ready)
            connection.close()
        }
        #expect(weakly == nil)
    }

    @Test func `the way of a flow is watched beside the connections where that leads elsewhere`() async throws {
        let server = try LoopbackServer()
        surroundings.pathOfAddresses = surroundings.path
        surroundings.path = .ofADomain
        let connection = try surroundings.connection(to: "tcp://sip.example.com:\(server.endpoint.port)")
        _ = await surroundings.entered(.ready)
        #expect(surroundings.targets.map(\.host) == [.name("sip.example.com"), .address(.loopback)])
        #expect(surroundings.watchedPaths == 2)
        #expect(connection.status.path?.destination == .loopback)
        connection.close()
        #expect(surroundings.watchedPaths == 0)
    }
}
