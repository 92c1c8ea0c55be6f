// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// Files that no run of the daemon has written: at its start, and when it reads its configuration again.
@Suite(.lab)
struct HostileFileStories {
    private static let names = ["history-network.log", "history-network.log.1", "history-0.log", "keepalive-intervals"]

    @Test(arguments: names)
    func `a named pipe in the place of a file holds up nothing`(name: String) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try FileManager.default.createDirectory(atPath: home.state, withIntermediateDirectories: true)
        #expect(mkfifo("\(home.state)/\(name)", 0o600) == 0)
        _ = try await home.start(on: machine)
        expect(try await home.client.connections()) { $0.isEmpty }
        _ = try await home.dialtone("history", on: machine)
        expect(try await home.client.connections()) { $0.isEmpty }
    }

    @Test(arguments: names, [1 << 40, 1 << 27] as [off_t])
    func `neither does one of a size that nothing here writes`(name: String, size: off_t) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try FileManager.default.createDirectory(atPath: home.state, withIntermediateDirectories: true)
        let file = "\(home.state)/\(name)"
        // A hole: a line without an end.
        #expect(FileManager.default.createFile(atPath: file, contents: nil, attributes: [.posixPermissions: 0o600]))
        guard truncate(file, size) == 0 else { return }
        let daemon = try await home.start(on: machine)
        expect(try await home.client.connections()) { $0.isEmpty }
        _ = try await home.dialtone("history", on: machine)
        expect(try await home.client.connections()) { $0.isEmpty }
        #expect(daemon.isRunning)
    }
}
