// SPDX-License-Identifier: Apache-2.0

internal import DialtoneLabSupport
internal import Glibc

/// Measures the agent and prints the table; README.md says how to read it.
@main
enum Bench {
    static func main() async {
        // A peer that hangs up is an error of the call, as everywhere.
        signal(SIGPIPE, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case nil:
                Output.fail("usage: scripts/in-lab bench PATH-OF-DIALTONED [ROW...]; rows: \(Row.names)", status: 64)
            case LatencyProbe.option: try await LatencyProbe.runHere(Array(arguments.dropFirst()))
            case FloodProbe.option: try await FloodProbe.runHere(Array(arguments.dropFirst()))
            case LoadProbe.option: try LoadProbe.runHere(Array(arguments.dropFirst()))
            case let daemon?:
                try await measure(daemon, try rows(named: arguments.dropFirst()))
            }
        } catch {
            Output.fail("\(error)", status: 1)
        }
    }

    /// All where none is named.
    private static func rows(named names: ArraySlice<String>) throws -> [Row] {
        let rows = try names.map { name in
            guard let row = Row(rawValue: name) else { throw UnknownRow(name: name) }
            return row
        }
        return rows.isEmpty ? Row.allCases : rows
    }

    private struct UnknownRow: Error, CustomStringConvertible {
        let name: String

        var description: String { "no row is called \"\(name)\"; there are: \(Row.names)" }
    }

    private static func measure(_ daemon: String, _ rows: [Row]) async throws {
        if let obstacle = LabSandbox.obstacle { Output.fail("no network to measure in: \(obstacle)", status: 69) }
        let load = Machine.load
        var report = Report()
        let home = try await Namespace.create("the probes")
        for row in rows {
            Output.note(row.rawValue)
            try await row.add(to: &report, daemon, in: home)
        }
        if rows == Row.allCases { report.addWhatIsElsewhere() }
        Output.write(
            """
            Linux \(Machine.kernel), \(Machine.processors) processors; \
            load \(load) at the start, \(Machine.load) at the end.

            """)
        for line in report.lines { Output.write(line) }
        Output.write(
            """

            Times: how much later than the wake-up of a bare C netlink reader at the same event (median, 99th \
            percentile);
            BARE READER: from before the system call that made the event to that wake-up (median); RATIO: both \
            from there.
            On a machine that does other work as well, only figures of one run compare.
            """)
    }
}
