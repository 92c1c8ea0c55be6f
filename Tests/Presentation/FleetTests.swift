// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePresentation

/// What is written of the metrics elsewhere: the guide, and the rules for Prometheus.
@Suite struct FleetTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    private static func names(in text: String) -> Set<String> {
        Set(text.matches(of: /dialtone_[a-z_]*[a-z]/).map { String($0.0) })
    }

    /// The families, and the samples that a query names.
    private static let known: (families: Set<String>, samples: Set<String>) = {
        let texts = [MetricsText(MetricsTextTests.reply).text(.openMetrics), PushMetricsTests.text(.openMetrics)]
        let lines = texts.flatMap { $0.split(separator: "\n") }
        let families = lines.filter { $0.hasPrefix("# TYPE ") }.map { String($0.split(separator: " ")[2]) }
        let samples = lines.filter { !$0.hasPrefix("#") }.map { String($0.prefix { $0 != "{" && $0 != " " }) }
        return (Set(families), Set(samples))
    }()

    @Test(arguments: [
        "docs/metrics.md", "Fleet/dialtone.rules.yml", "Fleet/dialtone.rules.test.yml", "Fleet/dialtone.dashboard.json",
    ])
    func `only metrics that there are are named`(path: String) throws {
        let unknown = try Self.names(in: Self.text(path)).subtracting(Self.known.families).subtracting(
            Self.known.samples)
        #expect(unknown.isEmpty, "\(unknown.sorted())")
    }

    @Test func `the guide names all metrics`() throws {
        let named = try Self.names(in: Self.text("docs/metrics.md"))
        let missing = Self.known.families.filter { family in !named.contains { $0.hasPrefix(family) } }
        #expect(missing.isEmpty, "\(missing.sorted())")
    }

    /// The queries of the dashboard, with a value for the variable of the machine.
    private static func queries() throws -> [String] {
        let object = try JSONSerialization.jsonObject(with: Data(text("Fleet/dialtone.dashboard.json").utf8))
        let panels = (object as? [String: Any])?["panels"] as? [[String: Any]] ?? []
        return panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] }.compactMap { $0["expr"] as? String }
            .map { $0.replacing("$instance", with: ".*") }
    }

    @Test func `the dashboard asks only for records that the rules make`() throws {
        let recorded = try Self.text("Fleet/dialtone.rules.yml").matches(of: /record: (\S+)/).map { String($0.1) }
        let asked = try Set(Self.queries().flatMap { $0.matches(of: /dialtone:[a-z0-9_:]+/).map { String($0.0) } })
        #expect(!asked.isEmpty && asked.isSubset(of: recorded), "\(asked) of \(recorded)")
    }

    @Test(.enabled(if: Collectors.hasPromtool, "there is no promtool (Debian's prometheus)"))
    func `each query of the dashboard is one`() throws {
        let directory = TemporaryDirectory()
        for query in try Self.queries() {
            let rules = "groups: [{name: a, rules: [{record: 'a:b', expr: '\(query)'}]}]\n"
            try directory.write(rules, to: "rules.yml")
            let run = Program.run(Collectors.promtool, ["check", "rules", "\(directory.path)/rules.yml"])
            #expect(run.status == 0, "\(query)\n\(run.output)\(run.error)")
        }
    }

    @Test(.enabled(if: Collectors.hasPromtool, "there is no promtool (Debian's prometheus)"))
    func `the rules fire and resolve as their tests say`() {
        for arguments in [["check", "rules", "dialtone.rules.yml"], ["test", "rules", "dialtone.rules.test.yml"]] {
            let command = "cd \"$0\" && exec \(Collectors.promtool) \"$@\""
            let folder = Self.root.appending(path: "Fleet").path
            let run = Program.run("/bin/sh", ["-c", command, folder] + arguments)
            #expect(run.status == 0, "\(run.output)\(run.error)")
        }
    }
}
