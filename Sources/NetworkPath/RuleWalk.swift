// SPDX-License-Identifier: Apache-2.0

/// The way of a packet through the policy rules and the tables they lead to, walked as the kernel walks it
/// (`fib_rules_lookup` in net/core/fib_rules.c).
///
/// The kernel answers a lookup without a word on the rule that led there, and a refusal without one on the route. So
/// the way is walked again here, over the rules and the routes that cover the destination.
package struct RuleWalk: Hashable, Sendable {
    /// A rule that selected the packet and led nowhere.
    package struct Passed: Hashable, Sendable {
        /// The rule.
        package var rule: PolicyRule
        /// The table that it led to.
        package var reading: TableReading
        /// What ended the search there, if anything did: a `throw` route, or a route that the rule suppresses.
        package var entry: RouteEntry?

        /// A rule that led nowhere.
        package init(rule: PolicyRule, reading: TableReading, entry: RouteEntry? = nil) {
            self.rule = rule
            self.reading = reading
            self.entry = entry
        }
    }

    /// Where it ended.
    package enum End: Hashable, Sendable {
        /// At these entries: one, or several that the kernel holds for equal.
        case entries([RouteEntry])
        /// At a rule that refuses.
        case refusedByRule
        /// Nowhere: no rule was left.
        case nothing
    }

    /// Where it ended.
    package var end: End
    /// The rule that led to the end.
    package var rule: PolicyRule?
    /// The rules that led nowhere, in order.
    package var passed: [Passed]
    /// Whether every table on the way was seen as far as it matters.
    package var isCertain: Bool

    /// Where it ended, and how it got there.
    package init(end: End, rule: PolicyRule? = nil, passed: [Passed] = [], isCertain: Bool = true) {
        self.end = end
        self.rule = rule
        self.passed = passed
        self.isCertain = isCertain
    }
}

extension RuleWalk {
    /// The table that the way ends in; `nil` where it ends in none.
    package var table: UInt32? {
        guard case .entries(let entries) = end else { return nil }
        return entries.first?.table
    }

    /// What the kernel answers to a packet that takes this way, where it refuses it.
    package var refusal: RouteRefusal? {
        switch end {
        case .nothing: .noRoute
        case .refusedByRule: rule?.refusal
        case .entries(let entries): entries.first?.kind.refusal
        }
    }
}

extension PolicyRule {
    /// What the kernel answers to packets that the rule refuses. An unreachable rule is not told apart from there being
    /// no route, as an unreachable route is (`fib4_rule_action`, `fib6_rule_action`).
    fileprivate var refusal: RouteRefusal? {
        switch action {
        case .blackhole: .blackhole
        case .unreachable: .noRoute
        case .prohibit: .prohibited
        case .table, .goto, .nop, .other: nil
        }
    }
}

extension RouteEntry.Kind {
    /// What the kernel answers to packets that such a route refuses.
    fileprivate var refusal: RouteRefusal? {
        switch self {
        case .blackhole: .blackhole
        case .unreachable: .unreachable
        case .prohibit: .prohibited
        case .throw: .noRoute
        case .unicast, .local, .group, .other: nil
        }
    }
}

