// SPDX-License-Identifier: Apache-2.0

/// What may be said of a packet, from the kernel's word alone.
///
/// The lookup decides, but it knows nothing of carriers, of addresses that are not usable yet, and of gateways that are
/// dead: the rules for those are written here once more, from `ip`'s output and in `ip`'s words, so that no mistake of
/// the product can be in both.
struct Expectation: Hashable, Sendable {
    /// Why it would not arrive; empty when it would. Of several, each is right.
    var obstacles: Set<String> = []
    var interface: String?
    var gateway: String?
    var source: Source = .none

    /// The source address that the packet carries.
    enum Source: Hashable, Sendable {
        case none
        case this(String)
        /// One of the machine's own, which the kernel did not say.
        case own
    }

    var isSatisfied: Bool { obstacles.isEmpty }

    /// The same where a route is needed and there is none.
    fileprivate var withoutRoute: Expectation {
        var expectation = self
        if isSatisfied { expectation.obstacles = ["noRoute"] }
        return expectation
    }

    /// The same by a way of which the kernel did not say what source it goes with.
    fileprivate func withOpenSource(unless asked: String?) -> Expectation {
        guard interface != nil, asked == nil else { return self }
        var expectation = self
        expectation.source = .own
        return expectation
    }
}

extension KernelWord {
    /// What may be said of `subject`: one thing for the most part, the first where there are several.
    func expectations(for subject: Subject) throws -> [Expectation] {
        var obstacles: Set<String> = []
        if let name = subject.interface, links[name] == nil { obstacles.insert("noRoute") }
        if let source = subject.source, !isUsable(source) { obstacles.insert("noAddress") }
        // What cannot be asked for needs no lookup.
        guard obstacles.isEmpty, let lookup = lookups[subject] else { return [Expectation(obstacles: obstacles)] }
        switch lookup {
        case .refused(let words):
            return [Expectation(obstacles: [try reason(for: words, to: subject)])]
        case .route(let route):
            let others = alternatives[subject, default: []].map { $0.standing(in: route) }
            let named = expectations(of: route, to: subject)
            let possible = others.flatMap { expectations(of: $0, to: subject) }
                .map { $0.withOpenSource(unless: subject.source) }
            // Where the kernel names a way that works, nothing is an excuse for having none.
            return named + (named.allSatisfy(\.isSatisfied) ? possible.filter(\.isSatisfied) : possible)
        }
    }

    /// What may be said of the network as such: the first family that works.
    func networkExpectations() throws -> [Expectation] {
        try firstThatWorks(Subject.internet)
    }

    /// What may be said of the network over some of its links alone: the first that works. One that is down is as good
    /// as none.
    func networkExpectations(over names: [String]) throws -> [Expectation] {
        let up = names.compactMap { links[$0] }.filter(\.isUp).sorted { $0.ifindex < $1.ifindex }
        guard !up.isEmpty else { return [Expectation(obstacles: ["noRoute"])] }
        return try firstThatWorks(up.map(\.ifname).flatMap(Subject.internet))
    }

    /// Whether IPv4 packets would leave by `link` without any route.
    private func isGuess(by link: String) -> Bool {
        if case .refused? = lookups[Subject.route(by: link)] { true } else { false }
    }

    private func firstThatWorks(_ ways: [Subject]) throws -> [Expectation] {
        var (found, obstacles): ([Expectation], Set<String>) = ([], [])
        for way in ways {
            var expected = try expectations(for: way)
            // The Internet is no neighbour: over a link that is required, it takes a route.
            if let link = way.interface, !way.isV6, isGuess(by: link) { expected = expected.map(\.withoutRoute) }
            found += expected.filter(\.isSatisfied)
            let failures = expected.filter { !$0.isSatisfied }
            if failures.isEmpty { return found }
            obstacles.formUnion(failures.flatMap(\.obstacles))
        }
        return found + [Expectation(obstacles: obstacles)]
    }

    /// What may be said of the network as a whole, and so is part of every verdict.
    struct Facts {
        let v4: Set<Bool>
        let v6: Set<Bool>
        let dns: Set<Bool>
    }

    /// Whether packets of each family can leave for the Internet, and for a name server.
    func facts() throws -> Facts {
        func arrives(_ subject: Subject) throws -> Set<Bool> { Set(try expectations(for: subject).map(\.isSatisfied)) }
        let servers = try Subject.nameServers.map(arrives).reduce([false]) { some, one in
            Set(some.flatMap { some in one.map { some || $0 } })
        }
        return Facts(v4: try arrives(Subject.internet[0]), v6: try arrives(Subject.internet[1]), dns: servers)
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

    private func expectations(of route: Route, to subject: Subject) -> [Expectation] {
        if let type = route.type, ["unreachable", "prohibit", "blackhole"].contains(type) {
            return [Expectation(obstacles: [type == "prohibit" ? "prohibited" : type])]
        }
        let source = subject.source ?? route.source
        var expectation = Expectation(
            interface: route.dev, gateway: route.nextHop, source: source.map(Expectation.Source.this) ?? .none)
        if let obstacle = obstacle(on: route, from: source, to: subject) {
            expectation.obstacles = [obstacle]
        } else if let gateway = route.nextHop, let name = route.dev, let link = links[name], route.type != "local" {
            var failure = expectation
            failure.obstacles = ["gatewayUnreachable"]
            return switch neighbours[Neighbour(address: gateway, link: name)] {
            case .yes: [expectation]
            case .no: [failure]
            // Nothing is known, or it is being asked for. That it died once may be remembered until it has been asked,
            // which is to be at once.
            case nil where gateway.contains(":") && !link.addresses.contains { $0.local.contains(":") }:
                // Nor can it be asked on a link without IPv6.
                [expectation, failure]
            case nil: [expectation]
            }
        }
        return [expectation]
    }

    private func obstacle(on route: Route, from source: String?, to subject: Subject) -> String? {
        // Packets to the machine itself go by the loopback.
        if route.type == "local" { return route.dev.flatMap { links[$0] }?.isUp == true ? nil : "noRoute" }
        guard let name = route.dev, let link = links[name], link.isUp else { return "noRoute" }
        guard link.hasCarrier else { return "noCarrier" }
        guard let source, !["0.0.0.0", "::"].contains(source) else { return "noAddress" }
        if source == "::1" || source.hasPrefix("127."), !["::1", "127.0.0.1"].contains(subject.address) {
            return "noAddress"
        }
        // No router passes on what comes from a link-local address (RFC 4291, section 2.5.6).
        if route.nextHop != nil, Self.isLinkLocalV6(source), !Self.isLinkLocalV6(subject.address) { return "noAddress" }
        if let own = link.addresses.first(where: { $0.local == source }), !own.isUsable { return "noAddress" }
        return nil
    }

    fileprivate static func isLinkLocalV6(_ address: String) -> Bool {
        ["fe8", "fe9", "fea", "feb"].contains { address.hasPrefix($0) }
    }

    /// Words of `ip` that nobody thought of.
    struct Strange: Error, CustomStringConvertible {
        let description: String
    }
}

extension KernelWord.Link.Address {
    fileprivate var isLinkLocal: Bool {
        local.hasPrefix("169.254.") || KernelWord.isLinkLocalV6(local)
    }
}
