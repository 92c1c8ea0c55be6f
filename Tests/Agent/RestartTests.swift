// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnectionIO
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConnection
@testable import DialtonePersistence

/// The agent is killed and started anew, with a store that keeps its descriptors.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct RestartTests {
    /// The server's end, and what it has to say.
    private final class Server {
        let listener: LoopbackListener
        let peer: End

        init(_ listener: LoopbackListener, _ peer: End) { (self.listener, self.peer) = (listener, peer) }

        func send(_ text: String) { peer.write(text) }

        /// Whether nobody has ended the stream.
        var isConnected: Bool { peer.isConnected }
    }

    /// An agent with a connection that is ready, and its server.
    private func ready(
        _ name: String = "office", grace: Duration? = nil
    ) async throws -> (RestartFixture, Server) {
        let (fixture, listener) = (try RestartFixture(), try LoopbackListener())
        try fixture.open(name, "tcp://127.0.0.1:\(listener.port)", grace: grace)
        try await fixture.ready(name)
        return (fixture, Server(listener, End(try listener.accept())))
    }

    /// An agent with a connection that is parked, and not dialled anew while somebody looks; and its server.
    private func parked() async throws -> (RestartFixture, Server) {
        let (fixture, listener) = (try RestartFixture(), try LoopbackListener())
        try fixture.open("office", "tcp://127.0.0.1:\(listener.port)", backoff: .lasting)
        try await fixture.ready("office")
        let server = Server(listener, End(try listener.accept()))
        _ = try take(fixture)
        try fixture.registry.park("office", 1, for: 1000)
        server.send("BYE")
        return (fixture, server)
    }

    private func take(_ fixture: RestartFixture, by process: Int32 = getpid()) throws -> End {
        End(try fixture.registry.take("office", by: try ProcessHandle(process), for: 1000).release())
    }

    @Test func `a flow goes on as it was, with its number, its age and its session`() async throws {
        let (fixture, server) = try await ready()
        _ = try take(fixture)
        try fixture.registry.park("office", 1, for: 1000)
        let before = try #require(fixture.connection("office"))
        let sequence = fixture.registry.journal.latest
        try fixture.kill()
        let after = try #require(fixture.connection("office"))
        #expect(after.state == .ready)
        #expect(after.reason == "the agent restarted and goes on with the socket")
        #expect((after.epoch, after.localAddress, after.session) == (1, before.localAddress, .open))
        #expect(abs(after.since.milliseconds - before.since.milliseconds) <= 1)
        #expect(after.lastProof.map { abs($0.milliseconds - before.since.milliseconds) < 60_000 } ?? false)
        #expect(fixture.told(after: sequence) == ["\(sequence + 1) office continued"])
        #expect((fixture.resumption.connections, fixture.resumption.flows, fixture.resumption.unclaimed) == (1, 1, 0))
        #expect(server.isConnected)
        #expect(fixture.store.names.count == 4, "the state's two files, the flow and its client, as before")
    }

    @Test(arguments: [true, false])
    func `what came while nobody was there is told, and read in order`(wasTaken: Bool) async throws {
        let (fixture, server) = try await ready()
        if wasTaken {
            _ = try take(fixture)
            try fixture.registry.park("office", 1, for: 1000)
        }
        server.send("one ")
        try await fixture.wait(for: "office", "unread") { $0.wake != nil }
        // Between two processes the kernel takes it.
        server.send("two")
        let wake = try #require(fixture.connection("office")?.wake)
        try fixture.kill()
        #expect(fixture.events.map(\.event.kind) == [.continued, .wake, .arrived])
        #expect(fixture.events[1].wake?.report?.kind == .attempted(.event), "it does not begin anew")
        #expect(fixture.connection("office")?.wake == wake, "it stands until it is acknowledged")
        let socket = try take(fixture)
        #expect(socket.read(7) == "one two")
    }

    @Test func `the opening that a client left is played by every process`() async throws {
        let (fixture, server) = try await ready()
        _ = try take(fixture)
        let steps = [ConnectionsAPI.OpeningStep(send: "HELLO\\n", expect: .init(until: "\\n"))]
        try fixture.registry.park("office", 1, leaving: LeftOpening(steps), for: 1000)
        try fixture.kill()
        try fixture.kill()
        try fixture.registry.redial("office", for: 1000)
        try await fixture.wait(for: "office", "opening") { $0.epoch == 2 && $0.session == .opening }
        let next = End(try server.listener.accept())
        #expect(next.read(6) == "HELLO\n")
        next.write("OK\n")
        try await fixture.wait(for: "office", "logged in") { $0.session == .open }
    }

    @Test func `an opening that a client left for another server is not said to the one of now`() async throws {
        let (fixture, former, now) = (try RestartFixture(), try LoopbackListener(), try LoopbackListener())
        func office(_ server: LoopbackListener) throws -> [ConfiguredConnection] {
            let remote = try Remote("tcp://127.0.0.1:\(server.port)")
            return [ConfiguredConnection(name: "office", policy: ConnectionPolicy(remote: remote), owner: 1000)]
        }
        _ = fixture.registry.reconcile(with: try office(former))
        try await fixture.ready("office")
        _ = try take(fixture)
        let steps = [ConnectionsAPI.OpeningStep(send: "SECRET\\n", expect: .init(until: "\\n"))]
        try fixture.registry.park("office", 1, leaving: LeftOpening(steps), for: 1000)
        _ = fixture.registry.reconcile(with: try office(now))
        try fixture.kill(configured: try office(now))
        try await fixture.ready("office")
        let session = fixture.connection("office")?.session
        #expect(session != .opening, "\(String(describing: session))")
    }

    /// As one of another PID namespace, which the kernel does not name.
    @Test func `a client whose process cannot be watched is woken all the same`() async throws {
        let (fixture, server) = try await ready(grace: .zero)
        _ = try fixture.registry.take("office", by: nil, for: 1000).release()
        try fixture.registry.park("office", 1, for: 1000)
        try fixture.kill()
        server.send("wake up")
        try await fixture.wait(for: "office", "woken") { $0.wake != nil }
        // Whom the flow was lost of is woken when the next one stands.
        _ = try fixture.registry.take("office", by: nil, for: 1000).release()
        fixture.network.path = Path(status: .unsatisfied, reason: .noRoute)
        try fixture.kill()
        fixture.network.becomeReachable()
        try await fixture.wait(for: "office", "woken") { $0.wake != nil && $0.state == .ready }
        #expect(fixture.events.compactMap { $0.wake?.report?.wake.reasons }.last == [.reconnected])
    }

    @Test func `a subscriber misses nothing and is told nothing twice`() async throws {
        let (fixture, server) = try await ready()
        let sequence = try #require(fixture.registry.journal.all.first?.sequence) - 1
        var told = try #require(fixture.told(after: sequence))
        for _ in 1...4 {
            _ = try take(fixture)
            try fixture.registry.park("office", 1, for: 1000)
            try fixture.kill()
            let now = try #require(fixture.told(after: sequence), "no gap, however often it is killed")
            #expect(Array(now.prefix(told.count)) == told, "what was told stays as it was")
            #expect(now.count == told.count + 3)
            told = now
        }
        #expect(told.map { $0.split(separator: " ")[0] } == (1...told.count).map { "\(sequence + UInt64($0))" })
        #expect(server.isConnected)
    }

    @Test func `a flow that a client has lives on in the client, which is watched as before`() async throws {
        let (fixture, server) = try await ready()
        let client = try Sleeper()
        let socket = try take(fixture, by: client.process)
        try fixture.kill()
        let held = try #require(fixture.connection("office"))
        #expect((held.state, held.holder, held.epoch) == (.ready, .client, 1))
        #expect(throws: RegistryError.heldByClient(client.process)) { _ = try take(fixture) }
        server.send("to the client")
        #expect(socket.read(13) == "to the client")
        client.end()
        // Nobody knows where in the stream it was.
        try await fixture.wait(for: "office", "dialled anew") { $0.epoch == 2 && $0.state == .ready }
        #expect(fixture.events.map(\.event.reason).contains(.clientGone))
    }

    @Test func `whenever it is killed, the store has the process that the state names`() async throws {
        let (fixture, server) = try await ready()
        defer { withExtendedLifetime(server) {} }
        let clients = [try Sleeper(), try Sleeper()]
        defer { for client in clients { client.end() } }
        var gone: [String] = []
        fixture.store.onRemove = { name in gone.append(name) }
        _ = try take(fixture, by: clients[0].process)
        let first = try #require(fixture.kept("office")?.storedClient)
        // A descriptor may get lost on its way: the same process takes again.
        _ = try take(fixture, by: clients[0].process)
        #expect(fixture.kept("office")?.storedClient == first && gone.isEmpty)
        try fixture.registry.park("office", 1, for: 1000)
        fixture.store.onRemove = { name in
            gone.append(name)
            #expect(fixture.written("office")?.storedClient.map(DescriptorStore.name(of:)) != name, "it is there still")
        }
        _ = try take(fixture, by: clients[1].process)
        #expect(gone == [DescriptorStore.name(of: first)])
        try fixture.kill()
        #expect(fixture.connection("office")?.holder == .client)
        #expect(throws: RegistryError.heldByClient(clients[1].process)) { _ = try take(fixture) }
    }

    @Test func `a client of another PID namespace has its flow to itself, and gives it back by its end`() async throws {
        let (fixture, server) = try await ready()
        defer { withExtendedLifetime(server) {} }
        let clients = [try Sleeper(), try Sleeper()]
        // What such a process looks like from here.
        let handles = try clients.map {
            ProcessHandle(try ProcessHandle($0.process).duplicateDescriptor(), number: 0)
        }
        _ = try fixture.registry.take("office", by: handles[0], for: 1000).release()
        #expect(throws: RegistryError.heldByClient(0)) {
            _ = try fixture.registry.take("office", by: handles[1], for: 1000)
        }
        #expect(throws: RegistryError.heldByClient(0)) { _ = try take(fixture) }
        clients[0].end()
        try await fixture.wait(for: "office", "dialled anew") { $0.epoch == 2 && $0.state == .ready }
        _ = try fixture.registry.take("office", by: handles[1], for: 1000).release()
        clients[1].end()
    }

    @Test func `a client that nobody knows has the flow until it parks it`() async throws {
        let (fixture, server) = try await ready()
        defer { withExtendedLifetime(server) {} }
        _ = try fixture.registry.take("office", by: nil, for: 1000).release()
        #expect(throws: RegistryError.heldByClient(0)) { _ = try take(fixture) }
        try fixture.kill()
        #expect(throws: RegistryError.heldByClient(0)) { _ = try take(fixture) }
        #expect(throws: RegistryError.heldByClient(0)) { _ = try fixture.registry.take("office", by: nil, for: 1000) }
        try fixture.registry.park("office", 1, for: 1000)
        _ = try take(fixture)
    }

    @Test func `a client that ended in between is found out`() async throws {
        let (fixture, server) = try await ready()
        let client = try Sleeper()
        _ = try take(fixture, by: client.process)
        client.end()
        try fixture.kill()
        try await fixture.wait(for: "office", "dialled anew") { $0.epoch == 2 && $0.state == .ready }
        #expect(!server.isConnected)
    }

    @Test func `a flow that ended in between is dialled anew, and what it had received is there to be taken first`()
        async throws
    {
        let (fixture, server) = try await parked()
        server.peer.hangUp()
        // The end may be heard of before the path, whose coming ends every wait: then the next dial is refused.
        server.listener.refuse()
        try fixture.kill()
        try await fixture.wait(for: "office", "backing off") { $0.state == .backingOff }
        let reasons = fixture.events.map(\.event.reason)
        #expect(reasons.contains(.remoteClosed))
        // And once more: what is left of a flow outlives the process, too.
        try fixture.kill()
        let flow = try fixture.registry.take("office", by: nil, for: 1000)
        #expect((flow.epoch, flow.isOver) == (1, true))
        let socket = End(flow.release())
        #expect(socket.read(9) == "BYE")
        #expect(socket.read(1) == "")
        // Who comes again shows that it has it.
        #expect(throws: RegistryError.self) { _ = try fixture.registry.take("office", by: nil, for: 1000) }
        #expect(fixture.store.names.count == 2, "nothing is left of it in the store")
    }

    @Test func `numbers of flows are never given twice`() async throws {
        let (fixture, server) = try await ready()
        try fixture.registry.redial("office", for: 1000)
        try await fixture.wait(for: "office", "anew") { $0.epoch == 2 && $0.state == .ready }
        try fixture.registry.redial("office", for: 1000)
        fixture.network.path = Path(status: .unsatisfied, reason: .noRoute)
        #expect(fixture.connection("office")?.epoch == 3)
        try fixture.kill()
        #expect(fixture.events.first?.event.reason == .restarted(.withoutFlow))
        fixture.network.becomeReachable()
        try await fixture.wait(for: "office", "ready") { $0.state == .ready }
        #expect(fixture.connection("office")?.epoch == 4)
        #expect(server.listener.port > 0)
    }

    @Test func `a connection that was closed stays closed, and one without a flow is dialled`() async throws {
        let (fixture, server) = try await ready()
        defer { withExtendedLifetime(server) {} }
        try fixture.open("van", "tcp://192.0.2.1:9")
        try fixture.registry.close("office", for: 1000)
        #expect(fixture.store.names.count == 2)
        try fixture.kill()
        #expect(fixture.registry.visible(to: 0).map(\.name) == ["van"])
        #expect(fixture.registry.visible(to: 1001).isEmpty, "it is still its owner's")
        try fixture.kill()
        #expect(fixture.registry.visible(to: 1000).map(\.name) == ["van"])
    }

    @Test func `the configuration of now holds from the beginning`() async throws {
        let (fixture, listener) = (try RestartFixture(), try LoopbackListener())
        let remote = "tcp://127.0.0.1:\(listener.port)"
        func configured(_ remote: String, _ change: (inout ConnectionPolicy) -> Void = { _ in }) throws
            -> [ConfiguredConnection]
        {
            var policy = ConnectionPolicy(remote: try Remote(remote))
            change(&policy)
            return [ConfiguredConnection(name: "office", policy: policy, owner: 0)]
        }
        _ = fixture.registry.reconcile(with: try configured(remote))
        try await fixture.ready("office")
        let peer = End(try listener.accept())
        // Another keepalive needs no other flow, and nothing is told of a change.
        try fixture.kill(configured: try configured(remote) { $0.keepalive?.idle = .seconds(77) })
        #expect(fixture.events.map(\.event.kind) == [.continued])
        #expect(fixture.connection("office")?.epoch == 1)
        // Another remote does.
        let other = try LoopbackListener()
        try fixture.kill(configured: try configured("tcp://127.0.0.1:\(other.port)"))
        try await fixture.wait(for: "office", "elsewhere") { $0.state == .ready && $0.epoch == 2 }
        #expect(peer.read(1) == "", "the old flow was ended in order")
        // And no word of it ends it.
        try fixture.kill(configured: [])
        #expect(fixture.registry.count == 0)
        #expect(fixture.story.last == "office closed")
        #expect(fixture.store.names.count == 2)
    }

    @Test func `a store that is full keeps what it has, and the rest works as ever`() async throws {
        let (fixture, listener) = (try RestartFixture(limit: 5), try LoopbackListener())
        var peers: [Int32] = []
        for name in ["a", "b"] {
            try fixture.open(name, "tcp://127.0.0.1:\(listener.port)")
            try await fixture.ready(name)
            peers.append(try listener.accept().release())
        }
        defer { for peer in peers { close(peer) } }
        try fixture.kill()
        #expect(fixture.connection("a")?.epoch == 1)
        #expect(fixture.events.map(\.event.reason).prefix(2) == [.restarted(.kept), .restarted(.flowLost)])
        try await fixture.wait(for: "b", "dialled anew") { $0.state == .ready && $0.epoch == 2 }
    }

    @Test func `one user's flows leave places for another's and for what a file names, and say where there is none`()
        async throws
    {
        let (fixture, listener) = (try RestartFixture(limit: 19), try LoopbackListener())
        var peers: [CInt] = []
        defer { for peer in peers { close(peer) } }
        func open(_ name: String, owner: UInt32) async throws -> ConnectionsAPI.Connection? {
            try fixture.open(name, "tcp://127.0.0.1:\(listener.port)", owner: owner)
            try await fixture.ready(name)
            peers.append(try listener.accept().release())
            return fixture.connection(name)
        }
        var greedy: [Bool?] = []
        for number in 0..<16 { greedy.append(try await open("greedy\(number)", owner: 1000)?.endsWithAgent) }
        #expect(greedy == Array(repeating: nil, count: 10) + Array(repeating: true, count: 6))
        let told = fixture.events.last { $0.name == "greedy15" && $0.event.status.state == .ready }
        #expect(told?.endsWithAgent == true, "its subscribers are told")
        expect(try await open("neighbour", owner: 1001)?.endsWithAgent, is: nil)
        let remote = try ConnectionPolicy(.init(remote: "tcp://127.0.0.1:\(listener.port)"), user: 1000)
        _ = fixture.registry.reconcile(with: [.init(name: "office", policy: remote, owner: 1000)])
        try await fixture.ready("office")
        peers.append(try listener.accept().release())
        #expect(fixture.connection("office")?.endsWithAgent == nil, "the same user's, whom a file gives it")
        try fixture.kill(configured: [.init(name: "office", policy: remote, owner: 1000)])
        #expect(fixture.connection("neighbour")?.epoch == 1 && fixture.connection("office")?.epoch == 1)
        #expect(fixture.resumption.flows == 12)
    }

    @Test func `namesakes of two users both go on with their flows`() async throws {
        let (fixture, listener) = (try RestartFixture(), try LoopbackListener())
        var peers: [CInt] = []
        for owner: UInt32 in [1000, 1001] {
            try fixture.open("office", "tcp://127.0.0.1:\(listener.port)", owner: owner)
            try await fixture.wait(for: "office", "ready for \(owner)", of: owner) { $0.state == .ready }
            peers.append(try listener.accept().release())
        }
        defer { for peer in peers { close(peer) } }
        try fixture.kill()
        #expect(fixture.resumption.flows == 2)
        #expect(fixture.registry.visible(to: 0).map(\.owner) == [1000, 1001])
        #expect(fixture.events.map(\.event.reason) == [.restarted(.kept), .restarted(.kept)])
        try fixture.registry.close("office", for: 1001)
        try fixture.kill()
        #expect(fixture.registry.visible(to: 0).map(\.owner) == [1000])
        #expect(fixture.connection("office")?.epoch == 1)
    }

    @Test func `a state that cannot be read begins a new life, and leaves nothing of the old one`() async throws {
        let (fixture, server) = try await ready()
        let sequence = fixture.registry.journal.latest
        for entry in fixture.store.stored where entry.name == Inheritance.stateName {
            _ = pwrite(entry.descriptor, "nonsense", 8, 0)
        }
        try fixture.kill()
        #expect(fixture.registry.count == 0)
        try await eventually("its server sees the end") { !server.isConnected }
        #expect(fixture.store.names == ["state", "state"])
        #expect(fixture.told(after: sequence) == nil, "whoever resumes is told of a gap")
    }

    @Test func `a state that ends each process at once is given up in time`() async throws {
        let (fixture, server) = try await ready()
        for count in 2...Continuity.mostUnsettledStarts {
            try fixture.kill()
            #expect(fixture.connection("office")?.epoch == 1, "start \(count)")
        }
        #expect(server.isConnected)
        try fixture.kill()
        #expect(fixture.registry.count == 0)
        try await eventually("its server sees the end") { !server.isConnected }
    }

    @Test func `the state takes no more room than twice what it says`() async throws {
        let (fixture, server) = try await ready()
        let sequence = fixture.registry.journal.latest
        let (rounds, kills) = (1300, 7)
        // One when it is taken, one when it is parked, and one of each kill.
        let events = UInt64(2 * rounds + kills)
        var grown: off_t = 0
        for round in 1...rounds {
            _ = try take(fixture)
            try fixture.registry.park("office", 1, for: 1000)
            if round == 50 { grown = fixture.stateSizes.max() ?? 0 }
            // The next process knows as well when they were last written anew.
            if round <= 100 * kills, round.isMultiple(of: 100) {
                fixture.continuity.write([.settled])
                try fixture.kill()
            }
            // The suite's other tests stand behind these turns on the one queue.
            if round.isMultiple(of: 20) { await Task.yield() }
        }
        let sizes = fixture.stateSizes
        #expect(sizes.min() == 0)
        // Twice the thousand events that the journal keeps, each as large as those of the first rounds; never
        // tidied up, it would be 2.5 times as much.
        let twice = 2 * 1024 * grown / 100
        #expect(sizes.max() ?? 0 < twice * 11 / 10)
        #expect(fixture.registry.journal.latest == sequence + events)
        let newest = try #require(fixture.told(after: sequence + events - 10))
        try fixture.kill()
        #expect(fixture.told(after: sequence + events - 10)?.prefix(10).elementsEqual(newest) == true)
        #expect(fixture.told(after: sequence) == nil, "what the journal had dropped is dropped")
        #expect(server.isConnected)
    }
}

extension RestartFixture {
    /// What this process would write down of a connection.
    fileprivate func kept(_ name: String) -> SavedConnection? {
        registry.visible(to: 0).first { $0.name == name }?.kept
    }

    /// What is written down of it.
    fileprivate func written(_ name: String) -> SavedConnection? {
        let readings = store.stored.filter { $0.name == Inheritance.stateName }.compactMap { entry in
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = pread(entry.descriptor, &bytes, bytes.count, 0)
            return try? StateLog.read(Array(bytes.prefix(max(count, 0))))
        }
        return readings.max { $0.generation < $1.generation }?.state.connections[ConnectionKey(name, of: 1000)]
    }

    /// How large the files of the state are.
    fileprivate var stateSizes: [off_t] {
        store.stored.filter { $0.name == Inheritance.stateName }.map { entry in
            var status = stat()
            fstat(entry.descriptor, &status)
            return status.st_size
        }
    }

    /// What happened in this process: `office opened`.
    fileprivate var story: [String] { events.map { "\($0.name) \($0.event.wireKind.rawValue)" } }
}
