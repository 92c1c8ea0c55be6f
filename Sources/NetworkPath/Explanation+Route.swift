// SPDX-License-Identifier: Apache-2.0

extension Explanation {
    /// The steps of the way to one address, from the rule to the source address.
    ///
    /// - Parameters:
    ///   - path: the verdict on it. The step that decided it is marked.
    ///   - stack: the links, as they are or would be.
    package static func steps(for finding: RouteFinding, path: Path, on stack: LinkStack) -> [Step] {
        var steps = RouteStory(finding: finding, path: path, stack: stack).steps
        guard path.status == .unsatisfied, let reason = path.reason else { return steps }
        // The first is where such a verdict is decided; the others, where it shows when that step has nothing to tell.
        let subjects = [subject(decidingOn: reason, finding)] + [.route, .table, .link, .source]
        let decisive = subjects.lazy.compactMap { subject in steps.firstIndex { $0.subject == subject } }.first
        if let decisive { steps[decisive].isDecisive = true }
        return steps
    }

    /// Which step a path fails at for `reason`.
    private static func subject(decidingOn reason: Path.Reason, _ finding: RouteFinding) -> Step.Subject {
        let isByRule = finding.walk.end == .refusedByRule
        let hasRoute = if case .route = finding.answer { true } else { false }
        return switch reason {
        case .prohibited, .blackhole, .unreachable: isByRule ? .rule : .route
        case .noRoute: hasRoute ? .link : isByRule ? .rule : .table
        case .noCarrier: .link
        case .noAddress: .source
        case .gatewayUnreachable: .neighbour
        case .nameUnresolved: .name
        }
    }
}

/// Tells what was found on the way to one address.
struct RouteStory {
    let finding: RouteFinding
    let path: Path
    let stack: LinkStack

    var steps: [Explanation.Step] {
        [rule, table, routeStep, nextHop, link, neighbour, source].compactMap { $0 }
    }

    private var destination: IPAddress { finding.packet.query.destination }
    private var family: IPAddress.Family { destination.family }

    private var route: Route? {
        guard case .route(let route) = finding.answer else { return nil }
        return route
    }

    // MARK: Rules and tables

    /// The rule that led to the end; without one, those that selected the packet in vain. Every machine's rule for the
    /// local table selects everything, and is not worth a word.
    private var rule: Explanation.Step? {
        if let rule = finding.walk.rule { return .init(.rule, rule.description) }
        let rules = finding.walk.passed.filter(\.isWorthAWord).map(\.rule.description)
        guard route == nil, !rules.isEmpty else { return nil }
        let isOneOf = !finding.walk.isCertain && rules.count > 1
        return .init(.rule, (isOneOf ? "one of " : "") + rules.joined(separator: "; "))
    }

    /// The tables that had nothing. With a route at hand, only what somebody's own rule led to in vain.
    private var table: Explanation.Step? {
        let passed = finding.walk.passed.filter(\.isWorthAWord)
        if finding.walk.rule != nil {
            let others = passed.filter { $0.reading.table != RouteEntry.main || $0.entry != nil }
            return others.isEmpty
                ? nil : .init(.table, others.map(says).joined(separator: "; ") + "; the search went on")
        }
        guard route == nil, refusal == .noRoute else { return nil }
        var texts = passed.map(says)
        if !passed.contains(where: { $0.reading.table == RouteEntry.main }) {
            texts.append("no rule leads the packet to main")
        }
        return .init(.table, texts.joined(separator: "; "))
    }

    private func says(_ passed: RuleWalk.Passed) -> String {
        let reading = passed.reading
        let name = RouteEntry.name(ofTable: reading.table)
        if let entry = passed.entry {
            let text = entry.text(stack.name)
            return entry.kind == .throw
                ? "\(name) ends the search: \(text)" : "\(name) has \(text), suppressed by the rule"
        }
        if let entry = reading.entries.first { return "\(name) has \(entry.text(stack.name)), which cannot be used" }
        if !reading.isComplete { return "\(name) has more routes than were looked at (\(reading.count))" }
        if reading.count == 0 { return "\(name) is empty" }
        return
            "\(name) has no route to \(destination): \(reading.count) route\(reading.count == 1 ? "" : "s"), no default"
    }

    private var refusal: RouteRefusal? {
        guard case .refused(let refusal) = finding.answer else { return nil }
        return refusal
    }

    // MARK: The route

