// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Reachability
import Testing

/// The kernel drops what finds no room in the socket's buffer, says so once, and goes on. The answer: read on, mark the
/// state not coherent, read everything anew, mark it coherent.
@Suite(.lab)
struct Case13Overrun {
    /// Taking a link down with this many IPv6 routes makes as many messages in one call into the kernel; the smallest
    /// buffer holds three.
    private static let many = 500

    @Test func `case 13: after an overrun the verdict is right, and the watch goes on`() async throws {
        try await KernelCase.play(receiveBuffer: 1, prepare: Self.manyRoutes) { it in
            let paths = try await it.watch()
            try await it.lab.takeDown(.wan0)
            let path = try await paths.next("the right verdict") { $0.isCoherent && $0.interface?.name == "wan1" }
            #expect(path.status == .satisfied)
            try await it.expectAgreement(path, on: .server(.v4))
            expect(try await it.host.netlinkSockets(), "the buffer was too small") { $0.contains { $0.drops > 0 } }
            for (round, kind) in [RefusingRoute.prohibit, .unreachable, .blackhole].enumerated() {
                try await it.lab.addRefusingRoute(kind, "203.0.113.0/24")
                try await paths.next("change \(round) after it") { $0.status == .unsatisfied && $0.isCoherent }
                try await it.lab.removeRefusingRoute(kind, "203.0.113.0/24")
                try await paths.next("its end") { $0.status == .satisfied && $0.isCoherent }
            }
        }
    }

    /// The first overrun is answered at once, unless everything was read a moment ago, as at the start: re-reads are
    /// rate-limited. On a machine so busy that the moment is over, another start shows it.
    @Test func `case 13: until everything is read anew the state is incoherent, and then right`() async throws {
        try await LabNetwork.with { lab in
            for attempt in 1... {
                let sockets = try await lab.host.run { try KernelSockets(receiveBuffer: 1) }
                // Nobody reads yet; this overruns the buffer.
                try await lab.host.ip(
                    batch: (0..<20).map { "route replace 198.18.0.\($0)/32 via 192.0.2.\(attempt % 200 + 20)" })
                let it = KernelCase(lab: lab, engine: await NetworkState(sockets))
                let paths = try await it.watch()
                // Also where no further message sets it off.
                try await eventually("everything to be read anew") { it.engine.snapshot.isCoherent }
                let path = try await it.catchUp(paths)
                #expect(paths.all.allSatisfy { $0.status == .satisfied }, "never offline for want of knowledge")
                try await it.expectAgreement(path, on: .server(.v4))
                if paths.all.contains(where: { !$0.isCoherent }) { return }
                try #require(attempt < 50, "not once in \(attempt) starts")
                try await lab.host.ip("address change \(Uplink.wan0.prefix(.v4)) dev wan0 preferred_lft forever")
            }
        }
    }

    /// Re-reads are rate-limited; the last overrun gets one all the same.
    @Test func `case 13: after overrun upon overrun the last verdict is right`() async throws {
        try await KernelCase.play(receiveBuffer: 1) { it in
            let paths = try await it.watch()
            let routes = (0..<Self.many).map { "198.18.\($0 / 250).\($0 % 250)/32 via \(Uplink.wan0.gateway(.v4))" }
            for _ in 1...5 {
                try await it.host.ip(
                    batch: ["route add prohibit 203.0.113.0/24"] + routes.map { "route add " + $0 }
                        + ["route delete prohibit 203.0.113.0/24"] + routes.map { "route delete " + $0 })
            }
            try await it.host.ip("route add prohibit 203.0.113.0/24")
            let path = try await paths.next("the right verdict, for good") { $0.reason == .prohibited && $0.isCoherent }
            try await it.expectAgreement(path, on: .server(.v4))
            try await it.host.ip("route delete prohibit 203.0.113.0/24")
            try await paths.next("the next one") { $0.status == .satisfied && $0.isCoherent }
        }
    }

    @Sendable private static func manyRoutes(_ lab: LabNetwork) async throws {
        try await lab.host.ip(
            batch: (0..<many).map { "route add 2001:db8:ffff:\(String($0, radix: 16))::/64 dev wan0" })
    }
}
