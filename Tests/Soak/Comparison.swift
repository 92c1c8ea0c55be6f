// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

/// Where the product and the kernel say different things.
struct Disagreement: Equatable, Sendable, CustomStringConvertible {
    let question: Comparison.Question
    /// What differs, with both sides' words.
    let differences: [String]

    var description: String { "\(question)\n" + differences.map { "    \($0)" }.joined(separator: "\n") }
}

/// Holds what the product said against the kernel's word.
struct Comparison {
    /// How many verdicts were compared.
    private(set) var count = 0
    private(set) var disagreements: [Disagreement] = []

    /// Compares everything that is watched.
    init(_ said: [Question: Path], with word: KernelWord) throws {
        let facts = try word.facts()
        for subject in Subject.all {
            let path = said[.subject(subject)]
            let found = try Self.fewest(word.expectations(for: subject)) { expected in
                var differences = Differences(path, expected, word)
                differences.note(facts, proven: expected.isSatisfied ? (subject.isV6 ? .v6 : .v4) : nil)
                differences.note("destination", path?.destination?.description, subject.address)
                return differences
            }
            take(found, about: .subject(subject))
        }
        for (question, expected) in [
            (Question.network, try word.networkExpectations()),
            (.bridges, try word.networkExpectations(over: ["b0"])),
            (.virtual, try word.networkExpectations(over: Subject.virtualLinks)),
            (.others, try word.networkExpectations(over: Subject.virtualLinks)),
        ] {
            let path = said[question]
            let found = Self.fewest(expected) { expected in
                var differences = Differences(path, expected, word)
                differences.note(facts, proven: expected.isSatisfied ? path?.source?.family : nil)
                return differences
            }
            take(found, about: question)
        }
    }

    /// The differences from the one of several expectations that is met; if none is, from the first.
    private static func fewest(
        _ expectations: [Expectation], _ differences: (Expectation) -> Differences
    ) -> [String] {
        let found = expectations.map { differences($0).found }
        return found.contains([]) ? [] : found.first ?? ["the kernel says nothing"]
    }

    private mutating func take(_ differences: [String], about question: Question) {
        count += 1
        if !differences.isEmpty {
            disagreements.append(Disagreement(question: question, differences: differences))
        }
    }

    /// What is watched.
    enum Question: Hashable, Sendable, CustomStringConvertible {
        case subject(Subject)
        /// What a program says that was started just now.
        case command(Subject, isPrivileged: Bool)
        case network
        case bridges
        case virtual
        /// All links but bridges, which here are the virtual ones.
        case others
        /// Not judged; it tells that everything before it was read.
        case marker

        var description: String {
            switch self {
            case .subject(let subject): "ip \(subject.lookup)"
            case .command(let subject, true): "dialtone check, of ip \(subject.lookup)"
            case .command(let subject, false): "dialtone check by another user, of ip \(subject.lookup)"
            case .network: "the network"
            case .bridges: "the network over bridges"
            case .virtual: "the network over virtual links"
            case .others: "the network over other links than bridges"
            case .marker: "the marker"
            }
        }
    }
}

/// The differences of one verdict.
private struct Differences {
    let path: Path?
    private(set) var found: [String] = []

    init(_ path: Path?, _ expected: Expectation, _ word: KernelWord) {
        self.path = path
        guard let path else {
            found = ["the product never said anything"]
            return
        }
        note("coherent", path.isCoherent, true)
        note("status", path.status, expected.isSatisfied ? .satisfied : .unsatisfied)
        let reason = path.reason?.rawValue
        if !expected.isSatisfied || reason != nil, !expected.obstacles.contains(reason ?? "none") {
            found.append(
                "reason: \(reason ?? "none"), kernel: \(expected.obstacles.sorted().joined(separator: " or "))")
        }
        // A network with no way is told by what came furthest, which may be either family's.
        if expected.interface == nil, !expected.isSatisfied, path.destination == nil { return }
        note("interface", path.interface?.name, expected.interface)
        note("gateway", path.gateway?.description, expected.gateway)
        switch expected.source {
        case .none: note("source", path.source?.description, nil)
        case .this(let source): note("source", path.source?.description, source)
        case .own: if path.source == nil { found.append("source: none, kernel: one of its own") }
        }
        if let interface = path.interface, let link = word.links[interface.name] { compare(interface, with: link) }
    }

    private mutating func compare(_ interface: Interface, with link: KernelWord.Link) {
        note("index", interface.index, link.ifindex)
        note("up", interface.isUp, link.isUp)
        note("carrier", interface.hasCarrier, link.hasCarrier)
        // Of an address that is tentative the kernel may tell nothing before it is known to be nobody else's: to know
        // it as tentative and not to know it are one.
        let said = interface.addresses.filter { !$0.isTentative }.map {
            text("\($0.address)/\($0.prefixLength)", duplicate: $0.isDuplicate, deprecated: $0.isDeprecated)
        }
        let own = link.addresses.filter { $0.tentative != true || $0.optimistic == true }.map {
            text("\($0.local)/\($0.prefixlen)", duplicate: $0.dadfailed == true, deprecated: $0.deprecated == true)
        }
        note("addresses", said.sorted(), own.sorted())
    }

    private func text(_ prefix: String, duplicate: Bool, deprecated: Bool) -> String {
        prefix + (duplicate ? " duplicate" : "") + (deprecated ? " deprecated" : "")
    }

    /// - Parameter family: of which the verdict, being satisfied, is itself a proof.
    mutating func note(_ facts: KernelWord.Facts, proven family: IPAddress.Family?) {
        guard let path else { return }
        note("IPv4 works", path.supportsIPv4, family == .v4 ? [true] : facts.v4)
        note("IPv6 works", path.supportsIPv6, family == .v6 ? [true] : facts.v6)
        note("DNS works", path.supportsDNS, facts.dns)
    }

    private mutating func note(_ what: String, _ said: Bool, _ kernel: Set<Bool>) {
        if !kernel.contains(said) { note(what, said, !said) }
    }

    mutating func note<T: Equatable>(_ what: String, _ said: T?, _ kernel: T?) {
        guard path != nil, said != kernel else { return }
        func text(_ value: T?) -> String { value.map { "\($0)" } ?? "none" }
        found.append("\(what): \(text(said)), kernel: \(text(kernel))")
    }
}
