// SPDX-License-Identifier: Apache-2.0

import Activation
import CLabSupport
import Dialer
import DialtoneAPI
import Expectations
import Foundation
import Glibc
import NetworkPath
import Platform
import Supervisor
import TestSupport
import Testing

@testable import Daemon

/// What follows where a client was not reached, or said that it comes and did not.
@Suite("Wakes that came to nothing") @AgentQueue
struct FurtherWakeTests {
    /// A wake that was given up for a program that is not there.
    private func givenUp() async throws -> WakeBench {
        let settings = WakeSettings.script("") { settings in
            settings.command = ["/does/not/exist"]
            settings.rounds = 1
        }
        let bench = try WakeBench(settings)
        try await bench.ready()
        bench.server.send("hello\n")
        try await eventually("the wake is given up") { bench.story.last == "failed data" }
        return bench
    }

    @Test func `what comes after a wake was given up begins another`() async throws {
        let bench = try await givenUp()
        let first = bench.connection?.wake
        bench.server.send("again\n")
        try await eventually("there is another one") {
            bench.story.filter { $0 == "began data" }.count == 2 && bench.story.last == "failed data"
        }
        #expect(bench.connection?.wake != first && bench.connection?.unreadBytes == 12)
    }

    @Test func `a file that is mended wakes for what waits`() async throws {
        let bench = try await givenUp()
        let policy = try bench.bench.policy("tcp://127.0.0.1:\(bench.server.port)")
        // The same but for the command.
        let mended = ConfiguredConnection(
            name: "office", policy: policy, owner: thisUser.user, wake: .script("cat") { $0.rounds = 1 })
        _ = bench.bench.registry.reconcile(with: [mended])
        expect(try await bench.server.line(), is: "hello")
    }

    @Test func `who begins to watch is woken for what nobody has come for`() async throws {
        let bench = try WakeBench(nil)
        try await bench.ready()
        bench.server.send("hello\n")
        try await eventually("it has arrived") { bench.bench.events.contains { $0.event.kind == .arrived } }
        #expect(bench.story == [])
        bench.wakes.isWatched = { _, _ in true }
        bench.bench.registry.subscriptionsChanged(of: thisUser.user)
        try await bench.tells("began data", "attempted event")
    }

    @Test func `a client that says that it comes, and does not, is woken again`() async throws {
        var settings = WakeSettings()
        settings.pause = .milliseconds(20)
        let bench = try WakeBench(settings)
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        try bench.takeAndPark()
        bench.server.send("hello\n")
        for count in 1...3 {
            try await eventually("wake \(count)") { bench.story.filter { $0 == "began data" }.count == count }
            let wake = try #require(bench.connection?.wake)
            try bench.bench.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        }
        // Now it does.
        _ = try bench.bench.registry.take("office", by: nil, for: 0).release()
        #expect(bench.connection?.wake == nil)
    }

    @Test func `a client that nobody said anything of is continued when it was stopped`() async throws {
        let bench = try WakeBench(nil)
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        let sleeper = try Sleeper()
        defer { sleeper.end() }
        let client = try ProcessHandle(sleeper.process)
        let flow = try bench.bench.registry.take("office", by: client, for: 0)
        try bench.bench.registry.park("office", flow.epoch, for: 0)
        try client.signal(SIGSTOP)
        try await eventually("it is stopped") { client.presence.contains(.stopped) }
        bench.server.send("hello\n")
        try await bench.tells("began data", "attempted signal")
        try await eventually("it runs") { !client.presence.contains(.stopped) }
    }

    @Test func `a client that says that it comes, and dies, is woken again at once`() async throws {
        // It is not tried a second time while this test waits for the queue.
        var settings = WakeSettings()
        settings.answerTime = .seconds(600)
        let bench = try WakeBench(settings)
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        let sleeper = try Sleeper()
        let client = try ProcessHandle(sleeper.process)
        let flow = try bench.bench.registry.take("office", by: client, for: 0)
        try bench.bench.registry.park("office", flow.epoch, for: 0)
        bench.server.send("hello\n")
        try await bench.tells("began data", "attempted event")
        let wake = try #require(bench.connection?.wake)
        try bench.bench.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        sleeper.end()
        try await bench.tells("began data", "attempted event", "acknowledged data", "began data", "attempted event")
    }
}
