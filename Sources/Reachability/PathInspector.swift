// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

/// Finds out why a path is as it is, or what it would be without an interface, for a question that a person asks.
///
/// Everything is read anew from the kernel, at one time and over one socket, so that the steps and the verdict rest on
/// the same state. It is made for one question and belongs to the thread that makes it, in whose network namespace it
/// looks.
package final class PathInspector {
    /// Why there is nothing to find out.
    package enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The interface to ignore does not exist; `known` are those that do.
        case noSuchInterface(String, known: [String])
        /// The kernel cannot be asked.
        case kernel(SystemError)

        /// What was wanted, and what came back.
        package var description: String {
            switch self {
            case .noSuchInterface(let name, let known):
                "there is no interface \"\(name)\" here; there are \(known.joined(separator: ", "))"
            case .kernel(let error): error.description
            }
        }
    }

    /// The names of what was ignored: the interface that was named first, then those that go with it.
    package let without: [String]
    /// How long gateways are known to be silent.
    package var silence: (NetworkSnapshot.Neighbour) -> Duration? = { _ in nil }
    /// Whether a gateway that the kernel asks for again is known to have failed before.
    package var isDead: (NetworkSnapshot.Neighbour) -> Bool = { _ in false }
    /// The gateways found that the kernel asks for, and of which nothing else is known.
    package private(set) var awaited: Set<NetworkSnapshot.Neighbour> = []
    /// The number of routes of a table beyond which it is not read to its end; tests make it small.
    package var mostRoutes = KernelInspector.mostRoutes

    private let kernel: KernelInspector
    private let loss: InterfaceLoss?
    private var stack: LinkStack
    private var rules: [IPAddress.Family: [PolicyRule]] = [:]
    private let servers: [IPAddress]
    /// What is asked about: a table is read once for all of them.
    private var destinations: Set<IPAddress>
    private var readings: [ReadingKey: TableReading] = [:]

    private struct ReadingKey: Hashable {
        let table: UInt32
        let family: IPAddress.Family
    }

    /// Reads the links.
    ///
    /// - Parameters:
    ///   - interface: the name of an interface to ignore; `nil` for the machine as it is.
    ///   - costs: the user's word on what interfaces cost.
    ///   - servers: the configured name servers.
    package init(
        without interface: String? = nil, costs: CostPolicy = CostPolicy(), servers: [IPAddress] = []
    ) throws(Failure) {
        self.servers = servers
        destinations = Set([Internet.v4, Internet.v6] + servers)
        do throws(SystemError) {
            kernel = try KernelInspector()
            stack = try kernel.links()
        } catch {
            throw .kernel(error)
        }
        stack.snapshot.costs = costs
        guard let interface else {
            (loss, without) = (nil, [])
            return
        }
        guard let index = stack.index(of: interface) else {
            throw .noSuchInterface(interface, known: stack.snapshot.interfaces.values.map(\.name).sorted())
        }
        let loss = InterfaceLoss(of: index, from: stack)
        without = [interface] + loss.gone.subtracting([index]).sorted().map(stack.name)
        stack = loss.rest
        self.loss = loss
    }

    // MARK: Verdicts

    /// The verdict on `target` at `addresses` with its reasons.
    ///
    /// - Parameter name: what was found out about the target's name, if it has one.
    package func explanation(
        of target: Target, at addresses: [IPAddress], name: NameFinding? = nil
    ) throws(SystemError) -> Explanation {
        if !destinations.isSuperset(of: addresses) {
            destinations.formUnion(addresses)
            readings = [:]
        }
        let inquiry = Inquiry(target, at: addresses, in: stack.snapshot)
        var explanation = try explanation(of: inquiry) ?? Explanation(target, foregone: inquiry, on: stack)
        explanation.without = without
        if let name { explanation.steps.insert(.init(name), at: 0) }
        return explanation
    }

    /// The verdict on the network as such, for packets of `user`; `nil` for the process's own.
    package func explanationOfNetwork(for user: UInt32? = nil) throws(SystemError) -> Explanation {
        let inquiry = Inquiry(network: .any, user: user, in: stack.snapshot)
        var explanation = try explanation(of: inquiry) ?? Explanation(path: Path(status: .unknown))
        explanation.path.destination = nil
        return explanation
    }

    /// The verdict on a name without addresses: on the way to whoever should have known it, where that is closed.
    package func explanation(unresolved name: NameFinding) throws(SystemError) -> Explanation {
        let network = try explanationOfNetwork()
        let isSilence = if case .silence = name.answer { true } else { false }
        var explanation = Explanation(
            path: .unresolved(network: network.path, isFinal: !isSilence), without: without)
        var way: [Explanation.Step] = []
        if isSilence, let server = name.servers.first {
            let target = Target(.address(server), port: 53, transport: .udp)
            // A stub on this machine is always reached; what it lacks is the network.
            let closed = server.isLoopback ? network : try self.explanation(of: target, at: [server])
            if closed.path.status == .unsatisfied { way = closed.steps }
        }
        explanation.steps = [.init(name, isDecisive: way.isEmpty)] + way
        return explanation
    }

    /// What holds of the network as a whole.
    package func facts() throws(SystemError) -> NetworkFacts {
        var reachable: [IPAddress: Bool] = [:]
        for target in [Internet.v4, Internet.v6].map({ Target(.address($0)) })
            + servers.map({ Target(.address($0), port: 53, transport: .udp) })
        {
            guard case .address(let address) = target.host else { continue }
            let finding = try find(RouteQuery(address, for: target, interfaceIndex: nil), isExplained: false)
            reachable[address] = Path(to: address, by: finding.answer, in: stack.snapshot).status == .satisfied
        }
        return NetworkFacts(
            reachesV4: reachable[Internet.v4] ?? false, reachesV6: reachable[Internet.v6] ?? false,
            servers: servers.map { ($0, reachable[$0] ?? false) })
    }

    /// `nil` where the inquiry has nothing to ask.
    private func explanation(of inquiry: Inquiry) throws(SystemError) -> Explanation? {
        var findings: [RouteFinding] = []
        for query in inquiry.queries { findings.append(try find(query.query)) }
        let candidates = inquiry.candidates(by: findings.map(\.answer)[...], in: stack.snapshot)
        guard let best = inquiry.best(of: candidates), let chosen = candidates.firstIndex(of: best) else { return nil }
        return Explanation(
            path: best, steps: Explanation.steps(for: findings[chosen], path: best, on: stack),
            others: candidates.enumerated().filter { $0.offset != chosen }.map(\.element), without: without)
    }

    // MARK: Findings

    /// - Parameter isExplained: whether the way is of interest, besides the answer.
    private func find(_ query: RouteQuery, isExplained: Bool = true) throws(SystemError) -> RouteFinding {
        let index = query.interfaceIndex
        let packet = RulePacket(
            query, user: getuid(), outbound: index.map(stack.name), tableOfVRF: index.flatMap(stack.tableOfVRF))
        let (answer, walk) =
            if let loss { try predict(packet, without: loss) } else { try observe(packet, isExplained) }
        var finding = RouteFinding(packet: packet, answer: answer, walk: walk)
        if loss != nil, case .entries(let entries) = walk.end {
            finding.isChoiceOpen = try choices(of: entries).count > 1
        }
        guard case .route(let route) = answer else { return finding }
        let family = query.destination.family
        finding.ignoresLinkDown = try kernel.ignoresLinkDown(route.interfaceIndex, family)
        let neighbour = NetworkSnapshot.Neighbour(
            interfaceIndex: route.interfaceIndex, address: route.gateway ?? query.destination)
        finding.neighbour = try entry(of: neighbour)
        guard route.gateway != nil else { return finding }
        if finding.neighbour?.state == .incomplete {
            if isDead(neighbour) { finding.neighbour?.state = .failed } else { awaited.insert(neighbour) }
        }
        if finding.neighbour?.state == .failed {
            stack.snapshot.failedNeighbours.insert(neighbour)
            finding.silence = silence(neighbour)
        }
        return finding
    }

    /// What the kernel answers, and the way it took.
    private func observe(
        _ packet: RulePacket, _ isExplained: Bool
    ) throws(SystemError) -> (RouteAnswer, RuleWalk) {
        let answer = try kernel.answers(to: [packet.query])[0]
        guard isExplained else { return (answer, RuleWalk(end: .nothing)) }
        let rules = try rules(packet.query.destination.family)
        switch answer {
        case .route:
            guard var entry = try kernel.entry(matching: packet.query) else { return (answer, RuleWalk(end: .nothing)) }
            // Without rules of somebody's own, IPv4 keeps the local table's routes with the main one's, and calls them
            // so (`fib_trie_unmerge` in net/ipv4/fib_trie.c).
            if entry.prefix.address.family == .v4, entry.table == RouteEntry.main,
                [.local, .group].contains(entry.kind)
            {
                entry.table = RouteEntry.local
            }
            return (answer, try walk(packet, to: entry, through: rules))
        case .refused(let refusal):
            let walk = try RuleWalk(packet, through: rules, choosing: selection(packet.query.destination.family)) {
                table throws(SystemError) in try reading(of: table, for: packet.query)
            }
            if walk.refusal == refusal { return (answer, walk) }
            // Not all was seen, or something changed in between: no more is known than which rules there were.
            return (answer, RuleWalk(end: .nothing, passed: walk.passed, isCertain: false))
        }
    }

    /// The way to an entry that the kernel named. Tables that had nothing are read only where somebody made them: to
    /// tell an empty one from one that leads elsewhere.
    private func walk(
        _ packet: RulePacket, to entry: RouteEntry, through rules: [PolicyRule]
    ) throws(SystemError) -> RuleWalk {
        func walk(trusting isTrusted: Bool) throws(SystemError) -> RuleWalk {
            try RuleWalk(packet, through: rules) { table throws(SystemError) in
                if table == entry.table { return TableReading(table: table, count: 1, entries: [entry]) }
                guard !RouteEntry.isOrdinary(table: table) else { return TableReading(table: table, count: 0) }
                var reading = try reading(of: table, for: packet.query)
                if !isTrusted { reading.entries = [] }
                return reading
            }
        }
        var result = try walk(trusting: true)
        if result.table != entry.table { result = try walk(trusting: false) }
        result.end = .entries([entry])
        return result
    }

    /// What the kernel would answer if an interface were gone.
    private func predict(
        _ packet: RulePacket, without loss: InterfaceLoss
    ) throws(SystemError) -> (RouteAnswer, RuleWalk) {
        let query = packet.query
        let family = query.destination.family
        let walk = try RuleWalk(packet, through: try rules(family), choosing: selection(family)) {
            table throws(SystemError) in
            var reading = try reading(of: table, for: query)
            if !reading.isComplete {
                reading.entries += try entriesByInterface(for: query).filter { $0.table == table }
                reading.isComplete = true
            }
            let survivors = reading.entries.compactMap(loss.survivor)
            reading.count -= reading.entries.count - survivors.count
            reading.entries = survivors
            return reading
        }
        if let refusal = walk.refusal {
            // Bound to an interface without a route, IPv4 takes any host for a neighbour on that link.
            guard family == .v4, let index = query.interfaceIndex, loss.rest.snapshot.interfaces[index]?.isUp == true
            else { return (.refused(refusal), walk) }
            let route = Route(interfaceIndex: index, source: try source(for: query, by: index, nil, without: loss))
            return (.route(route), RuleWalk(end: .nothing))
        }
        return (try answer(at: walk, query, without: loss), walk)
    }

    /// The answer that the end of a predicted way makes.
    private func answer(
        at walk: RuleWalk, _ query: RouteQuery, without loss: InterfaceLoss
    ) throws(SystemError) -> RouteAnswer {
        guard case .entries(let entries) = walk.end, let first = entries.first else { return .refused(.noRoute) }
        let present = try kernel.answers(to: [query])[0]
        // What is this machine's own now, and stays, is answered as it is.
        if first.kind == .local { return present }
        let hops = try choices(of: entries)
        guard var choice = hops.first else { return .refused(.noRoute) }
        // With several, the one that the packet takes now is as good a guess as any, and the truth where none is lost.
        if case .route(let route) = present {
            choice =
                hops.first { $0.hop.interfaceIndex == route.interfaceIndex && $0.hop.gateway == route.gateway }
                ?? choice
        }
        let (entry, hop) = choice
        return .route(
            Route(
                scope: entry.kind == .group ? .group : .remote, interfaceIndex: hop.interfaceIndex,
                gateway: hop.gateway,
                source: try source(for: query, by: hop.interfaceIndex, entry.preferredSource, without: loss),
                table: entry.table))
    }

    /// The next hops that the kernel would choose from. In a group of next-hop objects it passes over those that do not
    /// answer, as long as there is another (`nexthop_select_path` in net/ipv4/nexthop.c).
    private func choices(
        of entries: [RouteEntry]
    ) throws(SystemError) -> [(entry: RouteEntry, hop: RouteEntry.NextHop)] {
        var hops: [(RouteEntry, RouteEntry.NextHop)] = []
        for entry in entries {
            var good: [RouteEntry.NextHop] = []
            for hop in entry.nextHops {
                var isGood = true
                if entry.nextHopObject != nil, entry.nextHops.count > 1, let gateway = hop.gateway {
                    let state = try self.entry(
                        of: .init(interfaceIndex: hop.interfaceIndex, address: gateway))?.state
                    isGood = state != .failed && state != .incomplete
                }
                if isGood { good.append(hop) }
            }
            hops += (good.isEmpty ? Array(entry.nextHops.prefix(1)) : good).map { (entry, $0) }
        }
        return hops
    }

    /// What the kernel knows of a neighbour. With a carrier goes what it knew of those on the link.
    private func entry(of neighbour: NetworkSnapshot.Neighbour) throws(SystemError) -> NeighbourEntry? {
        if loss?.silenced.contains(neighbour.interfaceIndex) == true { return nil }
        return try kernel.neighbour(neighbour)
    }

    /// The source address that a packet would get on its way by the interface `index`.
    private func source(
        for query: RouteQuery, by index: Int, _ preferred: IPAddress?, without loss: InterfaceLoss
    ) throws(SystemError) -> IPAddress? {
        if let source = query.source ?? preferred { return source }
        // The choice of an address takes more than routes; the kernel makes it for the interface that is left.
        var bound = query
        bound.interfaceIndex = index
        if case .route(let route) = try kernel.answers(to: [bound])[0], let source = route.source,
            !loss.addresses.contains(source),
            // A rule may give what is bound to the interface a route of its own, with a source of that route's.
            try kernel.entry(matching: bound)?.preferredSource == nil
        {
            return source
        }
        return loss.source(to: query.destination, by: index)
    }

    /// The entry that a packet takes when it is bound to each interface that is left, one after the other: the way to
    /// find what a table has that is too large to read.
    private func entriesByInterface(for query: RouteQuery) throws(SystemError) -> [RouteEntry] {
        var entries: [RouteEntry] = []
        for interface in stack.snapshot.interfaces.values where interface.isUp {
            guard query.interfaceIndex == nil || query.interfaceIndex == interface.index else { continue }
            var bound = query
            bound.interfaceIndex = interface.index
            guard let entry = try kernel.entry(matching: bound), !entries.contains(entry) else { continue }
            entries.append(entry)
        }
        return entries
    }

    // MARK: What was read

    private func rules(_ family: IPAddress.Family) throws(SystemError) -> [PolicyRule] {
        if let known = rules[family] { return known }
        let read = try kernel.rules(family)
        rules[family] = read
        return read
    }

    private func reading(of table: UInt32, for query: RouteQuery) throws(SystemError) -> TableReading {
        let family = query.destination.family
        let key = ReadingKey(table: table, family: family)
        var reading: TableReading
        if let known = readings[key] {
            reading = known
        } else {
            let concerned = destinations.filter { $0.family == family }
            reading = try kernel.reading(of: table, covering: Array(concerned), limit: mostRoutes)
            readings[key] = reading
        }
        reading.entries.removeAll { !$0.covers(query) }
        return reading
    }

    /// How the kernel chooses among the entries of a table.
    private func selection(_ family: IPAddress.Family) -> RouteSelection {
        RouteSelection(
            isUsable: { [self] hop in
                // A setting that cannot be read is at its default.
                !hop.isDead && !(hop.isLinkDown && (try? kernel.ignoresLinkDown(hop.interfaceIndex, family)) == true)
            },
            isAvoided: { [self] hop in
                // A router that forwards for others does not look at its neighbours (ip6_pol_route in
                // net/ipv6/route.c).
                guard family == .v6, let gateway = hop.gateway, (try? kernel.forwards(family)) == false else {
                    return false
                }
                return (try? entry(of: .init(interfaceIndex: hop.interfaceIndex, address: gateway)))?.state == .failed
            },
            group: { [self] in stack.details[$0]?.group ?? 0 })
    }
}
