// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// Watches whether the gateways in use answer.
///
/// A route lookup succeeds while the gateway's neighbour entry is `FAILED`; only the neighbour table tells.
@AgentQueue
final class NeighbourWatch {
    /// The socket on which the notices come.
    let notices: NetlinkSocket
    private let requests: NetlinkSocket
    private(set) var watched: Set<NetworkSnapshot.Neighbour> = []
    /// Those of the watched whose recovery would be news.
    private var awaited: Set<NetworkSnapshot.Neighbour> = []
    /// IPv6 routers that do not answer and that no verdict rests on; of them nothing but the recovery is news.
    private var silent: Set<NetworkSnapshot.Neighbour> = []
    private var isJoined = false

    init(notices: NetlinkSocket, requests: NetlinkSocket) {
        self.notices = notices
        self.requests = requests
    }

    /// Watches exactly `gateways` from now on and returns what is known of those that are new.
    func watch(_ gateways: Set<NetworkSnapshot.Neighbour>) throws(SystemError) -> [KernelEvent] {
        guard gateways != watched else { return [] }
        let added = gateways.subtracting(watched)
        let before = (watched, awaited, silent)
        (watched, awaited, silent) = (gateways, awaited.intersection(gateways), silent.subtracting(gateways))
        do throws(SystemError) {
            try listen()
            // Asked after the filter stands: a change in between comes as a notice, not at all in the other order.
            return try states(of: added)
        } catch {
            // What was refused is to be tried again.
            (watched, awaited, silent) = before
            throw error
        }
    }

    /// Lets good news through of the gateways that are `open`.
    ///
    /// - Returns: those of which it does from now on, and did not before: what is known of them may be out of date.
    func update(open: Set<NetworkSnapshot.Neighbour>) throws(SystemError) -> Set<NetworkSnapshot.Neighbour> {
        let open = open.intersection(watched)
        guard open != awaited else { return [] }
        let added = open.subtracting(awaited)
        awaited = open
        try listen()
        return added
    }

    /// The present state of all watched gateways, after notices were lost.
    func reread() throws(SystemError) -> [KernelEvent] {
        try states(of: watched)
    }

    /// Whether `event` is about a watched gateway. The filter matches addresses, which two links may share.
    func concerns(_ event: KernelEvent) -> Bool {
        switch event {
        case .neighbourChanged(let neighbour, _), .neighbourAwaited(let neighbour), .neighbourForgotten(let neighbour):
            watched.contains(neighbour)
        case .interfacePresent, .interfaceRemoved, .addressPresent, .addressRemoved, .routeChanged,
            .routeSelectionChanged, .ruleChanged, .nextHopChanged:
            false
        }
    }

    /// Has the notices let through that are to be heard. Where the kernel has no room for their filter (`ENOMEM`), more
    /// than those: the filter before it may not let through what is new.
    private func listen() throws(SystemError) {
        let recovering = Set(awaited.union(silent).map(\.address))
        let isFiltered =
            attach(NeighbourFilter(for: Set(watched.map(\.address)), awaited: recovering))
            || attach(NeighbourFilter(for: nil, awaited: recovering))
        if !isFiltered {
            var unused: CInt = 0
            let size = socklen_t(MemoryLayout.size(ofValue: unused))
            setsockopt(notices.descriptor, SOL_SOCKET, SO_DETACH_FILTER, &unused, size)
        }
        // Joined only behind a filter, so that the flood never starts.
        if !isJoined {
            try notices.join(RTNLGRP_NEIGH)
            isJoined = true
        }
    }

    /// Returns whether the kernel takes `filter`.
    private func attach(_ filter: NeighbourFilter) -> Bool {
        var instructions = filter.program
        return instructions.withUnsafeMutableBufferPointer { instructions in
            var program = sock_fprog(len: UInt16(instructions.count), filter: instructions.baseAddress)
            let size = socklen_t(MemoryLayout<sock_fprog>.size)
            return setsockopt(notices.descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, size) == 0
        }
    }

    // MARK: Routers that the kernel goes round

    /// Looks which IPv6 routers do not answer, and listens for their recovery, beside the watched gateways. To be done
    /// before the kernel is asked for a route.
    ///
    /// The kernel goes by another route as long as a router does not answer and names it in none of its answers, and
    /// comes back to it when it does, or when it has forgotten the entry (`rt6_score_route` in net/ipv6/route.c). A
    /// machine that forwards does not look at its neighbours (`ip6_pol_route` there), and there may be thousands.
    ///
    /// What the kernel refuses to tell is left as it is: this is about routers that nobody uses at the moment.
    ///
    /// - Returns: those that were silent and are not any more. Their notice may be on its way still, or lost.
    func watchSilentRouters() -> Set<NetworkSnapshot.Neighbour> {
        guard let failed = try? failedNeighbours() else { return [] }
        let before = silent
        var returned = before.subtracting(failed.keys)
        let byRank = Dictionary(grouping: failed.keys) { rank($0, isRouter: failed[$0] == true) }
        let chosen = Set(byRank.keys.sorted().flatMap { byRank[$0] ?? [] }.prefix(Self.mostSilent))
        guard chosen != silent else { return [] }
        let hasNews = !chosen.isSubset(of: silent)
        silent = chosen
        try? listen()
        // One that has come back before the filter stood is seen by the lookups to come.
        if hasNews, let failed = try? failedNeighbours() {
            returned.formUnion(before.intersection(silent).subtracting(failed.keys))
            silent.formIntersection(failed.keys)
        }
        return returned
    }

