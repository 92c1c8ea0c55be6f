// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Logging
import NetworkPath
import Platform
import TestSupport
import Testing
import Varlink

@testable import Daemon

@Suite("The history", .timeLimit(.minutes(1))) @AgentQueue
struct HistoryTests {
    private let scratch: Scratch
    private let logger = Logger(label: "test")

    init() throws { scratch = try Scratch() }

    private func bench() -> ServiceBench { ServiceBench(state: KeptState(logger, in: scratch.path)) }

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
        let bench = bench()
        let events = try bench.client().monitor()
        _ = try await events.one()
        try await bench.open("office")
        let opened = try #require(try await events.one().event)
        let told = try await read(bench.client())
        #expect(words(told) == ["agent started", "office opened"])
        #expect(told.compactMap(\.event).first == opened)
    }

    @Test func `steps on the way to a flow are left out, and what becomes of it is not`() async throws {
        let bench = bench()
        let events = try bench.client().monitor()
        bench.network.becomeReachable()
        let listener = try LoopbackListener()
        _ = try await bench.client().ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(listener.port)", name: "loop"))
        while try await events.one().connections.first?.state != .ready {}
        let told = try await read(bench.client())
        #expect(words(told) == ["agent started", "loop opened", "loop state"])
        #expect(told.last?.event?.connection.state == .ready)
        #expect(told.last?.event?.previousState == .connecting)
    }

    @Test func `the story goes on over a restart, and after a kill too`() async throws {
        weak var before: History?
        do {
            let bench = bench()
            before = bench.history
            try await bench.open("office")
            bench.registry.closeAll()
            bench.history.end()
        }
        // A directory is one daemon's at a time.
        try await eventually("the first one is gone") { before == nil }
        do {
            // Nobody tells this one that it ends.
            let bench = bench()
            before = bench.history
            try await bench.open("door")
            _ = bench.history.reader()
        }
        try await eventually("the second one is gone") { before == nil }
        let bench = bench()
        let told = try await read(bench.client())
        #expect(
            words(told) == [
                "agent started", "office opened", "office closed", "agent ended", "agent started", "door opened",
                "agent started",
            ])
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `each user sees their own, and root all`() async throws {
        let bench = bench()
        try await bench.open("mine")
        try await bench.open("theirs", for: .nobody)
        #expect(words(try await read(bench.client())) == ["agent started", "mine opened", "theirs opened"])
        #expect(words(try await read(bench.client(.nobody))) == ["agent started", "theirs opened"])
        #expect(words(try await read(bench.client(.nobody), names: ["mine"])) == ["agent started"])
    }

    @Test func `names and a time narrow it down`() async throws {
        let bench = bench()
        try await bench.open("office")
        try await bench.open("door")
        #expect(words(try await read(bench.client(), names: ["door"])) == ["agent started", "door opened"])
        let later = Timestamp(milliseconds: Timestamp.now().milliseconds + 60_000)
        #expect(try await read(bench.client(), since: later).isEmpty)
        let all = try await read(bench.client(), since: Timestamp(milliseconds: 0))
        #expect(words(all).count == 3)
    }

    @Test func `a thousand events of others do not hold up who asks, or anybody else`() async throws {
        let bench = bench()
        let other = try bench.client()
        for number in 0..<300 {
            _ = try await other.ask(ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "c\(number)"))
        }
        let told = try await read(bench.client(), names: ["c299"])
        #expect(words(told) == ["agent started", "c299 opened"])
        _ = try await other.ask(ConnectionsAPI.List.self, .init())
    }

    @Test func `lines that are none are passed over`() async throws {
        try scratch.put(
            "{\"entry\":{}}\nnonsense\n{\"owner\":0}\n\n{\"entry\":{\"agent\":{}}}\n{\"cut", "history.jsonl")
        let bench = bench()
        #expect(words(try await read(bench.client())) == ["agent started"])
    }

    @Test func `a token in a remote does not reach the file`() async throws {
        let bench = bench()
        _ = try await bench.client().ask(
            ConnectionsAPI.Open.self, .init(remote: "wss://chat.example.com/socket?token=hunter2", name: "chat"))
        let told = try await read(bench.client())
        #expect(told.last?.event?.connection.remote == "wss://chat.example.com:443/socket")
        #expect(scratch.text("history.jsonl")?.contains("chat.example.com") == true)
        #expect(scratch.text("history.jsonl")?.contains("hunter2") == false)
    }

    @Test func `a history is one of a user's subscriptions`() async throws {
        let bench = ServiceBench(subscriptionsPerUser: 0)
        guard Client.obstacle == nil else { return }
        let stream = try bench.client(.nobody).stream(ConnectionsAPI.History.self, .init())
        #expect(try await stream.refusal(ConnectionsAPI.QuotaExceeded.self).limit == 0)
    }
}
