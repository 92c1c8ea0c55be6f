// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation

/// Where the kernel itself has a choice, and may choose anew for every packet: routes that are equal in all that ranks
/// them. IPv6 goes through equal ones in turns when a gateway does not answer, and both families weigh what they know
/// of the gateways as neighbours (`find_rr_leaf` in net/ipv6/route.c, `fib_select_default` in
/// net/ipv4/fib_semantics.c).
///
/// Among the next hops of one route, or of a group, the packet's addresses decide, each time the same: no choice.
struct Alternatives: Sendable {
    /// The ways that the kernel may take for a subject.
    private(set) var ways: [Subject: [KernelWord.Route]] = [:]

    /// Those of `subjects`, as the tables on `host` are now.
    init(of subjects: [Subject], on host: Namespace) async throws {
        let matches = try await Self.matches(of: subjects, on: host)
        var tables: [Table: [Entry]] = [:]
        for (subject, match) in matches {
            let table = Table(isV6: subject.isV6, name: match.table ?? "main")
            if tables[table] == nil { tables[table] = try await table.entries(on: host) }
            let equals = tables[table, default: []].filter { $0.ranks(like: match) }
            ways[subject] = equals.count > 1 ? equals.flatMap { $0.ways(isV6: subject.isV6) } : []
        }
    }

    /// The entries of the tables that the lookups end at.
    private static func matches(of subjects: [Subject], on host: Namespace) async throws -> [Subject: Entry] {
        let questions = subjects.map { $0.lookup.replacing("route get", with: "route get fibmatch") }
        let attempts = try await host.ip(attempting: questions, options: options)
        var documents = attempts.output.filter { $0.hasPrefix("[") }[...]
        var matches: [Subject: Entry] = [:]
        for (place, subject) in subjects.enumerated() where attempts.failures[place] == nil {
            guard let text = documents.popFirst() else { break }
            matches[subject] = try JSONDecoder().decode([Entry].self, from: Data(text.utf8)).first
        }
        return matches
    }

    private static let options = ["-details", "-json"]

    private struct Table: Hashable {
        let isV6: Bool
        let name: String

        func entries(on host: Namespace) async throws -> [Entry] {
            let family = isV6 ? "-6" : "-4"
            let output = try await host.command(["ip", family] + options + ["route", "show", "table", name])
            return try JSONDecoder().decode([Entry].self, from: Data(output.utf8))
        }
    }

    /// A route as it stands in a table.
    private struct Entry: Decodable {
        let dst: String?
        let table: String?
        let metric: Int?
        let tos: String?
        private let flags: Set<String>?
        private let nexthops: [Hop]?
        private let own: KernelWord.Route

        private struct Hop: Decodable {
            let flags: Set<String>
            let way: KernelWord.Route

            init(from decoder: any Decoder) throws {
                flags = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Set.self, forKey: .flags) ?? []
                way = try KernelWord.Route(from: decoder)
            }
        }

        private enum CodingKeys: String, CodingKey {
            case dst, table, metric, tos, flags, nexthops
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            dst = try container.decodeIfPresent(String.self, forKey: .dst)
            table = try container.decodeIfPresent(String.self, forKey: .table)
            metric = try container.decodeIfPresent(Int.self, forKey: .metric)
            tos = try container.decodeIfPresent(String.self, forKey: .tos)
            flags = try container.decodeIfPresent(Set.self, forKey: .flags)
            nexthops = try container.decodeIfPresent([Hop].self, forKey: .nexthops)
            own = try KernelWord.Route(from: decoder)
        }

        func ranks(like other: Entry) -> Bool { dst == other.dst && metric == other.metric && tos == other.tos }

        /// Its next hops, but those that the kernel leaves out. Among equal defaults of IPv4 it leaves out none: that
        /// choice looks at the gateways, and not at the links that lead to them.
        func ways(isV6: Bool) -> [KernelWord.Route] {
            let all = nexthops?.map { ($0.way, $0.flags) } ?? [(own, flags ?? [])]
            if !isV6, dst == "default" { return all.map(\.0) }
            return all.filter { $0.1.isDisjoint(with: ["dead", "linkdown"]) }.map(\.0)
        }
    }
}
