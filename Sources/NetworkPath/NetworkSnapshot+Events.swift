// SPDX-License-Identifier: Apache-2.0

extension NetworkSnapshot {
    /// Takes in what the kernel said and returns what it changed: nothing, for the many messages that repeat what is
    /// known (lifetime refreshes re-send an address, wireless drivers re-send a link).
    public mutating func apply(_ event: KernelEvent) -> KernelChange {
        let change = effect(of: event)
        if !change.isEmpty { generation += 1 }
        return change
    }

    private mutating func effect(of event: KernelEvent) -> KernelChange {
        switch event {
        case .interfacePresent(let interface): update(interface)
        case .interfaceRemoved(let index): removeInterface(index)
        case .addressPresent(let address, let index): update(address, on: index)
        case .addressRemoved(let address, let index): remove(address, from: index)
        case .routeChanged(let prefix): KernelChange(.routes, routes: .inside([prefix]))
        case .ruleChanged: KernelChange(.rules)
        case .nextHopChanged: KernelChange(.nextHops)
        case .routeSelectionChanged: KernelChange(.routes, routes: .all)
        case .neighbourChanged(let neighbour, let isFailed): update(neighbour, isFailed: isFailed)
        }
    }

    private mutating func update(_ interface: Interface) -> KernelChange {
        var interface = costs.applied(to: interface)
        let known = interfaces[interface.index]
        interface.addresses = known?.addresses ?? []
        guard interface != known else { return KernelChange() }
        interfaces[interface.index] = interface
        return KernelChange(.interfaces, lostAddresses: lost(from: known))
    }

    private mutating func removeInterface(_ index: Int) -> KernelChange {
        guard let removed = interfaces.removeValue(forKey: index) else { return KernelChange() }
        failedNeighbours = failedNeighbours.filter { $0.interfaceIndex != index }
        return KernelChange([.interfaces, .addresses], lostAddresses: lost(from: removed))
    }

    private mutating func update(_ address: InterfaceAddress, on index: Int) -> KernelChange {
        // An address before its link: the link's own message is on its way, or was lost and a re-read follows. What is
        // known is kept under a nameless interface, which no path uses because it is neither up nor has carrier.
        let unknown = Interface(index: index, name: "", kind: .other, isUp: false, hasCarrier: false)
        // Changed in place, and only this address is looked into: some interfaces have thousands of them.
        let former = interfaces[index, default: unknown].replaceOrAppend(address)
        guard former != address else { return KernelChange() }
        // An address that fails duplicate detection is present and useless: flows cannot be bound to it any more.
        return KernelChange(.addresses, lostAddresses: lost(former, from: interfaces[index]))
    }

    private mutating func remove(_ address: IPAddress, from index: Int) -> KernelChange {
        guard let position = interfaces[index]?.addresses.firstIndex(where: { $0.address == address }),
            let removed = interfaces[index]?.addresses.remove(at: position)
        else { return KernelChange() }
        return KernelChange(.addresses, lostAddresses: lost(removed, from: interfaces[index]))
    }

    private mutating func update(_ neighbour: Neighbour, isFailed: Bool) -> KernelChange {
        let changed =
            isFailed
            ? failedNeighbours.insert(neighbour).inserted
            : failedNeighbours.remove(neighbour) != nil
        return changed ? KernelChange(.neighbours) : KernelChange()
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
    public mutating func replace(with reread: NetworkSnapshot) -> KernelChange {
        let before = addresses
        let (costs, generation) = (costs, generation + 1)
        self = reread
        self.costs = costs
        self.generation = generation
        var change = KernelChange.everything
        change.lostAddresses = before.subtracting(addresses)
        return change
    }

    /// Every address that packets may carry as their source.
    private var addresses: Set<IPAddress> {
        Set(interfaces.values.filter(\.isOperational).flatMap { $0.addresses.filter(\.isUsable).map(\.address) })
    }
}

extension Interface {
    /// Puts `address` in the place of what was known of it, and returns that; at the end where nothing was.
    fileprivate mutating func replaceOrAppend(_ address: InterfaceAddress) -> InterfaceAddress? {
        guard let position = addresses.firstIndex(where: { $0.address == address.address }) else {
            addresses.append(address)
            return nil
        }
        defer { addresses[position] = address }
        return addresses[position]
    }
}