    /// The silent router that is used again by what `event` says; it is none from then on.
    func returnedRouter(by event: KernelEvent) -> NetworkSnapshot.Neighbour? {
        switch event {
        case .neighbourChanged(let neighbour, isFailed: false), .neighbourForgotten(let neighbour):
            guard silent.remove(neighbour) != nil else { return nil }
            try? listen()
            return neighbour
        default:
            return nil
        }
    }

    /// Which of the silent are listened to first: those that said that they are routers. A gateway that was dead from
    /// the start has said nothing; by far most have a link-local address, and most hosts are asked for at another.
    private func rank(_ neighbour: NetworkSnapshot.Neighbour, isRouter: Bool) -> Int {
        let kind = isRouter ? 0 : neighbour.address.isLinkLocal ? 1 : 2
        return 2 * kind + (silent.contains(neighbour) ? 0 : 1)
    }

    /// A network has one or two routers, and rarely more that are dead. What their number is beyond this is up to the
    /// neighbours on the link, who can claim to be one.
    private static let mostSilent = 4

    /// The neighbours that do not answer, besides the gateways that are watched, and whether each said that it is a
    /// router. The kernel keeps 1,024 neighbours, unless set otherwise (sysctl net.ipv6.neigh.default.gc_thresh3).
    private func failedNeighbours() throws(SystemError) -> [NetworkSnapshot.Neighbour: Bool] {
        guard try !requests.forwards(.v6) else { return [:] }
        var header = ndmsg()
        header.ndm_family = UInt8(AF_INET6)
        let request = NetlinkRequest(type: RTM_GETNEIGH, flags: NLM_F_REQUEST | NLM_F_DUMP, header: header)
        var failed: [NetworkSnapshot.Neighbour: Bool] = [:]
        var kinds = InterfaceKinds()
        _ = try requests.dump(request, "reading the kernel's neighbours") { message in
            if let entry = message.payload(ndmsg.self), CInt(entry.ndm_state) & NUD_FAILED != 0,
                case .neighbourChanged(let neighbour, isFailed: true)? = KernelEvent(message, kinds: &kinds),
                !watched.contains(neighbour)
            {
                failed[neighbour] = CInt(entry.ndm_flags) & NTF_ROUTER != 0
            }
            return true
        }
        return failed
    }

    private func states(of neighbours: Set<NetworkSnapshot.Neighbour>) throws(SystemError) -> [KernelEvent] {
        var events: [KernelEvent] = []
        for neighbour in neighbours { events.append(try state(of: neighbour)) }
        return events
    }

    /// What the kernel holds of `neighbour`. Of one that it does not have it has forgotten all.
    func state(of neighbour: NetworkSnapshot.Neighbour) throws(SystemError) -> KernelEvent {
        var kinds = InterfaceKinds()
        // Anything but an entry is the kernel's word that it has none.
        return try requests.ask(NetlinkRequest(neighbour)) { KernelEvent($0, kinds: &kinds) }
            ?? .neighbourForgotten(neighbour)
    }

    /// The link-layer address of `neighbour` (`NDA_LLADDR`); `nil` for one that the kernel has none of.
    func linkAddress(of neighbour: NetworkSnapshot.Neighbour) -> [UInt8]? {
        let address = try? requests.ask(NetlinkRequest(neighbour)) { message -> [UInt8]? in
            guard message.type == RTM_NEWNEIGH else { return nil }
            let attribute = message.attributes(after: ndmsg.self).first { $0.type == Int(NDA_LLADDR) }
            return attribute.map { Array($0.bytes) }
        }
        // A link without such addresses has one of zeros.
        return address.flatMap { $0 }.flatMap { $0.allSatisfy { $0 == 0 } ? nil : $0 }
    }

    /// Has the kernel ask for `neighbour` now, as if a packet were to be sent to it (`ip neighbour add … use`).
    ///
    /// - Returns: whether it does; without `CAP_NET_ADMIN` it refuses.
    func solicit(_ neighbour: NetworkSnapshot.Neighbour) -> Bool {
        let flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK
        let request = NetlinkRequest(neighbour, type: RTM_NEWNEIGH, flags: flags, entryFlags: NTF_USE)
        let code = try? requests.ask(request) { $0.errorCode }
        return code == 0
    }
}

extension NetlinkRequest {
    /// A request about one entry of the neighbour table; by default for it.
    init(
        _ neighbour: NetworkSnapshot.Neighbour, type: Int = RTM_GETNEIGH, flags: CInt = NLM_F_REQUEST,
        entryFlags: CInt = 0
    ) {
        var header = ndmsg()
        header.ndm_family = UInt8(neighbour.address.family == .v4 ? AF_INET : AF_INET6)
        header.ndm_ifindex = CInt(truncatingIfNeeded: neighbour.interfaceIndex)
        header.ndm_flags = UInt8(entryFlags)
        self.init(type: type, flags: flags, header: header) { message in
            let bytes = neighbour.address.bytes
            nla_put(message, CInt(NDA_DST), CInt(bytes.count), bytes)
        }
    }
}
