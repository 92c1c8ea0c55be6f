// SPDX-License-Identifier: Apache-2.0

import CDialtoneLabSupport
import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePersistence
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

/// What follows where a client was not reached, or said that it comes and did not.
@Suite @AgentQueue
struct FurtherWakeTests {
    /// A wake that was given up for a program that is not there.
    private func givenUp() async throws -> WakeFixture {
        let settings = WakeSettings.script("") { settings in
            settings.command = ["/does/not/exist"]
            settings.rounds = 1
        }
        let fixture = try WakeFixture(settings)
        try await fixture.ready()
        fixture.server.send("hello\n")
        try await eventually("the wake is given up") { fixture.story.last == "failed data" }
        return fixture
    }

    @Test func `a file that is mended wakes for what waits`() async throws {
        let fixture = try await givenUp()
        let policy = try fixture.fixture.policy("tcp://127.0.0.1:\(fixture.server.port)")
        // The same but for the command.
        let mended = ConfiguredConnection(
            name: "office", policy: policy, owner: thisUser.user, wake: .script("cat") { $0.rounds = 1 })
        _ = fixture.fixture.registry.reconcile(with: [mended])
        expect(try await fixture.server.line(), is: "hello")
    }

    @Test func `who begins to watch is woken for what nobody has come for`() async throws {
        let fixture = try WakeFixture(nil)
        try await fixture.ready()
        fixture.server.send("hello\n")
        try await eventually("it has arrived") { fixture.fixture.events.contains { $0.event.kind == .arrived } }
        #expect(fixture.story == [])
        fixture.wakes.isWatched = { _, _ in true }
        fixture.fixture.registry.subscriptionsChanged(of: thisUser.user)
        try await fixture.tells("began data", "attempted event")
    }

    @Test func `a client that says that it comes, and does not, is woken again`() async throws {
        var settings = WakeSettings()
        settings.pause = .milliseconds(20)
        let fixture = try WakeFixture(settings)
        fixture.wakes.isWatched = { _, _ in true }
        try await fixture.ready()
        try fixture.takeAndPark()
        fixture.server.send("hello\n")
        for count in 1...3 {
            try await eventually("wake \(count)") { fixture.story.filter { $0 == "began data" }.count == count }
            let wake = try #require(fixture.connection?.wake)
            try fixture.fixture.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        }
        // Now it does.
        _ = try fixture.fixture.registry.take("office", by: nil, for: 0).release()
        #expect(fixture.connection?.wake == nil)
    }

    @Test func `a client that nobody said anything of is continued when it was stopped`() async throws {
        let fixture = try WakeFixture(nil)
        fixture.wakes.isWatched = { _, _ in true }
        try await fixture.ready()
        let sleeper = try Sleeper()
        defer { sleeper.end() }
        let client = try ProcessHandle(sleeper.process)
        let flow = try fixture.fixture.registry.take("office", by: client, for: 0)
        try fixture.fixture.registry.park("office", flow.epoch, for: 0)
        try client.signal(SIGSTOP)
        try await eventually("it is stopped") { client.presence.contains(.stopped) }
        fixture.server.send("hello\n")
        try await fixture.tells("began data", "attempted signal")
        try await eventually("it runs") { !client.presence.contains(.stopped) }
    }

    @Test func `a client that says that it comes, and dies, is woken again at once`() async throws {
        // It is not tried a second time while this test waits for the queue.
        var settings = WakeSettings()
        settings.answerTime = .seconds(600)
        let fixture = try WakeFixture(settings)
        fixture.wakes.isWatched = { _, _ in true }
        try await fixture.ready()
        let sleeper = try Sleeper()
        let client = try ProcessHandle(sleeper.process)
        let flow = try fixture.fixture.registry.take("office", by: client, for: 0)
        try fixture.fixture.registry.park("office", flow.epoch, for: 0)
        fixture.server.send("hello\n")
        try await fixture.tells("began data", "attempted event")
        let wake = try #require(fixture.connection?.wake)
        try fixture.fixture.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        sleeper.end()
        try await fixture.tells("began data", "attempted event", "acknowledged data", "began data", "attempted event")
    }
}
