// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation

/// What the kernel says of its network at one moment, read with `ip` and nothing of the product's.
struct KernelWord: Equatable, Sendable {
    /// A link with its addresses.
    struct Link: Equatable, Sendable, Decodable {
        struct Address: Hashable, Sendable, Decodable {
            let local: String
            let prefixlen: Int
            let tentative: Bool?
            let optimistic: Bool?
            let dadfailed: Bool?
            let deprecated: Bool?

            /// Whether a socket may be bound to it.
            var isUsable: Bool { (tentative != true || optimistic == true) && dadfailed != true }
        }

        let ifindex: Int
        let ifname: String
        let flags: Set<String>
        let operstate: String
        let addresses: Set<Address>

        private enum CodingKeys: String, CodingKey {
            case ifindex, ifname, flags, operstate
            case addresses = "addr_info"
        }

        var isUp: Bool { flags.contains("UP") }
        var hasCarrier: Bool { flags.contains("LOWER_UP") }
        var isLoopback: Bool { flags.contains("LOOPBACK") }

        /// Whether the kernel has drawn its conclusions from the carrier as it is: it does so a little later.
        var isSettled: Bool {
            !isUp || isLoopback || hasCarrier == ["UP", "UNKNOWN", "DORMANT"].contains(operstate)
        }
    }

    /// The answer to one lookup.
    enum Lookup: Equatable, Sendable {
        case route(Route)
        /// None, in `ip`'s words.
        case refused(String)
    }

    struct Route: Equatable, Sendable, Decodable {
        struct Via: Equatable, Sendable, Decodable {
            let host: String
        }

        let type: String?
        let dev: String?
        private var gateway: String?
        private var via: Via?
        private var prefsrc: String?
        private let from: String?

        /// The next hop, of either family.
        var nextHop: String? { gateway ?? via?.host }
        /// The source that was asked for; else the one that the kernel fills in.
        var source: String? { from.flatMap { $0 == "::" ? nil : $0 } ?? prefsrc }

        /// This one, as a table has it, as the kernel would answer with it in the place of `answer`: with some source,
        /// and for packets to many at once past its gateway.
        func standing(in answer: Route) -> Route {
            var route = self
            route.prefsrc = prefsrc ?? answer.source
            if ["multicast", "broadcast"].contains(answer.type) { (route.gateway, route.via) = (nil, nil) }
            return route
        }
    }

    /// A machine on a link.
    struct Neighbour: Hashable, Sendable {
        let address: String
        let link: String
    }

    /// What is known of a neighbour.
    enum Answering: Equatable, Sendable {
        case yes
        case no
    }

    let links: [String: Link]
    /// The neighbours of which is known whether they answer. Of the others the kernel knows nothing, or nothing yet.
    let neighbours: [Neighbour: Answering]
    let lookups: [Subject: Lookup]
    /// Other ways that the kernel may take, where there is reason to ask for them.
    var alternatives: [Subject: [Route]] = [:]

    /// Whether nothing is under way that the kernel will tell of in a moment.
    var isSettled: Bool { links.values.allSatisfy(\.isSettled) }
}

extension KernelWord {
    /// What is asked about.
    static let subjects =
        Subject.all + Subject.ofNetwork + (["b0"] + Subject.virtualLinks).map(Subject.route(by:))

    /// The commands that ask for it. The links first, so that `ip`, which remembers names, learns those of now.
    static let questions = ["address show", "neigh show nud all"] + subjects.map(\.lookup)

    /// For all of the commands.
    static let options = ["-json"]

    /// Reads the answers to ``questions``, which began at `start` of the batch; `nil` where the kernel was interrupted.
    init?(_ attempts: IPAttempts, from start: Int) throws {
        guard !attempts.wasInterrupted else { return nil }
        var documents = attempts.output.filter { $0.hasPrefix("[") }[...]
        let decoder = JSONDecoder()
        func next<T: Decodable>(_: T.Type, for command: String) throws -> T {
            guard let text = documents.popFirst() else {
                throw LabError.unexpectedOutput(command: command, output: attempts.output.joined(separator: "\n"))
            }
            return try decoder.decode(T.self, from: Data(text.utf8))
        }
        links = Dictionary(try next([Link].self, for: "ip address show").map { ($0.ifname, $0) }) { $1 }
        let entries = try next([NeighbourEntry].self, for: "ip neigh show")
        neighbours = Dictionary(
            entries.compactMap { entry in
                entry.answering.map { (Neighbour(address: entry.dst, link: entry.dev), $0) }
            }
        ) { $1 }
        var lookups: [Subject: Lookup] = [:]
        for (place, subject) in Self.subjects.enumerated() {
            if let words = attempts.failures[start + 2 + place] {
                lookups[subject] = .refused(words)
            } else {
                let routes = try next([Route].self, for: subject.lookup)
                lookups[subject] = routes.first.map(Lookup.route) ?? .refused("nothing at all")
            }
        }
        self.lookups = lookups
    }

    private struct NeighbourEntry: Decodable {
        let dst: String
        let dev: String
        /// Missing for an entry of which there is no more than the machine's role, as an advertisement makes.
        let state: Set<String>?

        var answering: Answering? {
            guard let state else { return nil }
            if state.contains("FAILED") { return .no }
            return state.isDisjoint(with: ["NONE", "INCOMPLETE"]) ? .yes : nil
        }
    }
}
