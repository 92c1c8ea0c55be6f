// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// Tells a signal at each message of the kernel about links, addresses, routes and rules. It does not read what they
/// say: whoever waits asks the kernel again, with a tool that is not of this project.
final class KernelMonitor: Sendable {
    private let descriptor: OwnedDescriptor

    /// A monitor of the namespace that the calling thread is in.
    init() throws(SystemError) {
        let number = try retryingInterrupts("opening a netlink socket") {
            socket(AF_NETLINK, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), NETLINK_ROUTE)
        }
        descriptor = OwnedDescriptor(number)
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = Self.groups
        try retryingInterrupts("joining the netlink groups") {
            withUnsafeBytes(of: &address) { bytes in
                bind(number, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(bytes.count))
            }
        }
    }

    /// Tells `changes` until the registration that is returned is cancelled.
    @AgentQueue
    func start(_ changes: ChangeSignal) throws(SystemError) -> Poller.Registration {
        let number = descriptor.number
        return try Poller.shared.register(number, .readable) { _ in
            // An overrun (ENOBUFS) is a change like any other here.
            while recv(number, nil, 0, CInt(MSG_TRUNC)) >= 0 || errno == ENOBUFS {}
            changes.notify()
        }
    }

    private static let groups = [
        RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE, RTMGRP_IPV4_RULE,
        RTMGRP_NEIGH,
    ].reduce(0) { $0 | UInt32($1) }
}
