// SPDX-License-Identifier: Apache-2.0

/// What holds of the network as a whole, whatever the target.
package struct NetworkFacts: Hashable, Sendable {
    /// Whether IPv4 packets can leave for the Internet.
    package var supportsIPv4: Bool
    /// Whether IPv6 packets can leave for the Internet.
    package var supportsIPv6: Bool
    /// Whether a configured name server can be reached, and answers as far as is known.
    package var supportsDNS: Bool
    /// The configured name servers, in their order.
    package var nameServers: [IPAddress]

    /// Facts; by default nothing works.
    package init(
        supportsIPv4: Bool = false, supportsIPv6: Bool = false, supportsDNS: Bool = false,
        nameServers: [IPAddress] = []
    ) {
        self.supportsIPv4 = supportsIPv4
        self.supportsIPv6 = supportsIPv6
        self.supportsDNS = supportsDNS
        self.nameServers = nameServers
    }

    /// Facts from what can be reached: an address that every working network of a family routes, and each of the name
    /// servers.
    package init(reachesV4: Bool, reachesV6: Bool, servers: some Sequence<(address: IPAddress, isReachable: Bool)>) {
        supportsIPv4 = reachesV4
        supportsIPv6 = reachesV6
        // A stub on this machine (systemd-resolved, dnsmasq) is as good as what lies behind it.
        supportsDNS = servers.contains { server in
            server.isReachable && (!server.address.isLoopback || reachesV4 || reachesV6)
        }
        nameServers = servers.map(\.address)
    }
}

extension Path {
    /// The verdict on one destination: what the kernel answered, held against what is known of the interface, the
    /// source address and the gateway that the answer names. The kernel's lookup succeeds without a carrier, with an
    /// address that is still tentative, and through a gateway that is dead; this is where those are caught.
    ///
    /// - Parameter needsRoute: whether a route in some table is required, and a guess no way (``Route/isGuess``).
    package init(
        to destination: IPAddress, by answer: RouteAnswer, needsRoute: Bool = false, in snapshot: NetworkSnapshot
    ) {
        self.init(
            generation: snapshot.generation, status: .satisfied, isCoherent: snapshot.isCoherent,
            destination: destination)
        switch answer {
        case .refused(let refusal):
            fail(snapshot.reason(for: refusal, to: destination))
        case .route(let route):
            take(route, in: snapshot)
            if let obstacle = snapshot.obstacle(on: route, to: destination) {
                fail(obstacle)
            } else if needsRoute, route.isGuess {
                fail(.noRoute)
            }
        }
    }

    /// The path when the kernel cannot be asked at all.
    package static func unknown(generation: UInt64, destination: IPAddress?) -> Path {
        Path(generation: generation, status: .unknown, isCoherent: false, destination: destination)
    }

    /// The path to a name that has no address to judge. Where the network itself is down, that is the reason to give:
    /// the name is unresolved only because of it; unless somebody was asked all the same.
    ///
    /// - Parameter isFinal: whether it is known to have no address.
    package static func unresolved(network: Path, isFinal: Bool = false) -> Path {
        var path = network
        path.destination = nil
        if network.status == .satisfied || (isFinal && network.status == .unsatisfied) { path.fail(.nameUnresolved) }
        return path
    }

    /// This path with the facts of the network filled in, in the place of any that were filled in before. A path that
    /// is satisfied is itself a proof for its family; that of the network has no destination to tell it by, but its
    /// source is of the same.
    package func with(_ facts: NetworkFacts) -> Path {
        var path = self
        let reachable = status == .satisfied ? (destination ?? source)?.family : nil
        path.supportsIPv4 = facts.supportsIPv4 || reachable == .v4
        path.supportsIPv6 = facts.supportsIPv6 || reachable == .v6
        path.supportsDNS = facts.supportsDNS
        path.nameServers = facts.nameServers
        return path
    }

