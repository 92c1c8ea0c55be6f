// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// The two independent clients from PyPI against a server with this project's interfaces.
@Suite(
    .enabled(if: PyPI.python != nil, "PyPI's varlink and asyncvarlink could not be installed"),
    .timeLimit(.minutes(5)))
struct PythonTests {
    private func cli(_ arguments: String...) async -> Program.Result {
        await PythonClients.run(["-m", "varlink.cli"] + arguments)
    }

    private func replies<T: VarlinkObject>(_ type: T.Type, in output: String) throws -> [T] {
        // The tool prints each object over several lines; a closing brace in the first column ends one.
        try output.components(separatedBy: "\n}").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            .filter { !$0.isEmpty }
            .map { try #require(T(json: ($0 + "}").utf8)) }
    }

    @Test func `info names the interfaces`() async throws {
        let service = try await SampleService()
        let result = await cli("info", "unix:\(service.path)")
        #expect(result.status == 0, "\(result.error)")
        for text in ["Dialtone", "org.varlink.service", "org.dialtone.Network", "org.dialtone.Connections"] {
            #expect(result.output.contains(text), "\(result.output)")
        }
    }

    @Test(arguments: ["org.varlink.service", NetworkAPI.name, ConnectionsAPI.name])
    func `help prints the interface`(interface: String) async throws {
        let service = try await SampleService()
        let result = await cli("help", "unix:\(service.path)/\(interface)")
        #expect(result.status == 0, "\(result.error)")
        #expect(result.output.contains("interface \(interface)"))
        #expect(result.output.contains("method "))
    }

    @Test func `calls are answered`() async throws {
        let service = try await SampleService()
        let path = await cli(
            "call", "unix:\(service.path)/org.dialtone.Network.GetPath", #"{"target":{"host":"192.0.2.1","port":5060}}"#
        )
        #expect(path.status == 0, "\(path.error)")
        let reply = try #require(NetworkAPI.GetPath.Reply(json: path.output.utf8))
        #expect(reply.path.destination == "192.0.2.1")
        #expect(reply.path.interface?.name == "wlan0")

        let none = await cli("call", "unix:\(service.path)/org.dialtone.Network.GetPath")
        #expect(none.status == 0, "\(none.error)")

        let closed = await cli("call", "unix:\(service.path)/org.dialtone.Connections.Close", #"{"name":"office"}"#)
        #expect(closed.status == 0, "\(closed.error)")
    }

    @Test func `errors arrive with their parameters`() async throws {
        let service = try await SampleService()
        let missing = await cli("call", "unix:\(service.path)/org.dialtone.Connections.Close", #"{"name":"nobody"}"#)
        // The tool prints an error to standard error and exits with 0.
        #expect(missing.error.contains("org.dialtone.Connections.NoSuchConnection"))
        #expect(missing.error.contains("nobody"))
        let single = await cli("call", "unix:\(service.path)/org.dialtone.Connections.Monitor")
        #expect(single.error.contains("org.varlink.service.ExpectedMore"))
    }

    @Test func `streams arrive to their end`() async throws {
        let service = try await SampleService()
        let result = await cli(
            "call", "-m", "unix:\(service.path)/org.dialtone.Connections.Monitor", #"{"names":["office"]}"#)
        #expect(result.status == 0, "\(result.error)")
        let kinds = try replies(ConnectionsAPI.Monitor.Reply.self, in: result.output).map(\.kind)
        #expect(kinds == [.snapshot, .change, .change])
    }

    @Test func `the strict client agrees`() async throws {
        let service = try await SampleService()
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("strict.py")
        let result = await PythonClients.run([script.path, service.path])
        #expect(result.status == 0, "\(result.output)\(result.error)")
        #expect(result.output.hasSuffix("all as declared\n"))
    }
}
