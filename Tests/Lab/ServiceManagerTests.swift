// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// The daemon under a service manager, which the test plays.
@Suite(.lab)
struct ServiceManagerTests {
    private let launcher = LabAgent.program("lab-launch")

    @Test func `it is ready when its socket serves, not earlier, and says when it ends`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let path = "\(home.directory)/notify"
        let notices = try UnixClient.receiving(at: path)
        let daemon = try await home.launch(on: machine, environment: ["NOTIFY_SOCKET": path])
        let first = try await machine.run { String(decoding: try notices.receive(), as: UTF8.self) }
        // No retry: the notice is the promise that this works, and that the path is known.
        let network = try await home.client.path()
        #expect(first.hasPrefix("READY=1\n"), "\(first)")
        #expect(first.contains("STATUS="))
        #expect(network.status != .unknown)
        daemon.signal(SIGHUP)
        let reloading = try await machine.run { String(decoding: try notices.receive(), as: UTF8.self) }
        #expect(reloading.hasPrefix("RELOADING=1\nMONOTONIC_USEC="), "\(reloading)")
        #expect(try await machine.run { try notices.receive() }.starts(with: "READY=1".utf8))
        daemon.signal(SIGTERM)
        #expect(try await machine.run { try notices.receive() }.starts(with: "STOPPING=1".utf8))
        expect(try await daemon.exit(), is: .status(0))
    }

    @Test func `it is never ready where it does not start`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome("name = 1"))
        let path = "\(home.directory)/notify"
        let notices = try UnixClient.receiving(at: path)
        let daemon = try await home.launch(on: machine, environment: ["NOTIFY_SOCKET": path])
        expect(try await daemon.exit(), is: .status(EX_CONFIG))
        // It has ended: whatever it sent is there.
        #expect(try notices.pending() == nil)
    }

    @Test func `it serves on the socket that it was passed, and leaves its name alone`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, by: [launcher, "--listen", home.socket, "varlink"], arguments: ["--config", home.file])
        _ = try await daemon.line(containing: "listening on the service manager's socket")
        expect(try await home.client.connections()) { $0.isEmpty }
        daemon.signal(SIGTERM)
        expect(try await daemon.exit(), is: .status(0))
        #expect(home.hasSocket, "the name is the service manager's")
    }

    @Test func `a socket of another name is not its own`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let other = "\(home.directory)/other.sock"
        _ = try await home.start(on: machine, by: [launcher, "--listen", other, "http"])
        expect(try await home.client.connections()) { $0.isEmpty }
        #expect(throws: (any Error).self, "nobody keeps it open, so that its clients are refused and do not hang") {
            _ = try UnixClient.connected(to: other)
        }
    }

    @Test func `what is passed and is no listening socket ends it`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, by: [launcher, "--listen", "-", "varlink"], arguments: ["--config", home.file])
        expect(try await daemon.exit(), is: .status(EX_OSERR))
        #expect(daemon.text(of: .error).contains("descriptor 3"), "\(daemon.text(of: .error))")
    }
}
