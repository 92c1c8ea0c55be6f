// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtonePlatform
import DialtoneProcesses
import DialtoneVarlink
import Testing

@testable import DialtoneAgent

/// What subscribers of `Monitor` get, and what they never get.
@Suite(.timeLimit(.minutes(5))) @AgentQueue
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

    @Test(arguments: [[], ["b"]])
    func `a gap is told of the names that are asked for, and to who asks for none`(names: [String]) async throws {
        let fixture = ServiceFixture()
        try await fixture.open("a")
        try await fixture.open("b")
        expect(try await fixture.client().monitor(names: names).one().connections.map(\.name), is: names)
        let gap = try await fixture.client().monitor(names: names, after: 0).one()
        #expect(gap.kind == .gap)
        #expect(gap.connections.map(\.name) == names)
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
