// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Foundation
import Reachability
import Testing

/// A router carries a million routes. The kernel is asked for the targets that are watched; its table is never read.
@Suite(.lab)
struct Case17NarrowDumps {
    /// As a router; and as a host, whose IPv6 neighbours are dumped for the routers that do not answer.
    @Test(arguments: [KernelSockets.defaultReceiveBuffer, 1], [true, false])
    func `case 17: links and addresses are dumped, and routes never, whatever is lost`(
        buffer: Int, isRouter: Bool
    ) async throws {
        try await LabNetwork.with { lab in
            if isRouter { try await lab.host.sysctl([("net.ipv6.conf.all.forwarding", "1")]) }
            let routes = (0..<2000).map { "198.18.\($0 / 250).\($0 % 250)/32 via \(Uplink.wan0.gateway(.v4))" }
            try await lab.host.ip(batch: routes.map { "route add " + $0 })
            let file = FileManager.default.temporaryDirectory.appending(path: "dialtone-\(UUID().uuidString)").path
            defer { unlink(file) }
            let recorder = try Recorder(creating: file, program: "Case17") { Issue.record("it ended: \($0)") }
            let sockets = try await lab.host.run { try KernelSockets(receiveBuffer: buffer, recorder: recorder) }
            let it = KernelCase(lab: lab, engine: await NetworkState(sockets))
            let paths = try await it.watch()
            // With the small buffer an overrun, and so another look at everything.
            try await lab.host.ip(batch: routes.map { "route delete " + $0 })
            try await it.catchUp(paths)
            recorder.finish()

            let requests = try Recording(contentsOf: file).requests
            let dumped: Set = [Request.links, Request.addresses]
            #expect(
                Set(requests.filter(\.isDump).map(\.type)) == (isRouter ? dumped : dumped.union([Request.neighbours])))
            #expect(requests.contains { $0.type == Request.route })
            #expect(requests.contains { $0.isDump && $0.type == Request.links })
        }
    }
}

/// What was asked of the kernel.
private struct Request {
    /// `RTM_GETLINK`, `RTM_GETADDR`, `RTM_GETROUTE` and `RTM_GETNEIGH`, from linux/rtnetlink.h.
    static let (links, addresses, route, neighbours): (UInt16, UInt16, UInt16, UInt16) = (18, 22, 26, 30)

    let type: UInt16
    /// `NLM_F_DUMP`, from linux/netlink.h.
    let isDump: Bool
}

extension Recording {
    /// All requests, in order.
    fileprivate var requests: [Request] {
        entries.flatMap { entry -> [Request] in
            guard case .sent(_, var rest) = entry.content else { return [] }
            var requests: [Request] = []
            // struct nlmsghdr: the length, the type at 4, the flags at 6.
            while rest.count >= 16 {
                let (length, type, flags) = rest.withUnsafeBytes { bytes in
                    (
                        bytes.loadUnaligned(as: UInt32.self), bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self),
                        bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)
                    )
                }
                requests.append(Request(type: type, isDump: flags & 0x300 == 0x300))
                rest = rest.dropFirst((Int(length) + 3) / 4 * 4)
            }
            return requests
        }
    }
}