    private var routeStep: Explanation.Step? {
        if let entry = finding.entry {
            return .init(.route, entry.text(stack.name))
        }
        if let route {
            // Bound to an interface without a route, a packet gets the benefit of the doubt
            // (ip_route_output_key_hash_rcu in net/ipv4/route.c).
            let name = stack.name(route.interfaceIndex)
            return .init(
                .route, "none by \(name): bound to it, the kernel takes \(destination) for a host on that link")
        }
        switch refusal {
        case .unreachable: return refusedSomewhere("an unreachable")
        case .prohibited: return refusedSomewhere("a prohibit")
        case .blackhole: return refusedSomewhere("a blackhole")
        case .familyUnsupported: return .init(.route, "the kernel has no \(family.name)")
        case .other(let code): return .init(.route, "the kernel answered with error \(code)")
        case .noRoute, nil: return nil
        }
    }

    private func refusedSomewhere(_ what: String) -> Explanation.Step? {
        guard finding.walk.end != .refusedByRule else { return nil }
        return .init(.route, "\(what) route or rule; which one cannot be told: not all routes were looked at")
    }

    private func hopWords(_ route: Route) -> String {
        let hop = RouteEntry.NextHop(interfaceIndex: route.interfaceIndex, gateway: route.gateway)
        return " " + hop.words(to: family, stack.name).joined(separator: " ")
    }

    private var nextHop: Explanation.Step? {
        guard let entry = finding.entry, let route, route.scope == .remote else { return nil }
        var parts: [String] = []
        if let object = entry.nextHopObject {
            parts.append("next-hop object \(object)" + (entry.nextHops.count > 1 ? ", a group" : ""))
        }
        if entry.nextHops.count > 1 {
            let hops = entry.nextHops.map { hop in
                hop.words(to: family, stack.name).joined(separator: " ") + " weight \(hop.weight)"
            }
            // In one order: IPv6 begins with the one that it happened to match.
            let choice = finding.isChoiceOpen ? "which of them is open" : "this packet goes" + hopWords(route)
            parts.append("one of \(hops.sorted().joined(separator: ", ")); \(choice)")
        } else if entry.nextHopObject != nil {
            parts.append(String(hopWords(route).dropFirst()))
        }
        if let gateway = route.gateway, gateway.family != family {
            parts.append("\(family.name) by way of a router's \(gateway.family.name) address")
        }
        return parts.isEmpty ? nil : .init(.nexthop, parts.joined(separator: ": "))
    }

    // MARK: The link

    private var link: Explanation.Step? {
        guard let route else {
            // Where no link has a carrier, that is why there is no route.
            guard path.reason == .noCarrier else { return nil }
            let links = stack.snapshot.interfaces.values.filter { $0.kind != .loopback }.sorted { $0.index < $1.index }
            let text =
                links.isEmpty ? "there is no interface but the loopback" : links.map(state).joined(separator: "; ")
            return .init(.link, text)
        }
        guard let interface = stack.snapshot.interfaces[route.interfaceIndex] else {
            return .init(.link, "the interface of the route is gone")
        }
        var text = state(interface)
        if interface.isUp, !interface.hasCarrier, !finding.ignoresLinkDown {
            text += "; the kernel keeps using the route, ignore_routes_with_linkdown is off"
        }
        return .init(.link, text)
    }

    /// `wlan0 (wifi) is up, carrier present`, and what it stands on where that is why not.
    private func state(_ interface: Interface) -> String {
        var told: Set<Int> = []
        return state(interface, &told)
    }

    /// - Parameter told: the links of which it is said already what they stand on. Tunnels may stand on each other.
    private func state(_ interface: Interface, _ told: inout Set<Int>) -> String {
        let detail = stack.details[interface.index]
        var about = interface.kind == .other ? detail?.driver : interface.kind.rawValue
        if let base = detail?.base, base != interface.index {
            about = "\(detail?.driver ?? "virtual") on \(stack.name(base))"
        }
        let name = interface.name + (about.map { " (\($0))" } ?? "")
        guard interface.isUp else { return "\(name) is down" }
        if interface.hasCarrier { return "\(name) is up, carrier present" }
        let isNew = told.insert(interface.index).inserted
        let cause = isNew ? cause(of: interface, detail, &told) : nil
        return "\(name) is up, but has no carrier" + (cause.map { ": \($0)" } ?? "")
    }

    private func cause(of interface: Interface, _ detail: LinkDetail?, _ told: inout Set<Int>) -> String? {
        if let base = detail?.base, base != interface.index, let lower = stack.snapshot.interfaces[base] {
            return lower.isOperational ? nil : state(lower, &told)
        }
        if detail?.livesByItsPorts == true {
            let ports = stack.ports(of: interface.index)
            return ports.isEmpty ? "it has no ports" : ports.map { state($0, &told) }.joined(separator: "; ")
        }
        return nil
    }

    // MARK: The neighbour and the source

