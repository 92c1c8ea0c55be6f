// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath

/// "The Internet", as an address to look up: no packet is ever sent to it.
///
/// A default route is neither necessary (`0/1` with `128/1`, a rule to another table) nor sufficient (in a table that
/// no rule names), so the kernel is asked about an address that every working network routes. A root name server's is
/// that, by definition of what the Internet is: a.root-servers.net, from https://www.internic.net/domain/named.root.
enum Internet {
    static let v4 = IPAddress(v4: 0xC629_0004)  // 198.41.0.4
    static let v6 = IPAddress(v6: 0x2001_0503_BA3E_0000_0000_0000_0002_0030)  // 2001:503:ba3e::2:30
}

/// The lookups that answer a question, how their answers become a path, and what that path rests on.
final class Inquiry {
    /// What to ask the kernel.
    let queries: [PreparedQuery]
    /// The verdict where there is nothing to ask.
    private let foregone: Path?
    /// What of the links the lookups were made of.
    private let terms: Terms
    /// What the last answers rest on; `nil` until there are some.
    private(set) var basis: VerdictBasis?

    /// Where the packets asked about go.
    var destinations: some Sequence<IPAddress> { queries.lazy.map(\.query.destination) }

    /// The lookups for the network over the interfaces that `requirement` allows, for packets of `user`.
    init(network requirement: InterfaceRequirement, user: UInt32? = nil, in snapshot: NetworkSnapshot) {
        let allowed = requirement.interfaces(in: snapshot)
        terms = .network(requirement, allowed: allowed, isOfUser: user != nil)
        let addresses = [Internet.v4, Internet.v6]
        func query(_ address: IPAddress, by index: Int?) -> PreparedQuery {
            var query = RouteQuery(address)
            (query.interfaceIndex, query.user) = (index, user)
            return PreparedQuery(query)
        }
        guard let allowed else {
            queries = addresses.map { query($0, by: nil) }
            foregone = nil
            return
        }
        queries = allowed.flatMap { index in addresses.map { query($0, by: index) } }
        foregone = queries.isEmpty ? Path(status: .unsatisfied, reason: .noRoute) : nil
    }

    /// The lookups for `target` at each of `addresses`.
    init(_ target: Target, at addresses: [IPAddress], in snapshot: NetworkSnapshot) {
        let index = target.interface.flatMap { snapshot.index(of: $0) }
        // The kernel answers EINVAL to a source that is not ours, which reads like a blackhole.
        let hasSource = target.source.map { snapshot.hasUsable($0) } ?? true
        terms = .host(target, index: index, hasSource: hasSource)
        let obstacle: Path.Reason? =
            if !hasSource { .noAddress } else if target.interface != nil, index == nil { .noRoute } else { nil }
        let suitable = addresses.filter { address in target.source.map { $0.family == address.family } ?? true }
        queries =
            obstacle != nil
            ? [] : suitable.map { PreparedQuery(RouteQuery($0, for: target, interfaceIndex: index)) }
        foregone =
            queries.isEmpty
            ? Path(status: .unsatisfied, reason: obstacle ?? .noAddress, destination: addresses.first) : nil
    }

    /// The path that the kernel's answers to ``queries`` make.
    func path(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> Path {
        // Nearly always there is one.
        if queries.count == 1, let answer = answers.first {
            return Path(to: queries[0].query.destination, by: answer, in: snapshot)
        }
        let candidates = candidates(by: answers, in: snapshot)
        var path = best(of: candidates) ?? foregone ?? Path(status: .unknown)
        // What holds of the network as a whole is found out for the process's own user.
        if case .network(_, allowed: _, isOfUser: true) = terms {
            path.supportsIPv4 = candidates.contains { $0.status == .satisfied && $0.destination?.family == .v4 }
            path.supportsIPv6 = candidates.contains { $0.status == .satisfied && $0.destination?.family == .v6 }
        }
        path.generation = snapshot.generation
        path.isCoherent = snapshot.isCoherent
        return path
    }

    /// Whether the answers let a packet of `family` leave.
    func reaches(_ family: IPAddress.Family, by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> Bool
    {
        candidates(by: answers, in: snapshot).contains {
            $0.destination?.family == family && $0.status == .satisfied
        }
    }

    /// The path that each single answer makes.
    func candidates(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> [Path] {
        zip(queries, answers).map {
            Path(to: $0.query.destination, by: $1, needsRoute: terms.needsRoute, in: snapshot)
        }
    }

    /// Of the paths to a target's addresses the one to the address that is to be tried first.
    func best(of candidates: [Path]) -> Path? {
        guard case .host = terms, candidates.count > 1 else { return Path.best(of: candidates) }
        let order = DestinationOrder.sorted(
            candidates.compactMap { path in path.destination.map { .init($0, by: path) } })
        let first = candidates.first { $0.status == .satisfied && $0.destination == order.first?.destination }
        return first ?? Path.best(of: candidates)
    }

    /// Keeps what the verdict on `answers` rests on.
    func note(_ answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) {
        var basis = VerdictBasis(capacity: queries.count)
        for (prepared, answer) in zip(queries, answers) { basis.add(prepared.query, answer, in: snapshot) }
        self.basis = basis
    }

    /// Whether the change of `scope` may alter the path.
    func isConcerned(by scope: ChangeScope) -> Bool { basis?.isConcerned(by: scope) ?? true }

    /// Whether the same question would make other lookups after `change`.
    func isOutdated(by change: KernelChange, in snapshot: NetworkSnapshot) -> Bool {
        // Most changes are of routes, and most questions are made of nothing that these could alter.
        if change.subjects.isDisjoint(with: [.interfaces, .addresses]), !change.concernsEverybody { return false }
        switch terms {
        case .network(let requirement, let allowed, _):
            return change.subjects.contains(.interfaces) && requirement.interfaces(in: snapshot) != allowed
        case .host(let target, let index, let hasSource):
            if let name = target.interface, change.subjects.contains(.interfaces) {
                // Where everything changed, it is not told which links did.
                let changed = change.concernsEverybody ? [] : change.links
                if snapshot.index(of: name, known: index, among: changed) != index { return true }
            }
            // One of the loopback's prefix comes and goes with another address.
            guard let source = target.source,
                change.concernsEverybody || change.addresses.contains(source) || source.isLoopback
            else { return false }
            return snapshot.hasUsable(source) != hasSource
        }
    }

    private enum Terms {
        case network(InterfaceRequirement, allowed: [Int]?, isOfUser: Bool)
        case host(Target, index: Int?, hasSource: Bool)

        /// A host on the link is reached without a route, as the kernel guesses; the Internet is no host on the link.
        var needsRoute: Bool {
            switch self {
            case .network: true
            case .host: false
            }
        }
    }
}

extension NetworkSnapshot {
    /// The index of the interface called `name`.
    fileprivate func index(of name: String) -> Int? { interfaces.values.first { $0.name == name }?.index }

    /// The same where it was `known` before the interfaces in `changed` changed, without a look at all the others:
    /// a thousand targets may name their interface. Where it is not told which changed, all are looked at.
    fileprivate func index(of name: String, known: Int?, among changed: Set<Int>) -> Int? {
        if let known, interfaces[known]?.name == name { return known }
        return changed.isEmpty ? index(of: name) : changed.first { interfaces[$0]?.name == name }
    }
}
