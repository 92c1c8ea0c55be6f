// SPDX-License-Identifier: Apache-2.0

import NetworkPath

/// Where the product and the kernel say different things.
struct Disagreement: Equatable, Sendable, CustomStringConvertible {
    /// What is asked about, as `ip` is asked.
    let subject: String
    /// What differs, with both sides' words.
    let differences: [String]

    var description: String { "\(subject)\n" + differences.map { "    \($0)" }.joined(separator: "\n") }
}

/// Holds what the product said against the kernel's word.
struct Comparison {
    /// How many verdicts were compared.
    private(set) var count = 0
    private(set) var disagreements: [Disagreement] = []

    /// Compares everything that is watched.
    init(_ said: [Question: Path], with word: KernelWord) throws {
        let families = (v4: try word.supports(v6: false), v6: try word.supports(v6: true))
        for subject in Subject.all {
            let expected = try word.expectation(for: subject)
            var differences = Differences(said[.subject(subject)], expected, word)
            let proof = expected.isSatisfied ? subject.isV6 : nil
            differences.note("IPv4 works", differences.path?.supportsIPv4, families.v4 || proof == false)
            differences.note("IPv6 works", differences.path?.supportsIPv6, families.v6 || proof == true)
            differences.note("destination", differences.path?.destination?.description, subject.address)
            take(differences, about: "ip \(subject.lookup)")
        }
        var network = Differences(said[.network], try word.networkExpectation(), word)
        network.note("IPv4 works", network.path?.supportsIPv4, families.v4)
        network.note("IPv6 works", network.path?.supportsIPv6, families.v6)
        take(network, about: "the network")
    }

    private mutating func take(_ differences: Differences, about subject: String) {
        count += 1
        if !differences.found.isEmpty {
            disagreements.append(Disagreement(subject: subject, differences: differences.found))
        }
    }

    /// What is watched.
    enum Question: Hashable, Sendable {
        case subject(Subject)
        case network
        /// Not judged; it tells that everything before it was read.
        case marker
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
            found.append("reason: \(reason ?? "none"), kernel: \(expected.obstacles.sorted().joined(separator: " or "))")
        }
        // A network with no way is told by what came furthest, which may be either family's.
        if expected.interface == nil, !expected.isSatisfied, path.destination == nil { return }
        note("interface", path.interface?.name, expected.interface)
        note("gateway", path.gateway?.description, expected.gateway)
        note("source", path.source?.description, expected.source)
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

    mutating func note<T: Equatable>(_ what: String, _ said: T?, _ kernel: T?) {
        guard path != nil, said != kernel else { return }
        func text(_ value: T?) -> String { value.map { "\($0)" } ?? "none" }
        found.append("\(what): \(text(said)), kernel: \(text(kernel))")
    }
}
