// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Foundation
import Reachability
import Testing

/// A kernel, or a sandbox, that does not give what the agent would like to have.
@Suite(.lab)
struct PoorKernelTests {
    @Test func `without IPv6 on any interface IPv4 works, and IPv6 has no way`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.sysctl([
            ("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1"),
            ("net.ipv6.conf.lo.disable_ipv6", "1"),
        ])
        try await expectIPv4Alone(on: machine, home, by: [])
    }

    /// As far as sockets go, this is a kernel without IPv6. One that was built without it does not know its routes
    /// either, which cannot be had here.
    @Test func `without IPv6 sockets in the kernel IPv4 works`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let launcher = LabAgent.refusing(AF_INET6, EAFNOSUPPORT)
        try await machine.ip("-6 address flush dev lo")
        try await expectIPv4Alone(on: machine, home, by: launcher)
    }

    /// Descriptors may have run out just when the first timer is wanted: that is no reason to die. Without an epoll set
    /// of its own libdispatch gives up, so that is not tried.
    @Test func `without a descriptor for timers, a check says what it knows`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let launcher = [LabAgent.program("lab-launch"), "--fail", "timerfd_create", "\(EMFILE)"]
        let check = try await home.dialtone("check", "127.0.0.1", on: machine, by: launcher)
        #expect(check.exit == .status(0), "\(check)")
    }

    /// The filter of the neighbours' notices is charged to its socket. The one for the gateways before would not let
    /// through what is told of the new one.
    @Test func `without room for a filter a new gateway's death is heard all the same`() async throws {
        try await LabNetwork.with { lab in
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(.v4))
            try await recorder.watch([server])
            try await recorder.path(to: server, "the first uplink") { $0.interface?.name == "wan0" }
            do {
                try await lab.host.sysctl([("net.core.optmem_max", "1")])
            } catch {
                // There is one for all networks, which is not the tests' to change.
                try Test.cancel("net.core.optmem_max belongs to a network only since Linux 6.8")
            }
            try await lab.preferDefaultRoute(via: .wan1)
            try await recorder.path(to: server, "the second uplink") { $0.interface?.name == "wan1" }
            try await lab.host.failNeighbour("\(Uplink.wan1.gateway(.v4)) dev wan1")
            try await recorder.path(to: server, "the dead gateway") { $0.reason == .gatewayUnreachable }
        }
    }

    private func expectIPv4Alone(on machine: Namespace, _ home: DaemonHome, by launcher: [String]) async throws {
        let server = try await machine.run { try TCPSocket.listening(on: 0) }
        let daemon = try await home.start(on: machine, by: launcher)
        let four = try await home.client.open(.init(remote: "tcp://127.0.0.1:\(try server.port())", name: "four"))
        let six = try await home.client.open(.init(remote: "tcp://[::1]:\(try server.port())", name: "six"))
        _ = try await home.recorder().connection(four, in: .ready)
        let waiting = try await home.recorder().connection(six, in: .waiting)
        #expect(waiting.reason?.isEmpty == false)
        expect(try await home.client.path().supportsIPv6, is: false)
        let check = try await home.dialtone("check", "[::1]:5060", on: machine, by: launcher)
        #expect(check.exit == .status(1), "\(check)")
        #expect(check.output.hasPrefix("Not reachable: "), "\(check)")
        #expect(daemon.isRunning)
    }
}

extension LabAgent {
    /// A command that becomes a program whose sockets of a family are refused.
    static func refusing(_ family: CInt, _ code: CInt) -> [String] {
        [program("lab-launch"), "--refuse", "\(family)", "\(code)"]
    }
}
