// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// The history.
@Suite(.timeLimit(.minutes(5))) @AgentQueue
struct HistoryTests {
    private let scratch = TemporaryDirectory()
    private let logger = Logger(label: "test")

    private func fixture() -> ServiceFixture { ServiceFixture(state: SavedState(logger, in: scratch.path)) }

    /// All that a client is told, the last and empty reply left out.
    private func read(
        _ client: VarlinkConnection, names: [String]? = nil, since: Timestamp? = nil
    ) async throws -> [ConnectionsAPI.History.Reply] {
        let stream = client.stream(ConnectionsAPI.History.self, .init(names: names, since: since))
        var replies: [ConnectionsAPI.History.Reply] = []
        while true {
            let reply = try await stream.one()
            guard reply.time != nil else { return replies }
            replies.append(reply)
        }
    }

    /// What happened in short, but for news of the path, which say why a connection waits.
    private func words(_ replies: [ConnectionsAPI.History.Reply]) -> [String] {
        replies.compactMap { reply in
            if let event = reply.event {
                return event.kind == .pathChanged ? nil : "\(event.connection.name) \(event.kind.rawValue)"
            }
            return reply.agent.map { "agent \($0.kind.rawValue)" } ?? "network"
        }
    }

    @Test func `events are told with the reasons and durations of a monitor`() async throws {
        let fixture = fixture()
        let events = try fixture.client().monitor()
        _ = try await events.one()
        try await fixture.open("office")
        let opened = try #require(try await events.one().event)
        let told = try await read(fixture.client())
        #expect(words(told) == ["agent started", "office opened"])
        #expect(told.compactMap(\.event).first == opened)
    }

    @Test func `steps on the way to a flow are left out, and what becomes of it is not`() async throws {
        let fixture = fixture()
        let events = try fixture.client().monitor()
        fixture.network.becomeReachable()
        let listener = try LoopbackListener()
        _ = try await fixture.client().ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(listener.port)", name: "loop"))
        while try await events.one().connections.first?.state != .ready {}
        let told = try await read(fixture.client())
        #expect(words(told) == ["agent started", "loop opened", "loop state"])
        #expect(told.last?.event?.connection.state == .ready)
        #expect(told.last?.event?.previousState == .connecting)
    }

    @Test func `the story goes on over a restart, and after a kill too`() async throws {
        weak var before: History?
        do {
            let fixture = fixture()
            before = fixture.history
            try await fixture.open("office")
            fixture.registry.closeAll()
            fixture.history.end()
        }
        // A directory is one daemon's at a time.
        try await eventually("the first one is gone") { before == nil }
        do {
            // Nobody tells this one that it ends.
            let fixture = fixture()
            before = fixture.history
            try await fixture.open("door")
            _ = fixture.history.reading(for: 0)
        }
        try await eventually("the second one is gone") { before == nil }
        let fixture = fixture()
        let told = try await read(fixture.client())
        // The fixture closes what is open when it goes, and that may be written or not.
        let kept = words(told).filter { $0 != "door closed" }
        #expect(
            kept == [
                "agent started", "office opened", "office closed", "agent ended", "agent started", "door opened",
                "agent started",
            ])
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `each user sees their own, and root all`() async throws {
        let fixture = fixture()
        try await fixture.open("mine")
        try await fixture.open("theirs", for: .nobody)
        expect(words(try await read(fixture.client())), is: ["agent started", "mine opened", "theirs opened"])
        expect(words(try await read(fixture.client(.nobody))), is: ["agent started", "theirs opened"])
        expect(words(try await read(fixture.client(.nobody), names: ["mine"])), is: ["agent started"])
    }

