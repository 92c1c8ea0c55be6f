// SPDX-License-Identifier: Apache-2.0

/// What must be said of a packet, from the kernel's word alone.
///
/// The lookup decides, but it knows nothing of carriers, of addresses that are not usable yet, and of gateways that are
/// dead: the rules for those are written here once more, from `ip`'s output and in `ip`'s words, so that no mistake of
/// the product can be in both.
struct Expectation: Equatable, Sendable {
    /// Why it would not arrive; empty when it would. Of several, each is right.
    var obstacles: Set<String> = []
    var interface: String?
    var gateway: String?
    var source: String?

    var isSatisfied: Bool { obstacles.isEmpty }
}

extension KernelWord {
    /// What must be said of `subject`.
    func expectation(for subject: Subject) throws -> Expectation {
        var obstacles: Set<String> = []
        if let name = subject.interface, links[name] == nil { obstacles.insert("noRoute") }
        if let source = subject.source, !isUsable(source) { obstacles.insert("noAddress") }
        // What cannot be asked for needs no lookup.
        guard obstacles.isEmpty, let lookup = lookups[subject] else { return Expectation(obstacles: obstacles) }
        switch lookup {
        case .refused(let words):
            return Expectation(obstacles: [try reason(for: words, to: subject)])
        case .route(let route):
            let obstacles = Set([obstacle(on: route, to: subject)].compactMap { $0 })
            return Expectation(
                obstacles: obstacles, interface: route.dev, gateway: route.nextHop, source: route.source)
        }
    }

    /// What must be said of the network as such: the first family that works.
    func networkExpectation() throws -> Expectation {
        let families = try Subject.internet.map(expectation)
        if let working = families.first(where: \.isSatisfied) { return working }
        return Expectation(obstacles: families.reduce(into: []) { $0.formUnion($1.obstacles) })
    }

    /// Whether packets of a family can leave for the Internet.
    func supports(v6: Bool) throws -> Bool {
        try Subject.internet.filter { $0.isV6 == v6 }.allSatisfy { try expectation(for: $0).isSatisfied }
    }

    /// Whether some link that works has `address`, usable.
    private func isUsable(_ address: String) -> Bool {
        links.values.contains { link in
            link.isUp && link.hasCarrier && link.addresses.contains { $0.local == address && $0.isUsable }
        }
    }

    private func reason(for words: String, to subject: Subject) throws -> String {
        switch words {
        case "RTNETLINK answers: No route to host": return "unreachable"
        case "RTNETLINK answers: Permission denied": return "prohibited"
        case "RTNETLINK answers: Invalid argument": return "blackhole"
        case "RTNETLINK answers: Network is unreachable":
            let working = links.values.filter { !$0.isLoopback && $0.isUp && $0.hasCarrier }
            if working.isEmpty { return "noCarrier" }
            let own = working.flatMap(\.addresses).filter { $0.isUsable && $0.local.contains(":") == subject.isV6 }
            return own.allSatisfy(\.isLinkLocal) ? "noAddress" : "noRoute"
        default:
            throw Strange(description: "`ip \(subject.lookup)` says \"\(words)\"")
        }
    }

    private func obstacle(on route: Route, to subject: Subject) -> String? {
        if route.type == "local" { return nil }
        guard let name = route.dev, let link = links[name], link.isUp else { return "noRoute" }
        guard link.hasCarrier else { return "noCarrier" }
        guard let source = route.source, !["0.0.0.0", "::"].contains(source) else { return "noAddress" }
        if source == "::1" || source.hasPrefix("127."), !["::1", "127.0.0.1"].contains(subject.address) {
            return "noAddress"
        }
        if let own = link.addresses.first(where: { $0.local == source }), !own.isUsable { return "noAddress" }
        if let gateway = route.nextHop, deadNeighbours.contains(Neighbour(dst: gateway, dev: name)) {
            return "gatewayUnreachable"
        }
        return nil
    }

    /// Words of `ip` that nobody thought of.
    struct Strange: Error, CustomStringConvertible {
        let description: String
    }
}

extension KernelWord.Link.Address {
    fileprivate var isLinkLocal: Bool {
        local.hasPrefix("169.254.") || ["fe8", "fe9", "fea", "feb"].contains { local.hasPrefix($0) }
    }
}