    /// Of several candidate paths to one target the one to use: the first satisfied, else the one that came furthest.
    /// `nil` for no candidates.
    package static func best(of candidates: [Path]) -> Path? {
        candidates.first { $0.status == .satisfied }
            ?? candidates.max { $0.distance < $1.distance }
    }

    private mutating func take(_ route: Route, in snapshot: NetworkSnapshot) {
        interface = snapshot.interfaces[route.interfaceIndex]
        gateway = route.gateway
        source = route.source
        isLocalAddress = route.scope == .local
        isDirect = route.scope == .local || route.gateway == nil
        isExpensive = interface?.isExpensive ?? false
        isConstrained = interface?.isConstrained ?? false
    }

    private mutating func fail(_ reason: Reason) {
        status = .unsatisfied
        self.reason = reason
    }
}

extension Path {
    /// How far a packet would have come. Of several failures the furthest says most: "your gateway is dead" helps more
    /// than "and there is no IPv6 either".
    fileprivate var distance: Int {
        // With a route at all, it came as far as an interface.
        let leg = interface == nil ? 0 : 10
        return switch reason {
        case nil, .nameUnresolved: leg
        case .noCarrier: leg + 1
        case .noAddress: leg + 2
        case .noRoute: leg + 3
        case .unreachable, .prohibited, .blackhole: leg + 4
        case .gatewayUnreachable: leg + 5
        }
    }
}

extension NetworkSnapshot {
    /// What a refused lookup means to a person. "No route" is where the kernel stops; the cause lies lower when no link
    /// has a carrier or no address of the family is there to send from.
    fileprivate func reason(for refusal: RouteRefusal, to destination: IPAddress) -> Path.Reason {
        switch refusal {
        case .unreachable: return .unreachable
        case .prohibited: return .prohibited
        case .blackhole: return .blackhole
        case .familyUnsupported: return .noAddress
        case .noRoute, .other:
            let linkSummary = linkSummary
            guard linkSummary.contains(.link) else { return .noCarrier }
            return linkSummary.contains(.address(destination.family)) ? .noRoute : .noAddress
        }
    }

    /// Whether something stands in the way that the kernel's answer names.
    package func hasObstacle(on answer: RouteAnswer, to destination: IPAddress) -> Bool {
        guard case .route(let route) = answer else { return false }
        return obstacle(on: route, to: destination) != nil
    }

    /// What stands in the way of a packet that the kernel would send by `route`; `nil` when nothing is known to.
    fileprivate func obstacle(on route: Route, to destination: IPAddress) -> Path.Reason? {
        if route.scope == .local {
            // What the machine sends to itself goes by the loopback, and is lost while that is down.
            return interfaces[route.interfaceIndex]?.isUp == false ? .noRoute : nil
        }
        // A route through a link that was just removed: its own removal is a message not read yet.
        guard let interface = interfaces[route.interfaceIndex], interface.isUp else { return .noRoute }
        guard interface.hasCarrier else { return .noCarrier }
        guard let source = route.source, !source.isUnspecified else { return .noAddress }
        // While every address is tentative an IPv6 lookup answers with `::1`, which no remote host can reply to.
        if source.isLoopback, !destination.isLoopback { return .noAddress }
        // The default route that a router's advertisement brings is usable before the address that comes with it has
        // passed duplicate detection; the kernel takes the link-local one until then. No router forwards that (RFC
        // 4291, section 2.5.6). Of IPv4 Linux routers do, and some networks of containers live by it.
        if source.family == .v6, source.isLinkLocal, route.gateway != nil, !destination.isLinkLocal {
            return .noAddress
        }
        if let own = interface.addresses.first(where: { $0.address == source }), !own.isUsable { return .noAddress }
        if let gateway = route.gateway,
            failedNeighbours.contains(Neighbour(interfaceIndex: route.interfaceIndex, address: gateway))
        {
            return .gatewayUnreachable
        }
        return nil
    }
}