/// What decides between the entries of a table, besides the entries themselves.
package struct RouteSelection {
    /// Whether a next hop can be used. One that cannot is passed over, and an entry without any as well.
    package var isUsable: (RouteEntry.NextHop) -> Bool
    /// Whether IPv6 passes over a next hop as long as there is another one: a router that does not answer
    /// (`rt6_score_route` in net/ipv6/route.c).
    package var isAvoided: (RouteEntry.NextHop) -> Bool
    /// The group of an interface (`IFLA_GROUP`).
    package var group: (Int) -> UInt32

    /// A selection; by default every next hop that is not dead can be used.
    package init(
        isUsable: @escaping (RouteEntry.NextHop) -> Bool = { !$0.isDead },
        isAvoided: @escaping (RouteEntry.NextHop) -> Bool = { _ in false },
        group: @escaping (Int) -> UInt32 = { _ in 0 }
    ) {
        self.isUsable = isUsable
        self.isAvoided = isAvoided
        self.group = group
    }

    /// The entries that the kernel chooses from for `query`: none, one, or several that are equal to it, with the next
    /// hops that can be used.
    func best(of entries: [RouteEntry], for query: RouteQuery) -> [RouteEntry] {
        let covering = entries.filter { $0.covers(query) }
        if query.destination.family == .v4 { return first(of: covering, for: query).map { [$0] } ?? [] }
        let candidates = covering.compactMap { reduced($0, by: isUsable, query) }
        let preferred = candidates.compactMap { reduced($0, by: { !isAvoided($0) }, query) }
        return Self.first(of: preferred.isEmpty ? candidates : preferred)
    }

    /// IPv4 looks at the entries in an order, and takes the first that can be used. Where it comes upon one whose
    /// next-hop object cannot be used, it passes over all others for the same network address
    /// (`fib_table_lookup` in net/ipv4/fib_trie.c, at `miss`).
    private func first(of entries: [RouteEntry], for query: RouteQuery) -> RouteEntry? {
        // Among equals the order of the dump, which is the kernel's.
        let ordered = entries.enumerated().sorted { one, other in
            one.element.precedes(other.element)
                || one.element.ties(with: other.element) && one.offset < other.offset
        }
        var missed: Set<IPAddress> = []
        for (_, entry) in ordered where !missed.contains(entry.prefix.address) {
            if let entry = reduced(entry, by: isUsable, query) { return entry }
            if entry.nextHopObject != nil { missed.insert(entry.prefix.address) }
        }
        return nil
    }

    private func reduced(
        _ entry: RouteEntry, by condition: (RouteEntry.NextHop) -> Bool, _ query: RouteQuery
    ) -> RouteEntry? {
        // IPv6 keeps routes that refuse on the loopback interface, where no packet that is bound to another finds them.
        if entry.kind.isRefusing { return query.destination.family == .v6 && query.interfaceIndex != nil ? nil : entry }
        var entry = entry
        entry.nextHops = entry.nextHops.filter {
            condition($0) && (query.interfaceIndex == nil || query.interfaceIndex == $0.interfaceIndex)
        }
        return entry.nextHops.isEmpty ? nil : entry
    }

    private static func first(of entries: [RouteEntry]) -> [RouteEntry] {
        guard var best = entries.first else { return [] }
        for entry in entries.dropFirst() where entry.precedes(best) { best = entry }
        let equals = entries.filter { $0.ties(with: best) }
        return best.kind.isRefusing ? [best] : equals
    }
}

extension RuleWalk {
    /// Walks `packet` through `rules`, which are in the kernel's order.
    ///
    /// - Parameter reading: what a table has for the destination; asked for only the tables on the way.
    package init<Failure: Error>(
        _ packet: RulePacket, through rules: [PolicyRule], choosing selection: RouteSelection = RouteSelection(),
        reading: (UInt32) throws(Failure) -> TableReading
    ) throws(Failure) {
        self.init(end: .nothing)
        var target: UInt32?
        for rule in rules {
            if let priority = target {
                guard rule.priority >= priority else { continue }
                // A jump to a priority that no rule has does not resolve, and such a rule is passed over.
                target = nil
            }
            guard rule.selects(packet) else { continue }
            switch rule.action {
            case .goto(let priority):
                if rules.contains(where: { $0.priority == priority }) { target = priority }
            case .nop, .other: break
            case .blackhole, .unreachable, .prohibit:
                end = .refusedByRule
                self.rule = rule
                return
            case .table(let number):
                let reading = try reading(rule.isForVRF ? packet.tableOfVRF ?? number : number)
                if !reading.isComplete { isCertain = false }
                let best = selection.best(of: reading.entries, for: packet.query)
                if let found = best.first, found.kind != .throw, !rule.suppresses(found, selection) {
                    end = .entries(best)
                    self.rule = rule
                    return
                }
                passed.append(Passed(rule: rule, reading: reading, entry: best.first))
            }
        }
    }
}

extension PolicyRule {
    /// Whether a route that this rule led to does not count (`fib4_rule_suppress`, `fib6_rule_suppress`). One that
    /// refuses always counts.
    func suppresses(_ entry: RouteEntry, _ selection: RouteSelection = RouteSelection()) -> Bool {
        guard !entry.kind.isRefusing else { return false }
        if let suppressedLength, entry.prefix.length <= suppressedLength { return true }
        guard let suppressedGroup, let hop = entry.nextHops.first else { return false }
        return selection.group(hop.interfaceIndex) == suppressedGroup
    }
}
