// SPDX-License-Identifier: Apache-2.0

internal import Netlink
internal import NetworkPath

/// "The Internet", as an address to look up: no packet is ever sent to it.
///
/// A default route is neither necessary (`0/1` with `128/1`, a rule to another table) nor sufficient (in a table that
/// no rule names), so the kernel is asked about an address that every working network routes. A root name server's is
/// that, by definition of what the Internet is: a.root-servers.net, from https://www.internic.net/domain/named.root.
enum Internet {
    static let v4 = IPAddress(v4: 0xC629_0004)  // 198.41.0.4
    static let v6 = IPAddress(v6: 0x2001_0503_BA3E_0000_0000_0000_0002_0030)  // 2001:503:ba3e::2:30
}

/// The lookups that answer a question, and how their answers become a path.
struct Inquiry {
    /// What to ask the kernel.
    private(set) var queries: [PreparedQuery] = []
    /// The verdict where there is nothing to ask.
    private var foregone: Path?

    /// Where the packets asked about go.
    var destinations: some Sequence<IPAddress> { queries.lazy.map(\.query.destination) }

    /// The lookups for the network over the interfaces that `requirement` allows.
    init(network requirement: InterfaceRequirement, in snapshot: NetworkSnapshot) {
        guard let indices = requirement.interfaces(in: snapshot) else {
            queries = [PreparedQuery(RouteQuery(Internet.v4)), PreparedQuery(RouteQuery(Internet.v6))]
            return
        }
        for index in indices {
            for address in [Internet.v4, Internet.v6] {
                var query = RouteQuery(address)
                query.interfaceIndex = index
                queries.append(PreparedQuery(query))
            }
        }
        if queries.isEmpty {
            foregone = Path(status: .unsatisfied, reason: .noRoute)
        }
    }

    /// The lookups for `target` at each of `addresses`.
    init(_ target: Target, at addresses: [IPAddress], in snapshot: NetworkSnapshot) {
        var index: Int?
        if let name = target.interface {
            index = snapshot.interfaces.values.first { $0.name == name }?.index
            if index == nil { foregone = Path(status: .unsatisfied, reason: .noRoute, destination: addresses.first) }
        }
        // The kernel answers EINVAL to a source that is not ours, which reads like a blackhole.
        if let source = target.source, !snapshot.hasUsable(source) {
            foregone = Path(status: .unsatisfied, reason: .noAddress, destination: addresses.first)
        }
        guard foregone == nil else { return }
        queries =
            addresses
            .filter { address in target.source.map { $0.family == address.family } ?? true }
            .map { PreparedQuery(RouteQuery($0, for: target, interfaceIndex: index)) }
        if queries.isEmpty { foregone = Path(status: .unsatisfied, reason: .noAddress, destination: addresses.first) }
    }

    /// Whether the verdict may differ after `change`. One that needs no lookup rests on interfaces and addresses.
    func mayDiffer(after change: KernelChange) -> Bool {
        foregone == nil ? destinations.contains(where: change.mayConcern) : change.subjects != .routes
    }

    /// The path that the kernel's answers to ``queries`` make.
    func path(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> Path {
        var path = Path.best(of: candidates(by: answers, in: snapshot)) ?? foregone ?? Path(status: .unknown)
        path.generation = snapshot.generation
        path.isCoherent = snapshot.isCoherent
        return path
    }

    /// Whether the answers let a packet of `family` leave.
    func reaches(_ family: IPAddress.Family, by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> Bool {
        candidates(by: answers, in: snapshot).contains {
            $0.destination?.family == family && $0.status == .satisfied
        }
    }

    /// The path that each single answer makes.
    func candidates(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> [Path] {
        zip(queries, answers).map { Path(to: $0.query.destination, by: $1, in: snapshot) }
    }
}
