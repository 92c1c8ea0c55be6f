// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtonePlatform
import DialtoneProcesses
import DialtoneVarlink
import Testing

@testable import DialtoneAgent

/// What subscribers of `Monitor` get, and what they never get.
@Suite("Monitors of connections", .timeLimit(.minutes(5))) @AgentQueue
struct MonitorTests {
    /// The replies tell of one event after the other, none left out.
    private func expectConsecutive(
        _ replies: [ConnectionsAPI.Monitor.Reply], after sequence: Int,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let expected = Array(sequence + 1..<sequence + 1 + replies.count)
        #expect(replies.map(\.sequence) == expected, sourceLocation: sourceLocation)
        #expect(replies.allSatisfy { $0.kind == .change }, sourceLocation: sourceLocation)
        #expect(replies.map { $0.event?.sequence } == expected, sourceLocation: sourceLocation)
        #expect(replies.allSatisfy { $0.connections == [$0.event?.connection] }, sourceLocation: sourceLocation)
    }

    @Test func `first comes a snapshot, then each change in order`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let events = try fixture.client().monitor()
        let snapshot = try await events.one()
        #expect(snapshot.kind == .snapshot)
        #expect(snapshot.event == nil)
        #expect(snapshot.connections.map(\.name) == ["a"])

        try await fixture.open("b")
        fixture.network.change()
        _ = try await fixture.client().ask(ConnectionsAPI.Close.self, .init(name: "a"))
        let changes = try await events.many(5)
        expectConsecutive(changes, after: snapshot.sequence)
        let told = changes.compactMap(\.event).map { "\($0.connection.name) \($0.kind.rawValue) \($0.reason ?? "")" }
        #expect(told.prefix(2) == ["b opened opened", "b pathChanged no route"])
        #expect(Set(told[2...3]) == ["a pathChanged no carrier", "b pathChanged no carrier"])
        #expect(told.last == "a closed close requested")
        #expect(changes.last?.event?.previousState == .waiting)
        #expect(changes.last?.event?.connection.state == .closed)
    }

    @Test func `a burst in one turn reaches every subscriber whole`() async throws {
        let fixture = ServiceFixture()
        for name in ["a", "b", "c"] { try await fixture.open(name) }
        let (first, second) = (try fixture.client().monitor(), try fixture.client().monitor())
        let sequence = try await first.one().sequence
        expect(try await second.one().sequence, is: sequence)
        for _ in 1...20 { fixture.network.change() }
        let heard = try await first.many(60)
        expectConsecutive(heard, after: sequence)
        expect(try await second.many(60), is: heard, "all of them hear the same")
    }

    @Test func `one who resumes gets what was missed and no snapshot`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let sequence = try await fixture.client().monitor().one().sequence
        for _ in 1...3 { fixture.network.change() }
        let resumed = try fixture.client().monitor(after: sequence)
        expectConsecutive(try await resumed.many(3), after: sequence)
        fixture.network.change()
        expectConsecutive([try await resumed.one()], after: sequence + 3)
    }

    @Test func `one who missed nothing hears nothing until something happens`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let sequence = try await fixture.client().monitor().one().sequence
        let resumed = try fixture.client().monitor(after: sequence)
        try await fixture.open("b")
        expectConsecutive([try await resumed.one()], after: sequence)
    }

    @Test(arguments: [0, 1, Int.max])
    func `a number that this daemon never gave gets a gap with everything`(number: Int) async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let events = try fixture.client().monitor(after: number)
        let gap = try await events.one()
        #expect(gap.kind == .gap)
        #expect(gap.connections.map(\.name) == ["a"])
        #expect(gap.event == nil)
        fixture.network.change()
        expectConsecutive([try await events.one()], after: gap.sequence)
    }

    @Test func `a negative number is no number of an event`() async throws {
        let fixture = ServiceFixture()
        let refused: ServiceAPI.InvalidParameter = try await fixture.client().monitor(after: -1).refusal()
        #expect(refused.parameter == "after")
    }

    @Test func `one who asks for names hears of those alone, also of those that come later`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        try await fixture.open("b")
        let events = try fixture.client().monitor(names: ["b", "c"])
        let snapshot = try await events.one()
        #expect(snapshot.connections.map(\.name) == ["b"])
        _ = try await fixture.client().ask(ConnectionsAPI.Close.self, .init(name: "a"))
        try await fixture.open("c")
        let opened = try await events.one()
        #expect(opened.event?.kind == .opened)
        #expect(opened.connections.map(\.name) == ["c"])
        #expect(opened.sequence == snapshot.sequence + 2, "the number of what was not for it is left out")
    }

    @Test func `no names at all is a monitor of nothing, and gaps are told to it as well`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        expect(try await fixture.client().monitor(names: []).one().connections) { $0.isEmpty }
        let gap = try await fixture.client().monitor(names: [], after: 0).one()
        #expect(gap.kind == .gap && gap.connections.isEmpty)
    }

    @Test func `what happened before the journal's beginning is a gap for who resumes`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let sequence = try await fixture.client().monitor().one().sequence
        for _ in 1...1025 { fixture.network.change() }
        let gap = try await fixture.client().monitor(after: sequence).one()
        #expect(gap.kind == .gap)
        #expect(gap.sequence == sequence + 1025)
        // One more is kept than was asked for.
        let resumed = try fixture.client().monitor(after: sequence + 1)
        expectConsecutive(try await resumed.many(1024), after: sequence + 1)
    }

    @Test func `the journal has room for a network that goes and returns under every connection`() async throws {
        let fixture = ServiceFixture(connectionsPerUser: 1000)
        for _ in 1...300 { try await fixture.open() }
        let sequence = try await fixture.client().monitor().one().sequence
        for _ in 1...8 { fixture.network.change() }
        let resumed = try fixture.client().monitor(after: sequence)
        expectConsecutive(try await resumed.many(8 * 300), after: sequence)
    }

    @Test func `who never reads costs a socket buffer, gets a gap at last, and holds up nobody`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let sleeper = try fixture.client().monitor()
        let snapshot = try await sleeper.one()
        let reader = try fixture.client().monitor()
        _ = try await reader.one()
        let count = 3000
        for number in 1...count {
            fixture.network.change()
            expectConsecutive([try await reader.one()], after: snapshot.sequence + number - 1)
        }

        var seen: [ConnectionsAPI.Monitor.Reply] = []
        repeat { seen.append(try await sleeper.one()) } while seen.last?.kind == .change && seen.count < count
        let last = seen.popLast()
        let gap = try #require(last)
        expectConsecutive(seen, after: snapshot.sequence)
        #expect(gap.kind == .gap)
        #expect(gap.sequence == snapshot.sequence + count, "it shows the present, not a point in between")
        #expect(gap.connections.map(\.name) == ["a"])
        // What it did get lay in the sockets' buffers: each takes 64 KiB, and the kernel counts generously.
        #expect(seen.count < 1000)
        fixture.network.change()
        expectConsecutive([try await sleeper.one()], after: gap.sequence)
    }

    @Test func `whoever watches may be the client, once the one that is known has ended`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        let connection = try #require(fixture.registry.visible(to: 0).first)
        let monitor = try fixture.client().monitor()
        _ = try await monitor.one()
        let sleeper = try Sleeper()
        let client = try ProcessHandle(sleeper.process)
        #expect(!fixture.connections.isWatched(connection, by: client))
        sleeper.end()
        #expect(fixture.connections.isWatched(connection, by: client))
    }

    @Test func `a gap is for those alone who asked, with their connections`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        try await fixture.open("b")
        let gap = try await fixture.client().monitor(names: ["b"], after: 0).one()
        #expect(gap.kind == .gap)
        #expect(gap.connections.map(\.name) == ["b"])
    }

    @Test func `without more there is no monitor`() async throws {
        enum Single: VarlinkMethod {
            static let name = ConnectionsAPI.Monitor.name
            typealias Parameters = VarlinkEmpty
            typealias Reply = VarlinkEmpty
        }
        let fixture = ServiceFixture()
        let _: ServiceAPI.ExpectedMore = try await fixture.client().refusal(of: Single.self, .init())
    }
}
