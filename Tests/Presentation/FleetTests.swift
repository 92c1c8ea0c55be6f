// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePresentation

/// What is written of the metrics elsewhere: the guide, and the rules for Prometheus.
@Suite("Metrics of a fleet") struct FleetTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    private static func names(in text: String) -> Set<String> {
        Set(text.matches(of: /dialtone_[a-z_]*[a-z]/).map { String($0.0) })
    }

    /// The families, and the samples that a query names.
    private static let known: (families: Set<String>, samples: Set<String>) = {
        let lines = MetricsText(MetricsTextTests.reply).text(.openMetrics).split(separator: "\n")
        let families = lines.filter { $0.hasPrefix("# TYPE ") }.map { String($0.split(separator: " ")[2]) }
        let samples = lines.filter { !$0.hasPrefix("#") }.map { String($0.prefix { $0 != "{" && $0 != " " }) }
        return (Set(families), Set(samples))
    }()

    @Test(arguments: ["docs/metrics.md", "Fleet/dialtone.rules.yml", "Fleet/dialtone.rules.test.yml"])
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
