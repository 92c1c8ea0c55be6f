// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

/// A user whose connections lead to names that the user owns, and who opens them again and again.
@Suite(.lab)
struct AmplificationStories {
    /// Four hosts for each domain, and eight addresses that nobody has for each host.
    private static let hostile: @Sendable (NameServerStub.Question) -> NameServerStub.Reply = { question in
        switch question.type {
        case 33:
            .records((1...4).map { .service(UInt16($0), 0, 5060, "h\($0).evil.example") })
        case 1:
            .addresses(
                (1...8).map { IPAddress(v4: 0xCB00_7100 + UInt32(100 + $0 + abs(question.name.hashValue % 100))) },
                ttl: 0)
        default: .empty
        }
    }

    private static let nobody: UInt32 = 65_534
    private static let connections = 100
    private static let rounds = 20

    /// Opens connections and closes them, round after round, by one client.
    ///
    /// - Returns: how many names were opened.
    private static func attack(on socket: String) throws -> Int {
        let client = try UnixClient.connected(to: socket, as: nobody)
        var unread = 0
        func call(_ method: String, _ parameters: String) throws {
            try client.send("{\"method\":\"org.dialtone.Connections.\(method)\",\"parameters\":{\(parameters)}}\0")
            unread += 1
        }
        func settle() throws {
            while unread > 0 {
                let bytes = try client.receive()
                if bytes.isEmpty { throw SystemError("calling the daemon", code: ECONNRESET) }
                unread -= bytes.count { $0 == 0 }
            }
        }
        for round in 1...rounds {
            for number in 1...connections {
                try call("Open", "\"remote\":\"sip://r\(round)n\(number).evil.example\",\"name\":\"c\(number)\"")
            }
            try settle()
            // What was asked is answered meanwhile, so that dials go on to the next questions.
            for _ in 1...200 {
                try call("List", "")
                try settle()
            }
            for number in 1...connections { try call("Close", "\"name\":\"c\(number)\"") }
            try settle()
        }
        return rounds * connections
    }

    /// SYNs that a machine sent (`ActiveOpens` of /proc/net/snmp).
    private static func dials(of machine: Namespace) async throws -> Int {
        try await machine.run {
            let text = try String(contentsOfFile: "/proc/thread-self/net/snmp", encoding: .utf8)
            let lines = text.split(separator: "\n").filter { $0.hasPrefix("Tcp:") }
                .map { $0.split(separator: " ") }
            guard lines.count == 2, let column = lines[0].firstIndex(of: "ActiveOpens") else { return 0 }
            return Int(lines[1][column]) ?? 0
        }
    }

    @Test(.anotherUser) func `names that a user owns make the network carry what the budget of that user allows`()
        async throws
    {
        try await LabNetwork.with { lab in
            let stub = try await lab.server.run {
                NameServerStub(LabNetwork.serverAddress(.v4), port: 53, reply: Self.hostile)
            }
            let home = try DaemonHome()
            let resolvConf = "\(home.directory)/resolv.conf"
            try Data("nameserver \(LabNetwork.serverAddress(.v4))\n".utf8).write(to: URL(filePath: resolvConf))
            try await lab.host.command(["mount", "--bind", resolvConf, "/etc/resolv.conf"])
            let daemon = try await home.start(on: lab.host)
            let before = try await Self.dials(of: lab.host)
            let began = BootClock.now()
            let socket = home.socket
            let opened = try await lab.host.run { try Self.attack(on: socket) }
            let seconds = Int((BootClock.now() - began) / .seconds(1)) + 1
            let (questions, dials) = (stub.questions.count, try await Self.dials(of: lab.host) - before)
            print("\(opened) names of one user in \(seconds) s: \(questions) questions, \(dials) dials")
            // A burst, what a dial that has begun may owe, and twenty a second; a question that is lost is sent again.
            #expect(questions <= 1024 + 256 + 20 * seconds + 100)
            #expect(dials <= 512 + 128 + 20 * seconds)
            #expect(questions >= 1024, "the burst was used up: \(questions)")

            // Root's connection beside it is dialled at once, and the user is told what is waited for.
            let events = try await home.recorder()
            _ = try await home.client.open(
                .init(remote: "tcp://\(LabNetwork.serverAddress(.v4)):9", name: "beside"))
            _ = try await events.event("root's dial is refused by the server") {
                $0.connection.name == "beside" && $0.reason?.hasPrefix("refused by") == true
            }
            let waiting = try await lab.host.run { () -> String in
                let client = try UnixClient.connected(to: socket, as: Self.nobody)
                let remote = "\"remote\":\"tcp://\(LabNetwork.serverAddress(.v4)):9\",\"name\":\"late\""
                try client.send("{\"method\":\"org.dialtone.Connections.Open\",\"parameters\":{\(remote)}}\0")
                _ = try client.receive()
                try client.send("{\"method\":\"org.dialtone.Connections.List\",\"parameters\":{}}\0")
                return String(decoding: try client.receive(), as: UTF8.self)
            }
            #expect(waiting.contains("this user dials too often at the moment"), "\(waiting)")
            #expect(waiting.contains("nextAttemptAt"))
            stub.stop()
            expect(try await daemon.terminate(), is: .status(0))
        }
    }
}
