// SPDX-License-Identifier: Apache-2.0

extension NetworkSnapshot {
    /// Takes in what the kernel said and returns what it changed: nothing, for the many messages that repeat what is
    /// known (lifetime refreshes re-send an address, wireless drivers re-send a link).
    package mutating func apply(_ event: KernelEvent) -> KernelChange {
        let change = effect(of: event)
        if !change.subjects.isEmpty { generation += 1 }
        return change
    }

    private mutating func effect(of event: KernelEvent) -> KernelChange {
        switch event {
        case .interfacePresent(let interface, let isRunning, let group):
            update(interface, isRunning: isRunning, group: group)
        case .interfaceRemoved(let index): removeInterface(index)
        case .addressPresent(let address, let index): update(address, on: index)
        case .addressRemoved(let address, let index): remove(address, from: index)
        case .routeChanged(let prefix, let links, let isRemoval): updateRoute(to: prefix, links, isRemoval: isRemoval)
        case .ruleChanged: KernelChange(.rules)
        case .nextHopChanged: updateNextHops()
        case .routeSelectionChanged: KernelChange(.routes, routes: .all)
        case .neighbourChanged(let neighbour, let isFailed): update(neighbour, isFailed: isFailed)
        case .neighbourAwaited(let neighbour): noteAwaited(neighbour)
        case .neighbourForgotten(let neighbour): forget(neighbour)
        }
    }

    private mutating func update(_ interface: Interface, isRunning: Bool?, group: UInt32?) -> KernelChange {
        var interface = costs.applied(to: interface)
        let index = interface.index
        let known = interfaces[index]
        interface.addresses = known?.addresses ?? []
        if known?.isUp == true, !interface.isUp { interface.startDetectionAnew() }
        // One of which an address was told before has a past that was missed.
        let reach = known == nil ? LinkReach.none : .unknown
        var record = records[index] ?? LinkRecord(reach: reach)
        let isSettled = isRunning == nil || record.isRunning == nil || isRunning == record.isRunning
        let isRegrouped = group != nil && record.group != nil && group != record.group
        record.isRunning = isRunning ?? record.isRunning
        record.group = group ?? record.group
        // No record says as much as one of a link of which nothing is known.
        if known == nil || isRunning != nil || group != nil { records[index] = record }
        guard interface != known || !isSettled || isRegrouped else { return KernelChange() }
        interfaces[index] = interface
        var change = KernelChange(.interfaces, lostAddresses: lost(from: known))
        // A rule may pass over the routes by links of a group (`suppress_ifgroup`): it is another rule now.
        if isRegrouped { change.subjects.insert(.rules) }
        change.links = [index]
        guard let known else { return change }
        if interface.isUp != known.isUp || interface.hasCarrier != known.hasCarrier || !isSettled {
            change.rerouted = [index: record.reach]
            change.addresses = Set(interface.addresses.map(\.address))
        }
        // The kernel says so before it takes the routes down or up (__dev_notify_flags in net/core/dev.c); of a carrier
        // it says so afterwards.
        change.isForetold = interface.isUp != known.isUp
        // With its link the kernel's memory of a neighbour goes.
        if known.isOperational, !interface.isOperational { forgetNeighbours(on: index) }
        return change
    }

    private mutating func removeInterface(_ index: Int) -> KernelChange {
        let record = records.removeValue(forKey: index)
        guard let removed = interfaces.removeValue(forKey: index) else { return KernelChange() }
        forgetNeighbours(on: index)
        var change = KernelChange([.interfaces, .addresses], lostAddresses: lost(from: removed))
        change.links = [index]
        change.rerouted = [index: record?.reach ?? .unknown]
        change.addresses = Set(removed.addresses.map(\.address))
        return change
    }

