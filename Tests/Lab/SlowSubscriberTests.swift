// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// A subscriber that never reads.
@Suite(.lab)
struct SlowSubscriberTests {
    /// Opens and closes connections, and returns when all of it is answered.
    private func makeEvents(_ pairs: Int, on machine: Namespace, at socket: String) async throws {
        let pair =
            #"{"method":"org.dialtone.Connections.Open","parameters":{"remote":"tcp://192.0.2.1:1","name":"x"}}"# + "\0"
            + #"{"method":"org.dialtone.Connections.Close","parameters":{"name":"x"}}"# + "\0"
        try await machine.run {
            let client = try UnixClient.connected(to: socket)
            try client.send(String(repeating: pair, count: pairs))
            var answers = 0
            while answers < 2 * pairs {
                let bytes = try client.receive()
                #expect(!bytes.isEmpty)
                if bytes.isEmpty { return }
                answers += bytes.count { $0 == 0 }
            }
        }
    }

    /// The memory that is the daemon's alone, in KiB.
    private func memory(of process: LabProcess) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processID)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return try #require(line?.split(separator: " ").compactMap { Int($0) }.first)
    }

    @Test func `it costs the daemon nothing more, gets a gap, and the others get everything`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.start(on: machine)
        let socket = home.socket
        let sleeper = try UnixClient.connected(to: socket)
        try sleeper.send(#"{"method":"org.dialtone.Connections.Monitor","more":true}"# + "\0")
        let reader = try await home.recorder()

        // What it takes at first (buffers, caches) is taken before the measure.
        var warm = 0
        for round in 0..<120 {
            if round == 20 { warm = try memory(of: daemon) }
            try await makeEvents(80, on: machine, at: socket)
            let newest = try #require(try await home.recorder().told.first).reply.sequence
            try await reader.changes.wait(for: "the events up to \(newest)") {
                reader.told.last.flatMap { $0.reply.sequence >= newest ? () : nil }
            }
        }
        #expect(reader.disorder == nil, "every event, in order")
        #expect(reader.told.count > 16_000)
        // Kept for the one that sleeps, they would be more than ten megabytes.
        let memory = try memory(of: daemon)
        #expect(isBelow(memory, warm + 4 * 1024))

        // Now it reads: what its socket held, then a gap that shows the present.
        let kinds = try await machine.run {
            var kinds: [String] = []
            var rest: [UInt8] = []
            while kinds.last != "gap" {
                rest += try sleeper.receive()
                for message in rest.split(separator: 0, omittingEmptySubsequences: false).dropLast() {
                    guard case .success(let reply, _) = try VarlinkReply<ConnectionsAPI.Monitor.Reply>(Array(message))
                    else {
                        Issue.record("an error: \(String(decoding: message, as: UTF8.self))")
                        break
                    }
                    kinds.append(reply.kind.rawValue)
                }
                rest = Array(rest.suffix(from: rest.lastIndex(of: 0).map { $0 + 1 } ?? 0))
            }
            return kinds
        }
        #expect(kinds.first == "snapshot")
        #expect(kinds.count < 1500, "what it got in between lay in the socket")
    }
}
