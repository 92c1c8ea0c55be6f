// SPDX-License-Identifier: Apache-2.0

internal import LabSupport

/// What can be measured by itself; the raw values are its names on the command line.
enum Row: String, CaseIterable {
    case callback
    case ipMonitor = "ip-monitor"
    case callback100 = "callback-100"
    case callback1000 = "callback-1000"
    case subscriber
    case dial
    case failover
    case load
    case idle

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }

    /// Measures it and adds its lines.
    func add(to report: inout Report, _ daemon: String, in home: Namespace) async throws {
        switch self {
        case .callback:
            try await Self.add("kernel event to callback, one host", "+50 µs", .callback(hosts: 1), to: &report, home)
        case .ipMonitor:
            try await Self.add("  peer: ip monitor to its reader, no verdict", "", .ipMonitor, to: &report, home)
        case .callback100:
            try await Self.add(
                "kernel event to the last callback of 100 hosts", "+500 µs", .callback(hosts: 100), to: &report, home)
        case .callback1000:
            try await Self.add(
                "kernel event to the last callback of 1,000 hosts", "", .callback(hosts: 1000), to: &report, home)
        case .subscriber:
            try await Self.add(
                "kernel event to a subscriber's read", "+150 µs", .subscriber(daemon: daemon), to: &report, home)
        case .dial:
            report.add("route usable again to SYN at the server", toReach: "5 ms", try await DialProbe.measure(daemon))
        case .failover:
            report.add(
                "first uplink dies, second is there: to accept", toReach: "50 ms",
                try await FailoverProbe.measure(daemon))
            report.add("  until what the server sends arrives again", toReach: "50 ms", "not yet (issue 5)")
            report.add("better path appears, old one still good", toReach: "no gap", "not yet (issue 4)")
        case .load: report.add(load: try await LoadProbe.runApart(daemon, in: home))
        case .idle: report.add(idle: try await IdleProbe.measure(daemon))
        }
    }

    private static func add(
        _ what: String, _ toReach: String, _ probe: LatencyProbe, to report: inout Report, _ home: Namespace
    ) async throws {
        report.add(what, toReach: toReach, try await probe.runApart(in: home))
    }
}

extension Report {
    fileprivate mutating func add(load churns: [LoadProbe.Churn: LoadProbe.Figures]) {
        func share(_ thousandths: Int) -> String { "\(decimal(Double(thousandths) / 10)) % of a core" }
        for churn in LoadProbe.Churn.allCases {
            guard let figures = churns[churn] else { continue }
            let what =
                switch churn {
                case .elsewhere: "a million routes, 10,000 changes a second"
                case .watched: "the same, all of the watched host's route"
                }
            add(what, toReach: "under 10 %", share(figures.share), n: "\(figures.rate) a second")
            add("  resident before, after", toReach: "flat", figures.memoryText)
            let missed = figures.missed > 0 ? ", \(figures.missed) missed" : ""
            add(
                "  last change to the verdict at a subscriber", toReach: "100 ms", timeText(figures.settling.median),
                p99: timeText(figures.settling.max()), n: "\(figures.settling.count)\(missed)")
            add("  peer: ip monitor, no verdict", share(figures.peerShare))
        }
    }

    fileprivate mutating func add(idle: (rests: [IdleProbe.Rest], peer: IdleProbe.Rest?)) {
        for rest in idle.rests {
            let calls = rest.systemCalls.map { "\(IdleProbe.aMinute($0, of: IdleProbe.traced))" } ?? "no strace"
            add(
                "idle, \(rest.connections) connections: calls, switches a minute", toReach: "0, 0",
                "\(calls), \(IdleProbe.aMinute(rest.switches, of: IdleProbe.window))", n: IdleProbe.windows)
        }
        let peer = "  peer: systemd-networkd, switches a minute"
        if let rest = idle.peer {
            add(peer, "\(IdleProbe.aMinute(rest.switches, of: IdleProbe.window))", n: IdleProbe.windows)
        } else {
            add(peer, "15 (not of this run)")
        }
        for rest in idle.rests {
            add("idle, \(rest.connections) connections: resident, private", toReach: "9 MB, 4 MB", rest.memory.text)
        }
        add("  peer: systemd-networkd", idle.peer?.memory.text ?? "8.9 MB resident (not of this run)")
        if let none = idle.rests.first, let most = idle.rests.last, most.connections > 0 {
            add(
                "  a connection more: resident, private", toReach: "2 KB parked",
                most.memory.growth(from: none.memory, over: most.connections))
        }
    }

    /// What is proven by tests, and what cannot be measured yet.
    mutating func addWhatIsElsewhere() {
        for (what, toReach, source) in [
            ("keepalive wakes an hour for N connections", "the optimum", "not yet (issue 4)"),
            ("verdicts under random changes", "100 % right", "make soak"),
            ("simulated bad networks", "a million", "make test"),
            ("kill -9 of the daemon", "nothing dropped", "not yet (issue 5)"),
            ("a client that floods or does not read", "unnoticed", "make test"),
        ] { add(what, toReach: toReach, source) }
    }
}

extension LoadProbe.Figures {
    fileprivate var memoryText: String {
        "\(decimal(Double(memory.before) / 1024)) MB, \(decimal(Double(memory.after) / 1024)) MB"
    }
}