    private var neighbour: Explanation.Step? {
        guard let route, route.scope == .remote, let interface = stack.snapshot.interfaces[route.interfaceIndex],
            stack.details[route.interfaceIndex]?.resolvesNeighbours ?? true, interface.isOperational
        else { return nil }
        let who = "\(route.gateway ?? destination)"
        let text =
            switch finding.neighbour?.state {
            case nil: "\(who) was not asked for yet on \(interface.name)"
            case .incomplete: "\(who) is being asked for on \(interface.name), no answer so far (INCOMPLETE)"
            case .reachable: "\(who) answers on \(interface.name) (REACHABLE)"
            case .stale: "\(who) has answered on \(interface.name), not lately (STALE)"
            case .probing: "\(who) has answered on \(interface.name) and is asked again (PROBE)"
            case .fixed: "\(who) has a fixed entry on \(interface.name), nobody asks it"
            case .failed: "\(who) is FAILED on \(interface.name)" + silence
            }
        return .init(.neighbour, text)
    }

    private var silence: String {
        // Whoever follows the gateway knows for how long; the kernel, since when it gave up asking the last time.
        if let silence = finding.silence, silence > (finding.neighbour?.age ?? .zero) + .seconds(1) {
            return " for \(silence.short): it does not answer"
        }
        return finding.neighbour?.age.map { ": no answer, last asked \($0.short) ago" } ?? ": it does not answer"
    }

    private var source: Explanation.Step? {
        guard let route else {
            guard path.reason == .noAddress else { return nil }
            return .init(.source, noSource)
        }
        if path.reason == .noAddress { return .init(.source, noSource(on: route)) }
        guard let source = route.source else { return nil }
        let own = stack.snapshot.interfaces[route.interfaceIndex]?.addresses.first { $0.address == source }
        return .init(
            .source, "\(source)" + (own?.isDeprecated == true ? ", which is deprecated: there is no better" : ""))
    }

    /// No interface has an address to send from: what there is instead.
    private var noSource: String {
        let addresses = stack.snapshot.interfaces.values.filter { $0.kind != .loopback && $0.isOperational }
            .sorted { $0.index < $1.index }
            .flatMap { interface in interface.addresses.map { ($0, interface.name) } }
        let own = addresses.filter { $0.0.address.family == family }
        if !own.isEmpty { return "no usable \(family.name) address: " + own.map(describe).joined(separator: ", ") }
        let other = family == .v4 ? IPAddress.Family.v6 : .v4
        let others = addresses.filter { $0.0.address.family == other && !$0.0.address.isLinkLocal }
        let remark =
            others.isEmpty ? "" : "; there is only \(other.name): " + others.map(describe).joined(separator: ", ")
        return "this machine has no \(family.name) address" + remark
    }

    /// The interface of the route has no address to send from.
    private func noSource(on route: Route) -> String {
        let name = stack.name(route.interfaceIndex)
        let own = (stack.snapshot.interfaces[route.interfaceIndex]?.addresses ?? [])
            .filter { $0.address.family == family }
        guard !own.isEmpty else { return "\(name) has no \(family.name) address" }
        return "no usable \(family.name) address on \(name): " + own.map { describe(($0, nil)) }.joined(separator: ", ")
    }

    private func describe(_ address: (InterfaceAddress, String?)) -> String {
        let (address, interface) = address
        let place = interface.map { " on \($0)" } ?? ""
        if address.isDuplicate { return "\(address.address)\(place) is a duplicate of another host's" }
        if address.isTentative {
            return "\(address.address)\(place) is tentative, duplicates of it are still looked for"
        }
        if address.address.isLinkLocal { return "\(address.address)\(place) is for this link alone" }
        return "\(address.address)\(place)"
    }
}

extension RuleWalk.Passed {
    /// Whether the table is main, or one of somebody's making, or had something after all.
    fileprivate var isWorthAWord: Bool {
        entry != nil || ![RouteEntry.local, RouteEntry.default].contains(reading.table)
    }
}

extension Explanation.Step {
    /// What keeps packets that must leave by an interface, or from a source address, from being asked about at all.
    package static func foregone(_ target: Target, on stack: LinkStack) -> Self {
        if let name = target.interface, stack.index(of: name) == nil {
            return .init(.link, "there is no interface \(name)", isDecisive: true)
        }
        guard let source = target.source else {
            return .init(.source, "there is nothing to ask about", isDecisive: true)
        }
        let text =
            stack.snapshot.hasUsable(source)
            ? "\(source) is of another family than the host's addresses"
            : "\(source) is no address of this machine that packets can leave from now"
        return .init(.source, text, isDecisive: true)
    }
}

extension IPAddress.Family {
    /// `IPv4` or `IPv6`.
    var name: String { self == .v4 ? "IPv4" : "IPv6" }
}
