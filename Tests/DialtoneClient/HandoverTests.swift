// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// What a daemon does with flows, as far as a client sees it.
@AgentQueue
private final class FakeHandover {
    typealias Call = ConnectionsAPI.KeepAlive.Reply

    final class Calls: VarlinkSubscription {
        let stream: VarlinkStream
        var pending: [Call] = [.init(limit: .seconds(10))]
        var isOver = false

        init(_ stream: VarlinkStream) { self.stream = stream }
        func next() -> VarlinkMessage? { pending.isEmpty ? nil : .reply(pending.removeFirst(), continues: true) }
        func ended() { isOver = true }
    }

    let daemon: FakeDaemon
    /// The other end of each flow that was given away.
    private(set) var servers: [CInt] = []
    private(set) var parked: [ConnectionsAPI.Park.Parameters] = []
    private(set) var acknowledged: [Int] = []
    private(set) var timeouts: [Duration] = []
    private(set) var calls: [Calls] = []
    private var adopted: [Int32] = []
    /// Where the answer to `Take` says that the descriptor is.
    var place = 0
    /// What is given out next, and whether it has ended; the last one again and again.
    var flows: [(epoch: Int, isOver: Bool)] = [(4, true)]
    /// How often there is a flow.
    var mostTakes = Int.max
    /// What each call of `Take` asked for.
    private(set) var asked: [ConnectionsAPI.Take.Parameters] = []
    /// Another process that has the flow.
    var holder: Int?
    /// Whether there is nothing yet of what is waited for.
    var isEmpty = false
    /// The calls of `Take` that wait, and how many of them were given up.
    private(set) var waiting: [VarlinkExchange<ConnectionsAPI.Take>] = []
    private(set) var givenUp = 0
    /// Copies that a test made of the client's sockets, to see how they are left.
    var copies: [CInt] = []
    /// Of each copy, whether its reads waited when a flow was parked.
    private(set) var waitedWhenParked: [Bool] = []

    init() throws {
        daemon = try FakeDaemon()
        let service = daemon.service
        service.handleLater(ConnectionsAPI.Take.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            try take(parameters, exchange)
        }
        service.handle(ConnectionsAPI.Park.self) { [unowned self] parameters, _ throws(VarlinkFailure) in
            guard parameters.epoch == 4 else {
                throw VarlinkFailure(ConnectionsAPI.StaleEpoch(name: parameters.name, epoch: 4))
            }
            parked.append(parameters)
            waitedWhenParked = copies.map(readsWait)
            return .init()
        }
        service.handleLater(ConnectionsAPI.Adopt.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            let socket = try exchange.takeDescriptor(parameters.fileDescriptor, parameter: "fileDescriptor")
            guard parameters.name != "office" else {
                throw VarlinkFailure(ConnectionsAPI.NameTaken(name: parameters.name))
            }
            adopted.append(socket.release())
            exchange.reply(.init(name: parameters.name))
        }
        service.handle(ConnectionsAPI.Acknowledge.self) { [unowned self] parameters, _ in
            acknowledged.append(parameters.wake)
            return .init()
        }
        service.handleStream(ConnectionsAPI.KeepAlive.self) {
            [unowned self] parameters, stream throws(VarlinkFailure) in
            guard parameters.timeout >= .seconds(1) else {
                throw VarlinkFailure(ConnectionsAPI.InvalidTimeout(name: parameters.name, reason: "too short"))
            }
            timeouts.append(parameters.timeout)
            calls.append(Calls(stream))
            return calls[calls.count - 1]
        }
    }

    deinit { for number in servers + adopted + copies { close(number) } }

    private func take(
        _ parameters: ConnectionsAPI.Take.Parameters, _ exchange: VarlinkExchange<ConnectionsAPI.Take>
    ) throws(VarlinkFailure) {
        asked.append(parameters)
        if let holder { throw VarlinkFailure(ConnectionsAPI.HeldByClient(name: parameters.name, process: holder)) }
        if isEmpty {
            exchange.onCancel = { [unowned self] in givenUp += 1 }
            waiting.append(exchange)
            return
        }
        guard servers.count < mostTakes else {
            throw VarlinkFailure(ConnectionsAPI.NotReady(name: parameters.name, state: .backingOff))
        }
        let flow = flows[min(servers.count, flows.count - 1)]
        let (ours, theirs) = socketPair()
        servers.append(ours)
        let descriptors = VarlinkDescriptors()
        _ = descriptors.append(OwnedDescriptor(theirs))
        var connection = daemon.connection
        // That of the newest flow, which took the place of one that has ended.
        connection.epoch = flow.isOver ? flow.epoch + 1 : flow.epoch
        exchange.reply(
            .init(connection: connection, fileDescriptor: place, epoch: flow.epoch, isOver: flow.isOver), descriptors)
    }

