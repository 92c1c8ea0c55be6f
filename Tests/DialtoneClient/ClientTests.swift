// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

@Suite(.timeLimit(.minutes(3))) struct ClientTests {
    @Test func `calls are answered and leave no connection behind`() async throws {
        let daemon = try await FakeDaemon()
        let client = DialtoneClient(path: daemon.path)
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 { group.addTask { try await client.connections().map(\.name).joined() } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(names == ["office"])
        try await eventually("gone") { daemon.connectionCount == 0 }
    }

    @Test func `a refusal is typed and says what to do`() async throws {
        let daemon = try await FakeDaemon()
        let error = await #expect(throws: DialtoneError.self) {
            try await DialtoneClient(path: daemon.path).close("nobody")
        }
        guard case .refused("org.dialtone.Connections.Close", let failure) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.decoded() == ConnectionsAPI.NoSuchConnection(name: "nobody"))
        #expect("\(DialtoneError.refused(method: "x", failure))".contains("\"nobody\""))
    }

    @Test func `without a daemon the error names the path and the remedy`() async throws {
        let path = "/tmp/no/such/dialtone.sock"
        let error = await #expect(throws: DialtoneError.notRunning(paths: [path])) {
            try await DialtoneClient(path: path).connections()
        }
        let text = error.map { "\($0)" } ?? ""
        for part in [path, "systemctl start dialtoned", "make run", "DIALTONE_SOCKET"] { #expect(text.contains(part)) }
    }

    @Test(arguments: [
        DialtoneError.notRunning(paths: ["/a", "/b"]), .accessDenied(path: "/a"), .busy(path: "/a"),
        .unreachable(SystemError("connecting to /a", code: ENAMETOOLONG)),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.NameTaken(name: "x"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.AmbiguousName(name: "x", owners: [5, 6]))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.OutOfResources(reason: "x"))),
        .refused(method: "a.B", VarlinkFailure(NetworkAPI.OutOfResources(reason: "x"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.NotOwner(name: "x"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.InvalidRemote(remote: "x", reason: "y"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.QuotaExceeded(limit: 5))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.StaleEpoch(name: "x", epoch: 5))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.NotReady(name: "x", state: .waiting))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.InvalidTimeout(name: "x", reason: "y"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.HeldByClient(name: "x", process: 5))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.NotTaken(name: "x"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.InvalidDescriptor(name: "x", reason: "y"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.SystemFailure(name: "x", reason: "y"))),
        .refused(method: "a.B", VarlinkFailure(NetworkAPI.InvalidTarget(reason: "x"))),
        .refused(method: "a.B", VarlinkFailure(NetworkAPI.ForeignNetwork(reason: "x"))),
        .refused(method: "a.B", VarlinkFailure(ConnectionsAPI.ForeignNetwork(reason: "x"))),
        .refused(method: "a.B", VarlinkFailure(NetworkAPI.QuotaExceeded(limit: 5))),
        .refused(method: "a.B", VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "x"))),
        .refused(method: "a.B", VarlinkFailure(ServiceAPI.MethodNotFound(method: "a.B"))),
        .refused(method: "a.B", VarlinkFailure(ServiceAPI.InterfaceNotFound(interface: "a"))),
        .refused(method: "a.B", VarlinkFailure(ServiceAPI.PermissionDenied())),
        .refused(method: "a.B", VarlinkFailure(ServiceAPI.ExpectedMore())),
        .interrupted(method: "a.B", .hungUp), .timedOut(method: "a.B", .seconds(1)), .cancelled,
    ])
    func `every error is a sentence`(error: DialtoneError) {
        let text = "\(error)"
        #expect(text.first?.isUppercase == true || text.first == "\"", "\(text)")
        #expect(text.last == "." && !text.contains("\n") && !text.contains("Optional("), "\(text)")
    }

    @Test(arguments: [
        (VarlinkFailure(ConnectionsAPI.OutOfResources(reason: "x")), true),
        (VarlinkFailure(NetworkAPI.OutOfResources(reason: "x")), true),
        (VarlinkFailure(ConnectionsAPI.Suspended(reason: "x", seconds: 5)), true),
        (VarlinkFailure(ConnectionsAPI.QuotaExceeded(limit: 5)), false),
        (VarlinkFailure(ServiceAPI.PermissionDenied()), false),
    ])
    func `a refusal that the daemon takes back by itself passes`(failure: VarlinkFailure, isPassing: Bool) {
        #expect(DialtoneError.refused(method: "a.B", failure).isPassing == isPassing)
    }

    @Test func `the first daemon that answers is taken`() async throws {
        let daemon = try await FakeDaemon()
        setenv("DIALTONE_SOCKET", daemon.path, 1)
        defer { unsetenv("DIALTONE_SOCKET") }
        #expect(DialtoneClient().paths == [daemon.path])
        expect(try await DialtoneClient().connections().count, is: 1)
    }

    @Test func `a call that is not answered in time is given up`() async throws {
        let daemon = try await FakeDaemon()
        let limit = Duration.milliseconds(50)
        await #expect(throws: DialtoneError.timedOut(method: NetworkAPI.GetPath.name, limit)) {
            try await DialtoneClient(path: daemon.path).call(NetworkAPI.GetPath.self, .init(), timeout: limit)
        }
        // A daemon on a busy machine may see the call and the hang-up only now.
        try await eventually("hung up") {
            daemon.connectionCount == 0 && daemon.cancellations == daemon.exchanges.count
        }
    }

    @Test func `a stream whose first reply does not come in time is given up, and one that has begun is not`()
        async throws
    {
        let daemon = try await FakeDaemon()
        let client = DialtoneClient(path: daemon.path)
        // As long as a daemon on a busy machine may take.
        let limit = Duration.seconds(10)
        var begun = client.stream(ConnectionsAPI.Monitor.self, .init(), timeout: limit).makeAsyncIterator()
        expect(try await begun.next()?.kind, is: .snapshot)
        // Nothing comes behind what is the last. This one begins later, so the time of the other is over as well then.
        var silent = client.stream(ConnectionsAPI.Monitor.self, .init(after: 0), timeout: limit).makeAsyncIterator()
        await #expect(throws: DialtoneError.timedOut(method: ConnectionsAPI.Monitor.name, limit)) {
            try await silent.next()
        }
        await onQueue { daemon.sequence += 1 }
        expect(try await begun.next()?.kind, is: .change)
    }

    @Test func `cancelling the task hangs up`() async throws {
        let daemon = try await FakeDaemon()
        let call = Task { try await DialtoneClient(path: daemon.path).path() }
        try await eventually("called") { daemon.exchanges.count == 1 }
        call.cancel()
        await #expect(throws: DialtoneError.cancelled) { try await call.value }
        try await eventually("hung up") { daemon.cancellations == 1 && daemon.connectionCount == 0 }
    }

    @Test func `a daemon that stops interrupts the call`() async throws {
        let daemon = try await FakeDaemon()
        let call = Task { try await DialtoneClient(path: daemon.path).path() }
        try await eventually("called") { daemon.exchanges.count == 1 }
        await onQueue { daemon.stop() }
        await #expect(throws: DialtoneError.interrupted(method: NetworkAPI.GetPath.name, .hungUp)) {
            try await call.value
        }
    }

    @Test func `a stream delivers in order and ends with its last reply`() async throws {
        let daemon = try await FakeDaemon()
        await onQueue { daemon.lastSequence = 500 }
        var sequences: [Int] = []
        for try await reply in DialtoneClient(path: daemon.path).stream(ConnectionsAPI.Monitor.self, .init()) {
            sequences.append(reply.sequence)
            if reply.kind == .snapshot { await onQueue { daemon.sequence = 500 } }
        }
        #expect(sequences == Array(0...500))
        try await eventually("over") { daemon.places.allSatisfy(\.isOver) && daemon.connectionCount == 0 }
    }

    @Test func `leaving the loop hangs up`() async throws {
        let daemon = try await FakeDaemon()
        for try await reply in DialtoneClient(path: daemon.path).stream(ConnectionsAPI.Monitor.self, .init()) {
            #expect(reply.kind == .snapshot)
            break
        }
        try await eventually("over") { daemon.places.map(\.isOver) == [true] && daemon.connectionCount == 0 }
    }

    @Test func `cancelling the task ends the loop`() async throws {
        let daemon = try await FakeDaemon()
        let loop = Task {
            for try await _ in DialtoneClient(path: daemon.path).stream(ConnectionsAPI.Monitor.self, .init()) {}
        }
        try await eventually("subscribed") { daemon.places.count == 1 }
        loop.cancel()
        await #expect(throws: DialtoneError.cancelled) { try await loop.value }
        try await eventually("over") { daemon.places.map(\.isOver) == [true] }
    }

    @Test func `events go on where they stopped when the daemon comes back`() async throws {
        let daemon = try await FakeDaemon()
        var events = DialtoneClient(path: daemon.path).connectionEvents().makeAsyncIterator()
        expect(try await events.next()?.reply?.kind, is: .snapshot)
        await onQueue { daemon.sequence = 1 }
        expect(try await events.next()?.reply?.sequence, is: 1)
        try await onQueue {
            daemon.stop()
            daemon.sequence = 3
            try daemon.start()
        }
        expect(
            try await events.next(),
            is: .agentLost(.interrupted(method: ConnectionsAPI.Monitor.name, .hungUp)))
        for sequence in 2...3 {
            let reply = try await events.next()?.reply
            #expect(reply?.sequence == sequence && reply?.kind == .change)
        }
    }

    @Test func `events wait for a daemon that is not there yet`() async throws {
        let daemon = try await FakeDaemon()
        await onQueue { daemon.stop() }
        let first = Task {
            var events = DialtoneClient(path: daemon.path).connectionEvents().makeAsyncIterator()
            let lost = try await events.next()
            return (lost, try await events.next()?.reply?.kind)
        }
        await #expect(throws: DialtoneError.self) { try await DialtoneClient(path: daemon.path).connections() }
        try await onQueue { try daemon.start() }
        let (lost, kind) = try await first.value
        #expect(lost == .agentLost(.notRunning(paths: [daemon.path])))
        #expect(kind == .snapshot)
    }

    @Test func `cancelling the task ends the wait for a daemon`() async throws {
        let daemon = try await FakeDaemon()
        await onQueue { daemon.stop() }
        let isLost = Lock(false)
        let loop = Task {
            for try await event in DialtoneClient(path: daemon.path).connectionEvents() {
                #expect(event.reply == nil)
                isLost.withLock { $0 = true }
            }
        }
        try await eventually("lost") { isLost.withLock { $0 } }
        loop.cancel()
        await #expect(throws: DialtoneError.cancelled) { try await loop.value }
    }

    @Test func `callbacks come on their queue one after the other and not after the cancellation`() async throws {
        let daemon = try await FakeDaemon()
        let client = DialtoneClient(path: daemon.path)
        let queue = DispatchQueue(label: "caller")
        let answer = await withCheckedContinuation { continuation in
            client.call(ConnectionsAPI.List.self, .init(), on: queue) { result in
                dispatchPrecondition(condition: .onQueue(queue))
                continuation.resume(returning: result)
            }
        }
        #expect(try answer.get().connections.count == 1)

        let sequences = Lock<[Int]>([])
        let subscription = Lock<DialtoneSubscription?>(nil)
        await withCheckedContinuation { continuation in
            let stream = client.stream(ConnectionsAPI.Monitor.self, .init(), on: queue) { result in
                dispatchPrecondition(condition: .onQueue(queue))
                let sequence = (try? result.get())?.sequence ?? -1
                sequences.withLock { $0.append(sequence) }
                if sequence == 0 { AgentQueue.async { daemon.sequence = 100 } }
                if sequence == 50 {
                    subscription.withLock { $0?.cancel() }
                    continuation.resume()
                }
            }
            subscription.withLock { $0 = stream }
        }
        try await eventually("over") { daemon.places.map(\.isOver) == [true] }
        queue.sync {}
        #expect(sequences.withLock { $0 } == Array(0...50))
    }

    @Test func `a callback that is under way does not overtake the cancellation`() async throws {
        let daemon = try await FakeDaemon()
        let queue = DispatchQueue(label: "caller")
        let called = Lock(false)
        let subscription = Lock<DialtoneSubscription?>(nil)
        queue.suspend()
        queue.async { subscription.withLock { $0?.cancel() } }
        let stream = DialtoneClient(path: daemon.path)
            .stream(ConnectionsAPI.Monitor.self, .init(), on: queue) { _ in called.withLock { $0 = true } }
        subscription.withLock { $0 = stream }
        // The reply is sent, and what follows it on the agent's queue has brought it as far as the suspended one.
        try await eventually("sent") { daemon.places.first?.after == 0 }
        for _ in 0..<100 { await onQueue {} }
        queue.resume()
        try await eventually("over") { daemon.places.map(\.isOver) == [true] }
        queue.sync {}
        #expect(!called.withLock { $0 })
    }

    @Test func `a dropped subscription hangs up`() async throws {
        let daemon = try await FakeDaemon()
        let queue = DispatchQueue(label: "caller")
        let (calls, sink) = AsyncStream.makeStream(of: Void.self)
        var subscription: DialtoneSubscription? = DialtoneClient(path: daemon.path)
            .stream(ConnectionsAPI.Monitor.self, .init(), on: queue) { _ in sink.yield() }
        for await _ in calls { break }
        try await eventually("subscribed") { daemon.connectionCount == 1 }
        withExtendedLifetime(subscription) {}
        subscription = nil
        try await eventually("over") { daemon.places.map(\.isOver) == [true] && daemon.connectionCount == 0 }
    }
}
