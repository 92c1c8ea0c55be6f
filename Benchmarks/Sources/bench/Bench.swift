// SPDX-License-Identifier: Apache-2.0

internal import LabSupport

/// Measures the agent and prints the table; README.md says how to read it.
@main
enum Bench {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.first == LatencyProbe.option {
                try await LatencyProbe.runHere(Array(arguments.dropFirst()))
            } else if arguments.count != 1 {
                Output.fail("usage: scripts/in-lab bench PATH-OF-DIALTONED", status: 64)
            } else if let obstacle = LabSandbox.obstacle {
                Output.fail("no network to measure in: \(obstacle)", status: 69)
            } else {
                try await measure(arguments[0])
            }
        } catch {
            Output.fail("\(error)", status: 1)
        }
    }

    private static func measure(_ daemon: String) async throws {
        let load = Machine.load
        var report = Report()
        try await addReactions(to: &report, of: daemon)
        try await addConnections(to: &report, of: daemon)
        try await addIdle(to: &report, of: daemon)
        addOthers(to: &report)
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

    private static func addReactions(to report: inout Report, of daemon: String) async throws {
        let home = try await Namespace.create("the probes")
        for (what, toReach, probe) in [
            ("kernel event to callback, one host", "+50 µs", LatencyProbe.callback(hosts: 1)),
            ("  peer: ip monitor to its reader, no verdict", "", .ipMonitor),
            ("kernel event to the last callback of 100 hosts", "+500 µs", .callback(hosts: 100)),
            ("kernel event to a subscriber's read", "+150 µs", .subscriber(daemon: daemon)),
        ] {
            Output.note(what)
            report.add(what, toReach: toReach, try await probe.runApart(in: home))
        }
    }

    private static func addConnections(to report: inout Report, of daemon: String) async throws {
        for (what, toReach, probe) in [
            ("route usable again to SYN at the server", "5 ms", DialProbe.measure),
            ("first uplink dies, second is there: to accept", "50 ms", FailoverProbe.measure),
        ] {
            Output.note(what)
            report.add(what, toReach: toReach, try await probe(daemon))
        }
        report.add("  until what the server sends arrives again", toReach: "50 ms", "not yet (issue 5)")
        report.add("better path appears, old one still good", toReach: "no gap", "not yet (issue 4)")
    }

    private static func addIdle(to report: inout Report, of daemon: String) async throws {
        Output.note("daemons at rest, and those beside them")
        let (rests, peer) = try await IdleProbe.measure(daemon)
        for rest in rests {
            let calls = rest.systemCalls.map { "\(IdleProbe.aMinute($0, of: IdleProbe.traced))" } ?? "no strace"
            report.add(
                "idle, \(rest.connections) connections: calls, switches a minute", toReach: "0, 0",
                "\(calls), \(IdleProbe.aMinute(rest.switches, of: IdleProbe.window))", n: IdleProbe.windows)
        }
        if let peer {
            report.add(
                "  peer: systemd-networkd, switches a minute",
                "\(IdleProbe.aMinute(peer.switches, of: IdleProbe.window))",
                n: IdleProbe.windows)
        } else {
            report.add("  peer: systemd-networkd, switches a minute", "15 (not of this run)")
        }
        for rest in rests {
            report.add(
                "idle, \(rest.connections) connections: resident, private", toReach: "9 MB, 4 MB", rest.memory.text)
        }
        report.add("  peer: systemd-networkd", peer?.memory.text ?? "8.9 MB resident (not of this run)")
        if let none = rests.first, let most = rests.last, most.connections > 0 {
            report.add(
                "  a connection more: resident, private", toReach: "2 KB parked",
                most.memory.growth(from: none.memory, over: most.connections))
        }
    }

    private static func addOthers(to report: inout Report) {
        for (what, toReach, reason) in [
            ("keepalive wakes an hour for N connections", "the optimum", "not yet (issue 4)"),
            ("a million routes, 10,000 changes a second", "10 % of a core", "not yet (issue 3)"),
            ("verdicts under random changes", "100 % right", "not yet (issue 3)"),
            ("simulated bad networks", "a million", "make test"),
            ("kill -9 of the daemon", "nothing dropped", "not yet (issue 5)"),
            ("a client that floods or does not read", "unnoticed", "make test"),
        ] { report.add(what, toReach: toReach, reason) }
    }
}
