// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// The commands that README.md, the guides and dialtone(1) show are ones that `dialtone` takes.
@Suite(.lab)
struct DocumentedCommandTests {
    private static let root = URL(filePath: SourceTree.root)

    @Test func `each is told of the network or of the missing agent, and none is bad usage`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        // One of them asks for the network without this interface.
        try await machine.ip("link add name wlan0 type veth peer name wlan1")
        let programs = URL(filePath: LabAgent.program("dialtone")).deletingLastPathComponent().path
        let commands = try Self.commands()
        #expect(commands.count > 10, "\(commands)")
        for command in commands {
            let outcome = try await machine.outcome(
                ["sh", "-c", "exec \(command)"],
                environment: ["DIALTONE_SOCKET": home.socket, "PATH": "\(programs):/usr/bin:/bin"])
            // No server answers here, no name is known, and no agent runs.
            #expect([.status(1), .status(EX_UNAVAILABLE)].contains(outcome.exit), "\(command)\n\(outcome)")
        }
    }

    private static func commands() throws -> [String] {
        let docs = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "docs").path).sorted()
        let pages = ["README.md", "Examples/README.md"] + docs.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
        // The tutorial's are played by a story of their own.
        let blocks = try pages.filter { !$0.hasSuffix("first-sleeping-client.md") }.flatMap { page in
            try GuidePage(page).blocks.flatMap(\.lines).filter { $0.hasPrefix("dialtone ") }
        }
        let manual = try lines(of: "docs/dialtone.1.in").filter { $0.hasPrefix(".Dl ") }.map { String($0.dropFirst(4)) }
        return (blocks + manual).map { line in
            // Without the comment behind it, what is to follow, and most of the time that it would wait. The programs
            // that it runs are the reader's.
            let command = line.components(separatedBy: "  #")[0].components(separatedBy: " && ")[0]
            return command.replacing(/--timeout \S+/, with: "--timeout 1s").replacing(/\.\/\w+/, with: "true")
                .replacing(/(dialtone exec \S+ --) .*/) { "\($0.1) false" }
        }
    }

    private static func lines(of page: String) throws -> [String] {
        try String(contentsOf: root.appending(path: page), encoding: .utf8).components(separatedBy: "\n")
    }
}