    @Test func `names and a time narrow it down`() async throws {
        let fixture = fixture()
        try await fixture.open("office")
        try await fixture.open("door")
        expect(words(try await read(fixture.client(), names: ["door"])), is: ["agent started", "door opened"])
        let later = Timestamp(milliseconds: Timestamp.now().milliseconds + 60_000)
        expect(try await read(fixture.client(), since: later)) { $0.isEmpty }
        let all = try await read(fixture.client(), since: Timestamp(milliseconds: 0))
        #expect(words(all).count == 3)
    }

    @Test func `a thousand events of others do not hold up who asks, or anybody else`() async throws {
        let fixture = fixture()
        let other = try fixture.client()
        for number in 0..<300 {
            _ = try await other.ask(ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "c\(number)"))
        }
        let told = try await read(fixture.client(), names: ["c299"])
        #expect(words(told) == ["agent started", "c299 opened"])
        _ = try await other.ask(ConnectionsAPI.List.self, .init())
    }

    @Test func `lines that are none are passed over`() async throws {
        try scratch.write(
            "{\"entry\":{}}\nnonsense\n{\"owner\":0}\n\n{\"entry\":{\"agent\":{}}}\n{\"cut", to: "history-network.log")
        try scratch.write("0123", to: "history-1.log")
        try scratch.write("", to: "history-abc.log")
        let notes = Notes()
        let fixture = ServiceFixture(history: History(SavedState(logger, in: scratch.path), notes.logger))
        for _ in 1...2 { expect(words(try await read(fixture.client())), is: ["agent started"]) }
        #expect(notes.all == ["some of the history is damaged and left out"])
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `what one user does wipes out nothing of another's, over a restart too`() async throws {
        let room = HistoryFiles.Room(mostBytes: 100_000, mostUsers: 8)
        weak var before: History?
        do {
            let fixture = ServiceFixture(history: History(SavedState(logger, in: scratch.path), logger, room))
            before = fixture.history
            try await fixture.open("mine")
            try await fixture.open("theirs", for: .nobody)
            let policy = ConnectionPolicy(remote: try Remote("tcp://192.0.2.7:5060"))
            for number in 1...3000 {
                _ = try fixture.registry.open("flood", policy, owner: 4711, origin: .client)
                try fixture.registry.close("flood", for: 4711)
                // Others have their turn.
                if number.isMultiple(of: 50) { _ = try await fixture.client().ask(ConnectionsAPI.List.self, .init()) }
            }
            let told = try await read(fixture.client())
            #expect(told.contains { $0.event?.connection.name == "mine" })
            #expect(told.filter { $0.event?.connection.name == "flood" }.count < 2 * 100_000 / 200)
            expect(words(try await read(fixture.client(.nobody))), is: ["agent started", "theirs opened"])
            fixture.registry.closeAll()
            fixture.history.end()
        }
        try await eventually("the first one is gone") { before == nil }
        let fixture = ServiceFixture(history: History(SavedState(logger, in: scratch.path), logger, room))
        expect(
            words(try await read(fixture.client(.nobody))),
            is: [
                "agent started", "theirs opened", "theirs closed", "agent ended", "agent started",
            ])
    }

    /// Events of a connection as the agent tells the history of them, half a second apart.
    private func tell(
        _ history: History, _ name: String, of owner: UInt32, _ events: [(ConnectionEvent.Kind, WakeReport.Kind?)],
        from start: Int64 = 0
    ) throws {
        let remote = try Remote("tcp://192.0.2.7:5060")
        let subject = RecordedEvent.Subject(name: name, owner: owner, remote: remote)
        for (number, (kind, report)) in events.enumerated() {
            let clocks = ClockReading(
                wall: .init(milliseconds: start + Int64(number) * 500), boot: .milliseconds(start + Int64(number) * 500)
            )
            let status = ConnectionStatus(state: .ready, reason: .connected, since: .zero)
            let event = ConnectionEvent(
                kind: kind, status: status, previousState: .connecting, previousDuration: .zero, reason: .connected)
            let wake = StandingWake(number: UInt64(number), reasons: [.data], since: .zero)
            history.heard(
                .init(
                    clocks: clocks, subject: subject, event: event,
                    wake: report.map { RecordedWake(standing: wake, WakeReport($0, wake)) },
                    outages: report == nil
                        ? .init(since: .init(milliseconds: start), count: 1, down: .zero, isUnderWay: false) : nil),
                sequence: UInt64(number))
        }
    }

    @Test func `a night of wakes pushes out nothing but wakes, and what went is told`() async throws {
        let room = HistoryFiles.Room(mostBytes: 20_000, mostUsers: 8)
        weak var before: History?
        let wakes = 300
        do {
            let history = History(SavedState(logger, in: scratch.path), logger, room)
            before = history
            for (owner, name) in [(0, "mine"), (4711, "theirs")] as [(UInt32, String)] {
                try tell(history, name, of: owner, [(.opened, nil), (.stateChanged, nil)])
                try tell(
                    history, name, of: owner,
                    .init(repeating: (.wake, .acknowledged(after: .milliseconds(3))), count: wakes), from: 1_000)
                try tell(history, name, of: owner, [(.wake, .failed(after: .seconds(90)))], from: 1_000_000)
            }
            history.end()
        }
        try await eventually("the first one is gone") { before == nil }
        // The count goes on over a restart.
        let history = History(SavedState(logger, in: scratch.path), logger, room)
        try tell(history, "mine", of: 0, [(.wake, .acknowledged(after: .zero))], from: 2_000_000)
        let fixture = ServiceFixture(history: history)
        let told = try await read(fixture.client())
        for (owner, name) in [(0, "mine"), (4711, "theirs")] {
            let events = told.compactMap(\.event).filter { $0.connection.name == name }
            let (routine, rest) = (
                events.filter { $0.wake?.stage == .acknowledged }, events.filter { $0.wake?.stage != .acknowledged }
            )
            #expect(rest.map(\.kind) == [.opened, .state, .wake], "\(name)")
            let counted = told.filter { $0.event?.connection.name == name && $0.outages != nil }
            #expect(counted.compactMap(\.event?.kind) == [.opened, .state], "a wake is no news of outages")
            #expect((10..<wakes).contains(routine.count), "\(name)")
            let dropped = told.compactMap(\.dropped).filter { $0.owner == owner }
            let all = wakes + (owner == 0 ? 1 : 0)
            let expected = ConnectionsAPI.Dropped(
                part: .wakes, owner: owner, count: all - routine.count, until: try #require(routine.first).time)
            #expect(dropped == [expected])
        }
        let since = try #require(told.compactMap(\.dropped).map(\.until).max())
        expect(try await read(fixture.client(), since: since)) { $0.allSatisfy { $0.dropped == nil } }
        expect(try await read(fixture.client(), names: ["x"])) { $0.compactMap(\.dropped).count == 2 }
    }

    @Test func `of too many users the one who was quiet for the longest gives up the files`() throws {
        let files = HistoryFiles(SavedState(logger, in: scratch.path), .init(mostBytes: 1000, mostUsers: 2))
        for owner in [0, 1, 2, 1, 3] as [UInt32] {
            try files.append(.init(agent: .init(time: .now(), kind: .started)), to: .user(owner, .connections))
            try files.append(.init(agent: .init(time: .now(), kind: .started)), to: .user(owner, .wakes))
        }
        for suffix in ["", "-wakes"] {
            let there = [0, 1, 2, 3].filter { scratch.text("history-\($0)\(suffix).log") != nil }
            #expect(there == [0, 1, 3], "\(suffix)")
        }
    }

    @Test func `lines of several files are read in the order of their time`() async throws {
        let files = HistoryFiles(SavedState(logger, in: scratch.path))
        // The clock is set back in between.
        for (number, owner) in [(5, 0), (6, 7), (6, nil), (2, 0), (9, 7)] as [(Int64, UInt32?)] {
            let change = ConnectionsAPI.AgentChange(time: .init(milliseconds: number), kind: .started)
            try files.append(.init(agent: change), to: owner.map { .user($0, .connections) } ?? .common)
        }
        let reading = try files.reading(for: nil)
        var told: [Int64] = []
        while case .line(let line) = reading.next() { told.append(line.entry.time?.milliseconds ?? 0) }
        #expect(told == [5, 6, 6, 2, 9])
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `lines of an earlier version are read as well, each by whom it may be`() async throws {
        let events = [("office", 0), ("theirs", 65_534)].map { name, owner in
            """
            {"entry":{"event":{"connection":{"attempt":0,"epoch":0,"holder":"daemon","name":"\(name)",\
            "remote":"tcp://192.0.2.7:1","session":"none","since":"2026-11-22T10:00:00.000Z","state":"waiting"},\
            "kind":"opened","sequence":5,"time":"2026-11-22T10:00:00.000Z"}},"order":\(owner + 1),"owner":\(owner)}
            """
        }
        let started = #"{"entry":{"agent":{"kind":"started","time":"2026-11-22T09:00:00.000Z"}}}"#
        func sealed(_ line: String) -> String { String(decoding: SealedLine.file("\(line)\n"), as: UTF8.self) }
        try scratch.write(sealed(started), to: "history-network.log")
        for (owner, event) in zip([0, 65_534], events) {
            try scratch.write(sealed(event), to: "history-\(owner).log")
        }
        let fixture = fixture()
        let all = ["agent started", "office opened", "theirs opened", "agent started"]
        expect(words(try await read(fixture.client())), is: all)
        expect(words(try await read(fixture.client(.nobody))), is: ["agent started", "theirs opened", "agent started"])
    }

    @Test func `lines beyond a user's allowance are counted and left out`() {
        var allowance = HistoryAllowance()
        let admitted = (0..<5000).map { _ in allowance.admit(.user(1000, .connections), now: .seconds(10)) }
        #expect(admitted.firstIndex(of: nil) == HistoryAllowance.burst)
        #expect(Set(admitted) == [0, nil])
        #expect(allowance.admit(.user(1000, .wakes), now: .seconds(10)) == 0, "wakes have their own")
        #expect(allowance.admit(.user(1001, .connections), now: .seconds(10)) == 0, "another's is another's")
        #expect(allowance.admit(.user(1000, .connections), now: .milliseconds(10_499)) == nil)
        #expect(allowance.admit(.user(1000, .connections), now: .milliseconds(10_500)) == 5001 - HistoryAllowance.burst)
        #expect(allowance.admit(.user(1000, .connections), now: .milliseconds(10_500)) == nil)
        #expect(allowance.admit(.user(1000, .connections), now: .seconds(11)) == 1)
        let rested = (0..<5000).count { _ in allowance.admit(.user(1000, .connections), now: .seconds(100_000)) != nil }
        #expect(rested == HistoryAllowance.burst, "what was not used is not saved up")
    }

    @Test func `a token in a remote does not reach the file`() async throws {
        let fixture = fixture()
        _ = try await fixture.client().ask(
            ConnectionsAPI.Open.self, .init(remote: "wss://chat.example.com/socket?token=hunter2", name: "chat"))
        let told = try await read(fixture.client())
        #expect(told.last?.event?.connection.remote == "wss://chat.example.com:443/socket")
        #expect(scratch.text("history-0.log")?.contains("chat.example.com") == true)
        #expect(scratch.text("history-0.log")?.contains("hunter2") == false)
    }

    @Test func `a history is one of a user's subscriptions`() async throws {
        let fixture = ServiceFixture(subscriptionsPerUser: 0)
        guard Client.obstacle == nil else { return }
        let stream = try fixture.client(.nobody).stream(ConnectionsAPI.History.self, .init())
        expect(try await stream.refusal(ConnectionsAPI.QuotaExceeded.self).limit, is: 0)
    }
}
