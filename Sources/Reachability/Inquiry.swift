// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// "The Internet", as an address to look up: no packet is ever sent to it.
///
/// A default route is neither necessary (`0/1` with `128/1`, a rule to another table) nor sufficient (in a table that no
/// rule names), so the kernel is asked about an address that every working network routes. A root name server's is that,
/// by definition of what the Internet is: a.root-servers.net, from https://www.internic.net/domain/named.root.
enum Internet {
    static let v4 = IPAddress(v4: 0xC629_0004)  // 198.41.0.4
    static let v6 = IPAddress(v6: 0x2001_0503_BA3E_0000_0000_0000_0002_0030)  // 2001:503:ba3e::2:30
}

/// The lookups that answer a question, and how their answers become a path.
struct Inquiry {
    /// What to ask the kernel.
    private(set) var queries: [RouteQuery] = []
    /// The verdict where there is nothing to ask.
    private var foregone: Path?

    /// The lookups for the network over the interfaces that `requirement` allows.
    init(network requirement: InterfaceRequirement, in snapshot: NetworkSnapshot) {
        guard let indices = requirement.interfaces(in: snapshot) else {
            queries = [RouteQuery(Internet.v4), RouteQuery(Internet.v6)]
            return
        }
        for index in indices {
            for address in [Internet.v4, Internet.v6] {
                var query = RouteQuery(address)
                query.interfaceIndex = index
                queries.append(query)
            }
        }
        if queries.isEmpty {
            foregone = Path(
                generation: snapshot.generation, status: .unsatisfied, reason: .noRoute,
                isCoherent: snapshot.isCoherent)
        }
    }

    /// The lookups for `target` at each of `addresses`.
    init(_ target: Target, at addresses: [IPAddress], in snapshot: NetworkSnapshot) {
        var index: Int?
        if let name = target.interface {
            index = snapshot.interfaces.values.first { $0.name == name }?.index
            if index == nil { foregone = Self.impossible(.noRoute, to: addresses.first, in: snapshot) }
        }
        // The kernel answers EINVAL to a source that is not ours, which reads like a blackhole.
        if let source = target.source, !snapshot.hasUsable(source) {
            foregone = Self.impossible(.noAddress, to: addresses.first, in: snapshot)
        }
        guard foregone == nil else { return }
        queries =
            addresses
            .filter { address in target.source.map { $0.family == address.family } ?? true }
            .map { RouteQuery($0, for: target, interfaceIndex: index) }
        if queries.isEmpty { foregone = Self.impossible(.noAddress, to: addresses.first, in: snapshot) }
    }

    private static func impossible(
        _ reason: Path.Reason, to destination: IPAddress?, in snapshot: NetworkSnapshot
    ) -> Path {
        Path(
            generation: snapshot.generation, status: .unsatisfied, reason: reason, isCoherent: snapshot.isCoherent,
            destination: destination)
    }

    /// The path that the kernel's answers to ``queries`` make.
    func path(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> Path {
        Path.best(of: candidates(by: answers, in: snapshot)) ?? foregone
            ?? .unknown(generation: snapshot.generation, destination: nil)
    }

    /// The path that each single answer makes.
    func candidates(by answers: ArraySlice<RouteAnswer>, in snapshot: NetworkSnapshot) -> [Path] {
        zip(queries, answers).map { Path(to: $0.destination, by: $1, in: snapshot) }
    }
}
