// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// The tutorial of a client library, with the two programs that each of them has, as its page prints it.
struct ClientTutorial {
    /// Runs a command of the page.
    typealias Start = (String) async throws -> LabProcess

    let page: GuidePage
    private let (path, open, answer): (GuidePage.Typed, GuidePage.Typed, GuidePage.Typed)

    /// - Parameter page: its path from the root of the source tree.
    init(_ page: String) throws {
        self.page = try GuidePage(page)
        let typed = self.page.typed
        try #require(typed.count == 3 && typed.allSatisfy { !$0.output.isEmpty }, "\(typed)")
        (path, open, answer) = (typed[0], typed[1], typed[2])
    }

    /// The first program tells each change of the path to a host: where there is one, none, and one again.
    ///
    /// - Parameter network: an island with a bridge.
    func tellPaths(on network: Namespace, by start: Start) async throws {
        let program = try await start(path.command)
        var last: LabProcess.Line?
        for (turn, line) in path.output.enumerated() {
            if turn > 0 { try await network.ip("link set bridge1 \(turn.isMultiple(of: 2) ? "up" : "down")") }
            last = try await program.line(after: last, containing: line)
            #expect(last?.text == line)
        }
    }

    /// The second program takes a connection when the server has spoken, answers and parks, twice: what was parked
    /// another process can take.
    func answer(on network: Namespace, by start: Start) async throws {
        let server = try #require(open.command.firstMatch(of: /tcp:\/\/(\S+):(\d+)/), "\(open.command)").output
        try await network.ip("address replace \(server.1)/32 dev lo")
        let port = try #require(UInt16(server.2))
        let listener = try await network.run { try TCPSocket.listening(on: port) }
        let opened = try await start(open.command)
        expect(try await opened.exit(), is: .status(0))
        #expect(opened.text(of: .output) == open.output.joined(separator: "\n"))
        let peer = try await network.run { try listener.accept() }
        for line in answer.output + ["again"] {
            let run = try await start(answer.command)
            try await network.run { try peer.send("\(line)\n") }
            expect(try await network.run { try peer.receive() }, is: "GOT \(line)\n")
            expect(try await run.exit(), is: .status(0))
            #expect(run.text(of: .output) == line)
        }
    }
}

extension ClientTutorial {
    /// Runs the first program from a folder of the source tree, with an agent of its own.
    func tellPaths(in folder: String, environment: [String: String] = [:]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.landBridge()
        _ = try await home.start(on: machine)
        let start = Self.start(in: folder, environment, on: machine, home)
        try await tellPaths(on: machine, by: start)
        // With nothing to tell, it ends.
        let refused = try await start((path.command.split(separator: " ").dropLast() + ["a..b"]).joined(separator: " "))
        expect(try await refused.exit(), is: .status(1))
        #expect(refused.text(of: .error).contains("target makes no sense"), "\(refused.lines)")
    }

    /// Runs the second program in the same way.
    func answer(in folder: String, environment: [String: String] = [:]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        try await answer(on: machine, by: Self.start(in: folder, environment, on: machine, home))
    }

    private static func start(
        in folder: String, _ environment: [String: String], on machine: Namespace, _ home: DaemonHome
    ) -> Start {
        let programs = URL(filePath: LabAgent.program("dialtone")).deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let environment = environment.merging([
            "DIALTONE_SOCKET": home.socket, "PATH": "\(programs):\(path)",
        ]) { mine, _ in mine }
        return { command in
            try await machine.spawn(["sh", "-c", "cd \(folder) && exec \(command)"], environment: environment)
        }
    }
}