    private mutating func update(_ address: InterfaceAddress, on index: Int) -> KernelChange {
        // An address before its link: the link's own message is on its way, or was lost and a re-read follows. What is
        // known is kept under a nameless interface, which no path uses because it is neither up nor has carrier.
        let unknown = Interface(index: index, name: "", kind: .other, isUp: false, hasCarrier: false)
        // Changed in place, and only this address is looked into: some interfaces have thousands of them.
        let former = interfaces[index, default: unknown].replaceOrInsert(address)
        guard former != address else { return KernelChange() }
        // An address that fails duplicate detection is present and useless: flows cannot be bound to it any more.
        var change = KernelChange(.addresses, lostAddresses: lost(former, from: interfaces[index]))
        change.links = [index]
        change.addresses = [address.address]
        if address.address.family == .v4 {
            // The kernel announces the address and its routes first. Only then do other routes choose their source
            // again (`dev_addr_genid`), and multipath routes choose again among the next hops that are there
            // (`fib_sync_up`; both in fib_inetaddr_event, net/ipv4/fib_frontend.c).
            change.isForetold = true
            change.rerouted = [index: records[index]?.reach ?? .unknown]
        }
        return change
    }

    private mutating func remove(_ address: InterfaceAddress, from index: Int) -> KernelChange {
        guard let known = interfaces[index] else { return KernelChange() }
        var removed = address
        if let position = known.addresses.firstIndex(where: { $0.isSameEntry(as: address) }) {
            removed = known.addresses[position]
            interfaces[index]?.addresses.remove(at: position)
        } else if address.address.family == .v4 {
            return KernelChange()
        }
        // IPv6 sends from an address before it tells of it, which a worker does later (`addrconf_dad_work` in
        // net/ipv6/addrconf.c). Of one that is removed before that, the removal is all that is told.
        var change = KernelChange(.addresses, lostAddresses: lost(removed, from: interfaces[index]))
        change.links = [index]
        change.rerouted = [index: records[index]?.reach ?? .unknown]
        change.addresses = [address.address]
        // "Send message first, then call notifier": the routes go after the word (__inet_del_ifa in
        // net/ipv4/devinet.c).
        change.isForetold = true
        return change
    }

    private mutating func updateRoute(
        to prefix: IPPrefix, _ links: KernelEvent.RouteLinks, isRemoval: Bool
    ) -> KernelChange {
        noteRoute(to: prefix, through: links)
        var change = KernelChange(.routes, routes: .inside([prefix]))
        // IPv4 tells of a removal before it removes (fib_table_delete in net/ipv4/fib_trie.c).
        change.isForetold = isRemoval
        return change
    }

    /// Keeps through which links a route led that changed, and no more of it: also for one that concerns nobody, and
    /// need not be applied.
    package mutating func noteRoute(to prefix: IPPrefix, through links: KernelEvent.RouteLinks) {
        switch links {
        case .these(let indices):
            for index in indices { records[index]?.reach.add(prefix) }
        case .unnamed:
            for index in records.keys { records[index]?.reach.add(prefix) }
        }
    }

    private mutating func updateNextHops() -> KernelChange {
        // The routes through the object now lead through other links, or will; which, is not said.
        loseTrackOfRoutes()
        var change = KernelChange(.nextHops)
        // A removal is told before the routes go (remove_nexthop in net/ipv4/nexthop.c).
        change.isForetold = true
        return change
    }

    /// Of one that has failed it is known what becomes of the question: it is asked for again because it failed.
    private mutating func noteAwaited(_ neighbour: Neighbour) -> KernelChange {
        if !failedNeighbours.contains(neighbour) { awaitedNeighbours.insert(neighbour) }
        return KernelChange()
    }

    private mutating func update(_ neighbour: Neighbour, isFailed: Bool) -> KernelChange {
        let wasAwaited = awaitedNeighbours.remove(neighbour) != nil
        if isFailed {
            // One that fails again was asked for in between, and the kernel may have gone by another meanwhile.
            failedNeighbours.insert(neighbour)
        } else {
            let hadFailed = failedNeighbours.remove(neighbour) != nil
            guard hadFailed || wasAwaited else { return KernelChange() }
        }
        return rerouting(by: neighbour)
    }

    /// A router answers that the kernel went round, and that nothing was known of here: routes through its link may
    /// lead over it again.
    package mutating func noteReturn(of router: Neighbour) -> KernelChange {
        generation += 1
        return rerouting(by: router)
    }

