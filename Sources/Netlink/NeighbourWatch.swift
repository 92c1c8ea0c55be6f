// SPDX-License-Identifier: Apache-2.0

internal import CNetlink
internal import Glibc
internal import NetworkPath
internal import Platform

/// Watches whether the gateways in use answer.
///
/// A route lookup succeeds while the gateway's neighbour entry is `FAILED`; only the neighbour table tells.
@AgentQueue
final class NeighbourWatch {
    /// The socket on which the notices come.
    let notices: NetlinkSocket
    private let requests: NetlinkSocket
    private var watched: Set<NetworkSnapshot.Neighbour> = []
    private var awaitsRecovery = false
    private var isJoined = false

    init(notices: NetlinkSocket, requests: NetlinkSocket) {
        self.notices = notices
        self.requests = requests
    }

    /// Watches exactly `gateways` from now on and returns what is known of those that are new.
    func watch(_ gateways: Set<NetworkSnapshot.Neighbour>) throws(SystemError) -> [KernelEvent] {
        guard gateways != watched else { return [] }
        let added = gateways.subtracting(watched)
        watched = gateways
        try attachFilter()
        // Asked after the filter stands: a change in between comes as a notice, not at all in the other order.
        return try states(of: added)
    }

    /// Lets good news through while there is a failed gateway to wait for.
    func update(failed: Set<NetworkSnapshot.Neighbour>) throws(SystemError) {
        let awaits = !failed.isDisjoint(with: watched)
        guard awaits != awaitsRecovery else { return }
        awaitsRecovery = awaits
        try attachFilter()
    }

    /// The present state of all watched gateways, after notices were lost.
    func reread() throws(SystemError) -> [KernelEvent] {
        try states(of: watched)
    }

    /// Whether `event` is about a watched gateway. The filter matches addresses, which two links may share.
    func concerns(_ event: KernelEvent) -> Bool {
        guard case .neighbourChanged(let neighbour, _) = event else { return false }
        return watched.contains(neighbour)
    }

    private func attachFilter() throws(SystemError) {
        var filter = NeighbourFilter(for: Set(watched.map(\.address)), awaitsRecovery: awaitsRecovery).program
        let result = filter.withUnsafeMutableBufferPointer { instructions in
            var program = sock_fprog(len: UInt16(instructions.count), filter: instructions.baseAddress)
            return setsockopt(
                notices.descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                socklen_t(MemoryLayout<sock_fprog>.size))
        }
        if result != 0 { throw .last("filtering the kernel's notices about neighbours") }
        // Joined only behind a filter, so that the flood never starts.
        if !isJoined {
            try notices.join(RTNLGRP_NEIGH)
            isJoined = true
        }
    }

    private func states(of neighbours: Set<NetworkSnapshot.Neighbour>) throws(SystemError) -> [KernelEvent] {
        var events: [KernelEvent] = []
        for neighbour in neighbours {
            events.append(.neighbourChanged(neighbour, isFailed: try isFailed(neighbour)))
        }
        return events
    }

    /// Whether the kernel holds `neighbour` for dead. An entry it does not have is not: nothing was asked yet.
    private func isFailed(_ neighbour: NetworkSnapshot.Neighbour) throws(SystemError) -> Bool {
        var kinds = InterfaceKinds()
        return try requests.ask(NetlinkRequest(neighbour)) { message in
            // Anything else is the kernel's word that it has no such entry.
            guard case .neighbourChanged(_, let isFailed)? = KernelEvent(message, kinds: &kinds) else { return nil }
            return isFailed
        } ?? false
    }
}

extension NetlinkRequest {
    /// Asks for one entry of the neighbour table.
    init(_ neighbour: NetworkSnapshot.Neighbour) {
        var header = ndmsg()
        header.ndm_family = UInt8(neighbour.address.family == .v4 ? AF_INET : AF_INET6)
        header.ndm_ifindex = CInt(neighbour.interfaceIndex)
        self.init(type: RTM_GETNEIGH, flags: NLM_F_REQUEST, header: header) { message in
            let bytes = neighbour.address.bytes
            nla_put(message, CInt(NDA_DST), CInt(bytes.count), bytes)
        }
    }
}
