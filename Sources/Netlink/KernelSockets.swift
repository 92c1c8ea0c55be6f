// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
package import DialtonePlatform

/// The netlink sockets of a ``KernelMonitor``, opened and subscribed.
///
/// They belong to the network namespace of the thread that opens them, whichever queue uses them later: that is how a
/// monitor is pointed at another namespace. Subscribed first, so that nothing is missed before the first dump.
package struct KernelSockets: ~Copyable, Sendable {
    /// Room for notices that come faster than they are read. A change costs about 1 KiB of accounting, so this holds a
    /// burst of eight thousand. networkd asks for 128 MiB, NetworkManager for 8; the kernel charges only what is
    /// queued.
    package static let defaultReceiveBuffer = 8 << 20

    // A socket is used on the agent's queue alone once the monitor has it; until then, by the thread that opens it.
    nonisolated(unsafe) let notices: NetlinkSocket
    nonisolated(unsafe) let neighbours: NetlinkSocket
    nonisolated(unsafe) let requests: NetlinkSocket
    /// Where what passes through them is recorded.
    package let recorder: Recorder?

    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// - Parameters:
    ///   - receiveBuffer: bytes that the kernel may queue; tests make it tiny to force overruns.
    ///   - recorder: records what passes.
    /// - Throws: the kernel's refusal; `EPERM`, `EACCES` or `EAFNOSUPPORT` in a sandbox without netlink.
    package init(receiveBuffer: Int = defaultReceiveBuffer, recorder: Recorder? = nil) throws(SystemError) {
        let notices = try NetlinkSocket(
            groups: [
                // Without the link group, a lost carrier makes no message at all where IPv6 is off.
                RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP,
                // The only word on `ignore_routes_with_linkdown`, by which routes come and go like links.
                RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
            ], receiveBuffer: receiveBuffer)
        let neighbours = try NetlinkSocket()
        let requests = try NetlinkSocket()
        (self.notices, self.neighbours, self.requests) = (notices, neighbours, requests)
        self.recorder = recorder
        if let recorder {
            notices.tap = (recorder, .notices)
            neighbours.tap = (recorder, .neighbours)
            requests.tap = (recorder, .requests)
        }
    }

    /// The same sockets once more, for a monitor that could not be made of them the first time.
    package init(sharing other: borrowing KernelSockets) {
        (notices, neighbours, requests) = (other.notices, other.neighbours, other.requests)
        recorder = other.recorder
    }
}
