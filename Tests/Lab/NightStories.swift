// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// What is there in the morning of what happened in the night.
@Suite(.lab)
struct NightStories {
    @Test func `a daemon that is killed and started again tells of both lives, in the file and on the terminal`()
        async throws
    {
        let machine = try await Namespace.island()
        let home = try DaemonHome("[[connection]]\nname = \"office\"\nremote = \"tcp://192.0.2.7:5060\"\n")
        let first = try await home.start(on: machine)
        // It is ready before its first look at the network, and what that look finds is no change.
        try await eventually("it has seen that there is no network") {
            let told = try await home.dialtone("history", "--json", on: machine)
            return told.lines.contains { $0.contains("\"status\":\"unsatisfied\"") }
        }
        try await machine.landBridge()
        try await eventually("the outage is in the history") {
            let told = try await home.dialtone("history", "office", on: machine)
            #expect(told.exit == .status(0), "\(told)")
            return told.lines.last?.contains("outage") == true
        }
        first.signal(SIGKILL)
        expect(try await first.exit(), is: .signal(SIGKILL))
        // What a loss of power may leave.
        let file = "\(home.state)/history-network.log"
        let before = try Data(contentsOf: URL(filePath: file))
        try (before + before.prefix(20)).write(to: URL(filePath: file))

        let second = try await home.start(on: machine)
        let json = try await home.dialtone("history", "--json", on: machine)
        #expect(json.exit == .status(0), "\(json)")
        let entries = try json.lines.map { line in
            try #require(ConnectionsAPI.History.Reply(json: line.utf8))
        }
        #expect(entries.compactMap(\.agent).map(\.kind) == [.started, .started])
        let opened = entries.compactMap(\.event).filter { $0.kind == .opened }
        #expect(opened.map(\.connection.name) == ["office", "office"])
        #expect(opened[0].sequence < opened[1].sequence)
        let network = entries.compactMap(\.network)
        #expect(network.contains { $0.status == .satisfied && $0.previousStatus == .unsatisfied }, "\(json)")
        #expect(try Data(contentsOf: URL(filePath: file)).starts(with: before))

        let people = try await home.dialtone("history", "office", "--since", "1h", on: machine)
        #expect(people.lines.filter { $0.contains("the agent was killed or crashed, after") }.count == 1, "\(people)")
        let all = try await home.dialtone("history", on: machine)
        #expect(all.lines.filter { $0.contains("agent     started") }.count == 2, "\(all)")
        #expect(people.lines.last?.contains("outage") == true, "\(people)")
        #expect(people.lines.allSatisfy { !$0.contains("network ") }, "\(people)")
        expect(try await second.terminate(), is: .status(0))
        let end = try await home.start(on: machine)
        let afterwards = try await home.dialtone("history", "--json", on: machine)
        #expect(afterwards.lines.contains { $0.contains("\"kind\":\"ended\"") }, "\(afterwards)")
        expect(try await end.terminate(), is: .status(0))
    }

    /// Where there is no state directory the files are in memory, a quarter as large as on disk, and else the same. So
    /// many wakes, of a name as long as may be, fill them more than twice. A user who is not root may have 4,096 lines
    /// written at once.
    @Test(.anotherUser, .timeLimit(.minutes(15)))
    func `a night of wakes costs nothing of the evening before, for two users beside each other`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome()
        let daemon = try await home.start(on: machine, environment: ["STATE_DIRECTORY": "/proc/none"])
        _ = try await daemon.line(containing: "not kept for the next run")
        let sleepers = [
            try await Sleeper.start("m", as: [], home, on: machine),
            try await Sleeper.start("t", as: AnotherUser.command, home, on: machine),
        ]
        for sleeper in sleepers {
            _ = try await sleeper.process.line(containing: "evening")
            let evening = try await sleeper.history()
            expect(evening.kinds, is: ["opened", "state", "state", "state"])
            #expect(evening.sum.contains("\(sleeper.name)  1 outage, down "), "\(evening)")
            try sleeper.process.send("good night\n")
            _ = try await sleeper.process.line(containing: "morning", within: .seconds(600))
            let morning = try await sleeper.history()
            expect(morning.kinds, is: evening.kinds)
            expect(morning.sum, is: evening.sum)
            expect(morning.wakes + morning.droppedWakes, is: Sleeper.wakes)
            #expect(morning.droppedWakes > 0, "\(morning)")
        }
    }

    /// A client that is woken often, and what its user sees of it.
    private struct Sleeper {
        static let wakes = 1500
        let name: String
        let process: LabProcess
        private let user: [String]
        private let home: DaemonHome
        private let machine: Namespace

        static func start(
            _ letter: Character, as user: [String], _ home: DaemonHome, on machine: Namespace
        ) async throws -> Self {
            let name = String(repeating: letter, count: 64)
            let process = try await machine.spawn(
                user + ["/usr/bin/python3", "\(SourceTree.root)/Tests/Lab/night_sleeper.py", name, "\(wakes)"],
                environment: [
                    "DIALTONE_SOCKET": home.socket, "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": "\(SourceTree.root)/Examples/sleeping-client",
                ])
            return Self(name: name, process: process, user: user, home: home, machine: machine)
        }

        /// What its user is told in the morning, of the connection without wakes, of wakes, and last.
        func history() async throws -> (kinds: [String], wakes: Int, droppedWakes: Int, sum: String) {
            let all = try await home.dialtone("history", name, "--since", "1h", "--json", on: machine, by: user)
            let told = try await home.dialtone("history", name, "--since", "1h", on: machine, by: user)
            let replies = try all.lines.map { try #require(ConnectionsAPI.History.Reply(json: $0.utf8)) }
            let events = replies.compactMap(\.event)
            #expect(events.allSatisfy { $0.connection.name == name }, "of somebody else's: \(events.suffix(3))")
            let dropped = replies.compactMap(\.dropped)
            #expect(dropped.allSatisfy { $0.part == .wakes }, "\(dropped)")
            return (
                events.filter { $0.kind != .wake }.map(\.kind.rawValue), events.count { $0.kind == .wake },
                dropped.reduce(0) { $0 + $1.count }, told.lines.last ?? ""
            )
        }
    }

    @Test func `whatever lies in the state directory, the daemon starts and keeps a history`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome()
        try FileManager.default.createDirectory(atPath: home.state, withIntermediateDirectories: false)
        // A pipe that nobody writes to, a file of a terabyte, one of megabytes without a line's end, bytes by chance.
        mkfifo("\(home.state)/keepalive-intervals", 0o600)
        mkfifo("\(home.state)/history-network.log.1", 0o600)
        try Data().write(to: URL(filePath: "\(home.state)/history-0.log"))
        try #require(truncate("\(home.state)/history-0.log", 1 << 40) == 0)
        let long = Data(repeating: UInt8(ascii: "x"), count: 8 << 20)
        try long.write(to: URL(filePath: "\(home.state)/history.jsonl"))
        try long.prefix(1 << 20).write(to: URL(filePath: "\(home.state)/history-network.log"))
        let chance = Data((0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) })
        try chance.write(to: URL(filePath: "\(home.state)/history-1.log"))
        let daemon = try await home.start(on: machine)
        _ = try await daemon.line(containing: "a file of the state cannot be used and is put aside")
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.7:5060", name: "office"))
        let told = try await home.dialtone("history", on: machine)
        #expect(told.exit == .status(0), "\(told)")
        #expect(told.lines.contains { $0.contains("office") }, "\(told)")
        _ = try await daemon.line(containing: "some of the history is damaged and left out")
        expect(try await daemon.terminate(), is: .status(0))
    }
}
