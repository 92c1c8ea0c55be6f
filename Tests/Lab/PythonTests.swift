// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneVarlink
import Foundation
import Testing

/// The independent clients from PyPI against the daemon that runs.
@Suite(.lab, .python)
struct PythonTests {
    /// The Python that has the clients. Inside of the sandbox there is no way to PyPI: `make test` makes it before.
    static let python = "\(SourceTree.root)/.build/python-varlink/bin/python"

    private func cli(_ arguments: [String], on machine: Namespace) async throws -> Outcome {
        try await machine.outcome([Self.python, "-m", "varlink.cli"] + arguments)
    }

    @Test func `the command line of python's varlink can info, help and call`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let address = "unix:\(home.socket)"

        let info = try await cli(["info", address], on: machine)
        #expect(info.exit == .status(0), "\(info)")
        for text in ["Product: dialtoned", "org.varlink.service", NetworkAPI.name, ConnectionsAPI.name] {
            #expect(info.output.contains(text), "\(text) is missing in \(info)")
        }
        for (interface, description) in [
            (NetworkAPI.name, NetworkAPI.description), (ConnectionsAPI.name, ConnectionsAPI.description),
        ] {
            let help = try await cli(["help", "\(address)/\(interface)"], on: machine)
            #expect(help.exit == .status(0), "\(help)")
            #expect(help.output.contains("interface \(interface)"))
            for line in description.split(separator: "\n") where line.hasPrefix("method ") {
                let name = line.dropFirst("method ".count).prefix { $0 != "(" }
                #expect(help.output.contains("method \(name)"), "\(name) is missing")
            }
        }

        let path = try await cli(
            ["call", "\(address)/org.dialtone.Network.GetPath", #"{"target":{"host":"127.0.0.1"}}"#],
            on: machine)
        #expect(path.exit == .status(0), "\(path)")
        let reply = try #require(NetworkAPI.GetPath.Reply(json: path.output.utf8))
        #expect(reply.path.isLocalAddress)
        let open = try await cli(
            ["call", "\(address)/org.dialtone.Connections.Open", #"{"remote":"tcp://192.0.2.1:1"}"#],
            on: machine)
        #expect(open.exit == .status(0), "\(open)")
        let refused = try await cli(
            ["call", "\(address)/org.dialtone.Connections.Close", #"{"name":"nobody"}"#], on: machine)
        #expect(refused.error.contains("org.dialtone.Connections.NoSuchConnection"), "\(refused)")
    }

    @Test func `the command line of python's varlink follows a stream`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let following = try await machine.spawn(
            [
                Self.python, "-u", "-m", "varlink.cli", "call", "-m",
                "unix:\(home.socket)/org.dialtone.Connections.Monitor",
            ])
        _ = try await following.line(containing: "\"snapshot\"")
        _ = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "office", on: machine)
        _ = try await following.line(containing: "\"opened\"")
        _ = try await home.dialtone("close", "office", on: machine)
        _ = try await following.line(containing: "\"closed\"")
        try await following.terminate()
        expect(try await home.client.connections(), "the daemon serves on") { $0.isEmpty }
    }

    @Test func `asyncvarlink finds every reply as declared`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let script = try await machine.outcome(
            [Self.python, "\(SourceTree.root)/Tests/Lab/agent.py", home.socket],
            environment: ["PYTHONPATH": "\(SourceTree.root)/Tests/DialtoneAPI", "PYTHONDONTWRITEBYTECODE": "1"])
        #expect(script.exit == .status(0), "\(script)")
        #expect(script.output == "all as declared")
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where what it needs from PyPI is not installed.
    static var python: Self {
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: PythonTests.python),
            "what the tests need from PyPI is not here: scripts/python-varlink installs it")
    }
}
