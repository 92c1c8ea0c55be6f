// SPDX-License-Identifier: Apache-2.0

import CDialtoneLabSupport
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Glibc
import Testing

/// A lookup succeeds while the gateway's neighbour entry is `FAILED`; only the neighbour group tells.
@Suite(.lab)
struct Case10DeadGateway {
    @Test(arguments: Family.allCases)
    func `case 10: a dead gateway is found out, and its return too`(family: Family) async throws {
        // In this process's own network, since the engine's probe has to leave from where its sockets are.
        try await LabNetwork.withThisProcessAsHost { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            let it = KernelCase(lab: lab, engine: try await lab.engine())
            let paths = try await it.watch(.server(family))
            try await lab.drop(.gateway, on: .wan0)
            try await lab.host.ip("neigh flush dev wan0")
            // Somebody on the machine sends a packet; only then does the kernel ask for the gateway.
            await #expect(throws: (any Error).self) {
                try await lab.host.run { try TCPSocket.connected(to: LabNetwork.serverAddress(family), 9) }
            }
            let path = try await paths.next("the dead gateway") { $0.status == .unsatisfied }
            #expect(path.reason == .gatewayUnreachable)
            #expect(path.gateway == IPAddress(Uplink.wan0.gateway(family)))
            try await it.expectAgreement(path, on: .server(family))

            // Nobody sends anything now; the engine's own probe brings the gateway back.
            try await lab.restore(.wan0)
            try await paths.next("the gateway's return") { $0.status == .satisfied }
        }
    }

    /// The kernel asks again for a failed gateway as soon as somebody has a packet for it: its entry is `FAILED` for a
    /// moment only, every three seconds.
    @Test(arguments: Family.allCases)
    func `case 10: it is found out on a machine that goes on sending`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
        } _: { it in
            let paths = try await it.watch(.server(family))
            try await it.lab.drop(.gateway, on: .wan0)
            try await it.host.ip("neigh flush dev wan0")
            let server = try #require(IPAddress(LabNetwork.serverAddress(family)))
            let sender = try await it.host.run { try Self.datagrams(to: server) }
            let sending = Task {
                while !Task.isCancelled {
                    // Without a pause, or nothing would be sent between the notice and the look at the table.
                    for _ in 0..<100 { _ = send(sender, "", 0, CInt(MSG_DONTWAIT | MSG_NOSIGNAL)) }
                    await Task.yield()
                }
            }
            defer { close(sender) }
            let path = try await paths.next("the dead gateway") { $0.status == .unsatisfied }
            #expect(path.reason == .gatewayUnreachable)
            sending.cancel()
            await sending.value
        }
    }

    private static func datagrams(to address: IPAddress) throws(SystemError) -> CInt {
        let family = address.family == .v4 ? AF_INET : AF_INET6
        let number = socket(family, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard SocketAddress(address, port: 9).withPointer({ connect(number, $0, $1) }) == 0 else {
            throw .last("connecting a socket for datagrams")
        }
        return number
    }

    @Test(arguments: Family.allCases)
    func `case 10: the state of the gateway's entry is followed`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
        } _: { it in
            let paths = try await it.watch(.server(family))
            try await it.lab.setNeighbours([Uplink.wan0.gateway(family)], on: .wan0, answering: false)
            let report = try await paths.nextReport("the failure")
            #expect(report.path.reason == .gatewayUnreachable)
            #expect(report.changes == [.status, .reason, family == .v4 ? .ipv4 : .ipv6])
            try await it.lab.setNeighbours([Uplink.wan0.gateway(family)], on: .wan0, answering: true)
            try await paths.next("the recovery") { $0.status == .satisfied }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 10: one that was dead before anybody asked is known`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
            try await $0.setNeighbours([Uplink.wan0.gateway(family)], on: .wan0, answering: false)
        } _: { it in
            let paths = try await it.watch(.server(family), isSatisfied: false)
            #expect(paths.all.first?.reason == .gatewayUnreachable)
        }
    }

    /// Of several default routes IPv6 passes over one whose gateway is dead (RFC 4191, section 3.2), and comes back to
    /// it once it answers. No route changes meanwhile.
    @Test func `case 10: where IPv6 routes around a dead gateway, it is followed there and back`() async throws {
        try await KernelCase.play { it in
            let target = Target.server(.v6)
            let paths = try await it.watch(target)
            try await it.lab.setNeighbours([Uplink.wan0.gateway(.v6)], on: .wan0, answering: false)
            let path = try await paths.next("the other uplink") { $0.interface?.name == "wan1" }
            #expect(path.status == .satisfied)
            try await it.expectAgreement(path, on: target)
            // Everything is looked at anew meanwhile, and nothing uses the dead gateway.
            try await it.lab.addAddress("2001:db8:b::9/64", to: .wan1)
            try await paths.next("another address") { ($0.interface?.addresses.count ?? 0) > 3 }
            try await it.lab.setNeighbours([Uplink.wan0.gateway(.v6)], on: .wan0, answering: true)
            let back = try await paths.next("the way back") { $0.interface?.name == "wan0" }
            try await it.expectAgreement(back, on: target)
        }
    }

    @Test func `case 10: a neighbour of the same address on another link is another`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            try await it.lab.setNeighbours([Uplink.wan0.gateway(.v4)], on: .wan1, answering: false)
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
        }
    }

    @Test func `case 10: a route through another gateway is as good as that gateway`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            try await it.lab.setNeighbours([Uplink.wan0.gateway(.v4)], on: .wan0, answering: false)
            try await paths.next("the failure") { $0.reason == .gatewayUnreachable }
            try await it.lab.preferDefaultRoute(via: .wan1)
            let path = try await paths.next("the other uplink") { $0.status == .satisfied }
            #expect(path.gateway == IPAddress(Uplink.wan1.gateway(.v4)))
            try await it.expectAgreement(path, on: .server(.v4))
        }
    }
}
