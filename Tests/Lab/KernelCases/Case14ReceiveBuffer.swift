// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import Reachability
import Testing

/// libnl's buffer of 32 KiB overruns at a burst that a container engine makes, and its error codes hide the kernel's.
@Suite(.lab)
struct Case14ReceiveBuffer {
    /// The sockets are subscribed when they are opened, and nobody reads them before the engine starts: a burst in
    /// between lies in the buffer whole, or not.
    @Test(arguments: [(KernelSockets.defaultReceiveBuffer, true), (32 * 1024, false)])
    func `case 14: the buffer holds a burst of a thousand changes, and libnl's would not`(
        size: Int, isEnough: Bool
    ) async throws {
        try await LabNetwork.with { lab in
            let others = Set(try await lab.host.netlinkSockets().map(\.port))
            let sockets = try await lab.host.run { try KernelSockets(receiveBuffer: size) }
            try await lab.host.ip(
                batch: (0..<1000).map { "route add 198.18.\($0 / 250).\($0 % 250)/32 via \(Uplink.wan0.gateway(.v4))" })
            let drops = try await lab.host.netlinkSockets().filter { !others.contains($0.port) }.map(\.drops)
            #expect(drops.count == 3)
            #expect((drops.max() == 0) == isEnough, "\(drops)")
            let it = KernelCase(lab: lab, engine: await NetworkState(sockets))
            let path = try await it.catchUp(try await it.watch())
            #expect(path.status == .satisfied)
        }
    }

    /// libnl makes `NLE_FAILURE` of three of them.
    @Test(arguments: [
        (RefusingRoute.unreachable, RouteRefusal.unreachable), (.prohibit, .prohibited), (.blackhole, .blackhole),
        (.throw, .noRoute),
    ])
    func `case 14: a lookup's refusal keeps the kernel's number`(
        route: RefusingRoute, refusal: RouteRefusal
    ) async throws {
        try await LabNetwork.with { lab in
            let sockets = try await lab.host.run { try KernelSockets() }
            let kernel = try await KernelMonitor(sockets)
            try await lab.addRefusingRoute(route, "203.0.113.0/24")
            let destination = try #require(IPAddress(LabNetwork.serverAddress(.v4)))
            let answers = try await kernel.routes(for: [PreparedQuery(RouteQuery(destination))])
            #expect(answers == [.refused(refusal)])
        }
    }
}