    /// What follows from a neighbour's death or return.
    private func rerouting(by neighbour: Neighbour) -> KernelChange {
        var change = KernelChange(.neighbours)
        change.neighbours = [neighbour]
        change.rerouted = [neighbour.interfaceIndex: records[neighbour.interfaceIndex]?.reach ?? .unknown]
        return change
    }

    /// A table that has grown is swept, and failures go first (`neigh_forced_gc` in net/core/neighbour.c): that one is
    /// forgotten is no sign of life.
    private mutating func forget(_ neighbour: Neighbour) -> KernelChange {
        var change = KernelChange()
        if failedNeighbours.contains(neighbour) {
            change.forgotten = [neighbour]
        } else if awaitedNeighbours.contains(neighbour) {
            change = update(neighbour, isFailed: false)
        }
        return change
    }

    private mutating func forgetNeighbours(on index: Int) {
        failedNeighbours = failedNeighbours.filter { $0.interfaceIndex != index }
        awaitedNeighbours = awaitedNeighbours.filter { $0.interfaceIndex != index }
    }

    /// Has it open again whether a failed neighbour answers: what is known of it is old, and it is asked for now. Its
    /// failure stands until something else is known.
    package mutating func doubt(_ neighbour: Neighbour) { awaitedNeighbours.insert(neighbour) }

    /// Ends the wait for a neighbour without an outcome: what is known of it holds.
    package mutating func stopAwaiting(_ neighbour: Neighbour) -> KernelChange {
        guard awaitedNeighbours.contains(neighbour) else { return KernelChange() }
        let change = update(neighbour, isFailed: failedNeighbours.contains(neighbour))
        generation += 1
        return change
    }

    /// Of the addresses of an interface as it was, those that packets could carry then and cannot now, from any
    /// interface. A flow was never bound to the others: bind(2) refuses a tentative address.
    private func lost(from former: Interface?) -> Set<IPAddress> {
        guard let former, former.isOperational else { return [] }
        return Set(former.addresses.filter(\.isUsable).map(\.address).filter { !hasUsable($0) })
    }

    /// The same of one address as it was, of an interface that is as it is.
    private func lost(_ former: InterfaceAddress?, from interface: Interface?) -> Set<IPAddress> {
        guard let former, former.isUsable, interface?.isOperational == true, !hasUsable(former.address) else {
            return []
        }
        return [former.address]
    }

    /// Puts the result of a re-read in the place of this snapshot and returns what differs.
    ///
    /// Routes and rules are not in a snapshot, so after a re-read they count as changed: what was lost with the overrun
    /// may have been one of theirs.
    package mutating func replace(with reread: NetworkSnapshot) -> KernelChange {
        let before = addresses
        let (costs, generation) = (costs, generation + 1)
        self = reread
        self.costs = costs
        self.generation = generation
        // The message of a route through any of them may be among the lost.
        loseTrackOfRoutes()
        var change = KernelChange.everything
        change.lostAddresses = before.subtracting(addresses)
        return change
    }

    /// From now on any link may lead anywhere: at the start, and after messages were lost.
    package mutating func loseTrackOfRoutes() {
        records = interfaces.mapValues { (records[$0.index] ?? LinkRecord(reach: .unknown)).with(.unknown) }
    }

    /// Every address that packets may carry as their source.
    private var addresses: Set<IPAddress> {
        Set(interfaces.values.filter(\.isOperational).flatMap { $0.addresses.filter(\.isUsable).map(\.address) })
    }
}

extension Interface {
    /// The link went down. Where the kernel keeps its IPv6 addresses (`keep_addr_on_down`), they go through duplicate
    /// address detection again once it is up; it says so only when they have passed (addrconf_ifdown in
    /// net/ipv6/addrconf.c). Where it does not keep them, it takes each back in words.
    fileprivate mutating func startDetectionAnew() {
        for index in addresses.indices where addresses[index].address.family == .v6 && !addresses[index].skipsDetection
        {
            addresses[index].isTentative = true
        }
    }
}
