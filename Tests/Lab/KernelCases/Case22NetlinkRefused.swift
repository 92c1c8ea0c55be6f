// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// A sandbox without netlink: the agent does not know, and says so. It never says "offline".
@Suite(.lab)
struct Case22NetlinkRefused {
    /// `EPERM` as a seccomp filter of a container has it, `EAFNOSUPPORT` as systemd's `RestrictAddressFamilies=`.
    @Test(arguments: [EPERM, EAFNOSUPPORT])
    func `case 22: without netlink a path is unknown, never offline, and connections are dialled all the same`(
        code: CInt
    ) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let server = try await machine.run { try TCPSocket.listening(on: 0) }
        let daemon = try await home.start(on: machine, by: LabAgent.refusing(AF_NETLINK, code))
        let complaint = try await daemon.line(containing: "the kernel's network cannot be followed")
        #expect(complaint.text.contains(String(cString: strerror(code))), "\(complaint.text)")
        expect(try await home.client.path().status, is: .unknown)
        let target = NetworkAPI.Target(host: "127.0.0.1")
        expect(try await home.client.path(to: target).status, is: .unknown)
        expect(try await home.client.interfaces()) { $0.isEmpty }

        let name = try await home.client.open(.init(remote: "tcp://127.0.0.1:\(try server.port())"))
        let connection = try await home.recorder().connection(name, in: .ready)
        #expect(connection.remoteAddress == "127.0.0.1:\(try server.port())")

        let status = try await home.dialtone("status", on: machine)
        #expect(status.exit == .status(0))
        #expect(status.output.hasPrefix("Network  unknown: the kernel cannot be asked"), "\(status)")
    }

    @Test func `case 22: without netlink a check says that it does not know`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        for target in ["127.0.0.1", "192.0.2.1:5060", "localhost"] {
            let check = try await home.dialtone("check", target, on: machine, by: LabAgent.refusing(AF_NETLINK, EPERM))
            #expect(check.exit == .status(EX_UNAVAILABLE), "\(check)")
            #expect(check.output.hasPrefix("Unknown: the kernel cannot be asked"), "\(check)")
        }
        let json = try await home.dialtone(
            "check", "--json", "127.0.0.1", on: machine, by: LabAgent.refusing(AF_NETLINK, EPERM))
        #expect(json.exit == .status(EX_UNAVAILABLE))
        #expect(try json.object()["status"] as? String == "unknown")
    }
}