    func plan(_ flows: [(epoch: Int, isOver: Bool)], most: Int = .max) { (self.flows, mostTakes) = (flows, most) }

    func call(_ wake: Int) {
        calls.last?.pending.append(.init(wake: wake, limit: .seconds(10)))
        calls.last?.stream.wake()
    }
}

/// Whether nobody has the other end of this socket.
private func isHungUp(_ number: CInt) -> Bool {
    var byte: UInt8 = 0
    return recv(number, &byte, 1, CInt(MSG_DONTWAIT | MSG_PEEK)) == 0
}

/// Whether reads of this socket wait for what comes.
private func readsWait(_ number: CInt) -> Bool { fcntl(number, F_GETFL) & O_NONBLOCK == 0 }

@Suite(.timeLimit(.minutes(3))) struct HandoverTests {
    @Test func `a socket is parked once its reader returns`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        // One that has ended, one of which another takes the place, and that one.
        await handover.plan([(2, true), (3, false), (4, false)])
        var (epochs, ends, newest): ([Int], [Bool], [Int]) = ([], [], [])
        try await client.withSocket("office") { flow in
            epochs.append(flow.epoch)
            ends.append(flow.isOver)
            newest.append(flow.connection.epoch)
        }
        #expect(epochs == [2, 3, 4])
        #expect(ends == [true, false, false])
        // As of each taking.
        #expect(newest == [3, 3, 4])
        expect(await handover.parked, is: [.init(name: "office", epoch: 4)])
        // A program that another test starts may hold a copy between its fork and its exec.
        try await eventually("closed") { handover.servers.allSatisfy(isHungUp) }
    }

    @Test func `whose socket it is goes with each call and what is awaited with the first`() async throws {
        let handover = try await FakeHandover()
        await handover.plan([(2, true), (4, false)])
        try await DialtoneClient(path: handover.daemon.path).withSocket("office", owner: 1000, until: .data) { _ in }
        expect(
            await handover.asked,
            is: [.init(name: "office", owner: 1000, until: .data), .init(name: "office", owner: 1000)])
        expect(await handover.parked, is: [.init(name: "office", owner: 1000, epoch: 4)])
    }

    @Test func `without a flow that follows it returns and without any it fails`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await handover.plan([(2, true)], most: 1)
        var calls = 0
        try await client.withSocket("office") { _ in calls += 1 }
        #expect(calls == 1)
        let refused = await #expect(throws: DialtoneError.self) { try await client.withSocket("office") { _ in } }
        #expect(refused?.code == .notReady)
    }

    @Test func `a socket that another process has is not lent`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await onQueue { handover.holder = 77 }
        let refused = await #expect(throws: DialtoneError.self) {
            try await client.withSocket("office") { _ in Issue.record("it was lent") }
        }
        #expect(refused?.code == .heldByClient)
        #expect("\(refused.map { "\($0)" } ?? "")".contains("Process 77"))
        expect(await handover.parked, is: [])
    }

    @Test func `another process that is faster has the socket that follows`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await handover.plan([(2, true), (4, false)])
        let refused = await #expect(throws: DialtoneError.self) {
            try await client.withSocket("office") { _ in await onQueue { handover.holder = 77 } }
        }
        #expect(refused?.code == .heldByClient)
        expect(await handover.asked.count, is: 2)
        expect(await handover.parked, is: [])
    }

    @Test func `cancelling the task ends the wait for a socket`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await onQueue { handover.isEmpty = true }
        let task = Task {
            try await client.withSocket("office", until: .flow) { _ in Issue.record("it was lent") }
        }
        try await eventually("waits") { handover.waiting.count == 1 }
        task.cancel()
        await #expect(throws: DialtoneError.cancelled) { try await task.value }
        try await eventually("given up") { handover.givenUp == 1 }
    }

    @Test func `a socket stays taken where the task is cancelled before it is parked`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await handover.plan([(4, false)])
        let task = Task {
            try await client.withSocket("office") { _ in withUnsafeCurrentTask { $0?.cancel() } }
        }
        await #expect(throws: DialtoneError.cancelled) { try await task.value }
        try await eventually("closed") { handover.servers.count == 1 && handover.servers.allSatisfy(isHungUp) }
        expect(await handover.parked, is: [])
    }

    @Test func `what its reader throws leaves the socket taken`() async throws {
        struct Trouble: Error {}
        let handover = try await FakeHandover()
        await handover.plan([(4, false)])
        await #expect(throws: Trouble.self) {
            try await DialtoneClient(path: handover.daemon.path).withSocket("office") { _ in throw Trouble() }
        }
        try await eventually("closed") { handover.servers.count == 1 && handover.servers.allSatisfy(isHungUp) }
        expect(await handover.parked, is: [])
    }

    @Test(arguments: [false, true]) func `reads wait again when the reader is done`(fails: Bool) async throws {
        struct Trouble: Error {}
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        await handover.plan([(4, false)])
        try? await client.withSocket("office") { flow in
            let copy = try flow.descriptor.duplicate().release()
            #expect(fcntl(copy, F_SETFL, O_NONBLOCK) == 0)
            await onQueue { handover.copies = [copy] }
            if fails { throw Trouble() }
        }
        // Before it is parked, not after.
        expect(await handover.waitedWhenParked, is: fails ? [] : [true])
        expect(await onQueue { handover.copies.map(readsWait) }, is: [true])
    }

    @Test func `a flow is taken and parked by its number`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        let flow = try await client.take("office")
        #expect(flow.connection.name == "office")
        #expect((flow.epoch, flow.isOver) == (4, true))
        let server = await handover.servers[0]
        #expect(send(server, "hello", 5, 0) == 5)
        var bytes = [UInt8](repeating: 0, count: 10)
        #expect(read(flow.descriptor.number, &bytes, bytes.count) == 5)
        try await client.park("office", epoch: flow.epoch)
        expect(await handover.parked, is: [.init(name: "office", epoch: 4)])
        // The flow's owner closes it, and nobody else.
        #expect(!isHungUp(server))
        close(flow.release())
        // A program that another test starts may hold a copy between its fork and its exec.
        try await eventually("closed") { isHungUp(server) }
        let error = await #expect(throws: DialtoneError.self) { try await client.park("office", epoch: 3) }
        guard case .refused(_, let failure) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.decoded() == ConnectionsAPI.StaleEpoch(name: "office", epoch: 4))
    }

    @Test func `a flow that does not come along is the daemon's mistake`() async throws {
        let handover = try await FakeHandover()
        await onQueue { handover.place = 1 }
        let client = DialtoneClient(path: handover.daemon.path)
        let method = ConnectionsAPI.Take.name
        await #expect(throws: DialtoneError.interrupted(method: method, .violated(.descriptorMissing))) {
            _ = try await client.take("office").epoch
        }
        let server = await handover.servers[0]
        try await eventually("closed") { isHungUp(server) }
    }

    @Test func `a socket is adopted and stays the caller's to close`() async throws {
        let handover = try await FakeHandover()
        let client = DialtoneClient(path: handover.daemon.path)
        let (server, socket) = socketPair()
        defer { close(server) }
        let owned = OwnedDescriptor(socket)
        let refused = await #expect(throws: DialtoneError.self) { try await client.adopt(owned, as: "office") }
        #expect("\(refused.map { "\($0)" } ?? "")".contains("already"))
        #expect(!isHungUp(server))
        expect(try await client.adopt(owned, as: "chat", remote: "tcp://192.0.2.1:80"), is: "chat")
        owned.close()
        // The daemon has it now.
        #expect(!isHungUp(server))
    }

    @Test func `a keep alive handler is called and acknowledged across restarts`() async throws {
        let handover = try await FakeHandover()
        let path = handover.daemon.path
        let (handled, sink) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await DialtoneClient(path: path).keepAlive("office", timeout: .seconds(90)) { sink.yield() }
        }
        var calls = handled.makeAsyncIterator()
        try await eventually("agreed") { handover.timeouts == [.seconds(90)] }
        await onQueue { handover.call(7) }
        await calls.next()
        try await eventually("acknowledged") { handover.acknowledged == [7] }
        await onQueue { handover.daemon.stop() }
        try await onQueue { try handover.daemon.start() }
        try await eventually("agreed again") { handover.timeouts == [.seconds(90), .seconds(90)] }
        await onQueue { handover.call(8) }
        await calls.next()
        try await eventually("acknowledged") { handover.acknowledged == [7, 8] }
        task.cancel()
        await #expect(throws: DialtoneError.cancelled) { try await task.value }
        try await eventually("over") { handover.calls.map(\.isOver) == [true, true] }
    }

    @Test func `a timeout that makes no sense is refused with the reason`() async throws {
        let handover = try await FakeHandover()
        let path = handover.daemon.path
        let error = await #expect(throws: DialtoneError.self) {
            try await DialtoneClient(path: path).keepAlive("office", timeout: .milliseconds(10)) {}
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains("too short"))
    }
}
