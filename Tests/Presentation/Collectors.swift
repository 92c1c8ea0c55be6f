// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePresentation

/// What others read metrics with: Prometheus' own client library for Python, which is strict, and `promtool`.
enum Collectors {
    static let promtool = "/usr/bin/promtool"
    static let hasPromtool = FileManager.default.isExecutableFile(atPath: promtool)

    /// Reads a text, and fails the test with what a reader has against it.
    static func read(_ text: String, _ format: ExpositionFormat) async throws {
        let directory = TemporaryDirectory()
        let file = "\(directory.path)/metrics"
        try directory.write(text, to: "metrics")
        if let python = PyPI.python {
            let reader = format == .openMetrics ? "prometheus_client.openmetrics.parser" : "prometheus_client.parser"
            let script = """
                import sys
                from \(reader) import text_string_to_metric_families
                print(sum(len(family.samples) for family in text_string_to_metric_families(open(sys.argv[1]).read())))
                """
            let result = Program.run(python, ["-c", script, file])
            #expect(result.status == 0, "\(result.error)\n\(text)")
            let samples = text.split(separator: "\n").count { !$0.hasPrefix("#") }
            #expect(result.output == "\(samples)\n", "\(text)")
        } else {
            print("PyPI's prometheus_client could not be installed: nothing independent reads OpenMetrics")
        }
        // It reads the text format alone.
        guard format == .prometheus else { return }
        guard hasPromtool else {
            return print("there is no promtool (Debian's prometheus)")
        }
        let check = Program.run("/bin/sh", ["-c", "\(promtool) check metrics <\"$1\"", "sh", file])
        #expect(check.status == 0, "\(check.output)\(check.error)")
    }
}
