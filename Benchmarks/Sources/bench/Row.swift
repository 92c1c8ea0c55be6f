// SPDX-License-Identifier: Apache-2.0

internal import DialtoneLabSupport

/// What can be measured by itself; the raw values are its names on the command line.
enum Row: String, CaseIterable {
    case callback
    case ipMonitor = "ip-monitor"
    case callback100 = "callback-100"
    case callback1000 = "callback-1000"
    case subscriber
    case dial
    case failover
    case roam
    case keepalive
    case load
    case idle
    case memory
    case many
    case wake
    case kill
    case flood
    case neighbour
    case relay
    case push
    case size

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
                "first uplink dies, second is there: to the server's accept", toReach: "",
                try await FailoverProbe.measure(daemon, until: .accepted))
            report.add(
                "  until what the server sends is read again", toReach: "50 ms",
                try await FailoverProbe.measure(daemon, until: .read))
        case .roam: report.add(roam: try await RoamProbe.measure(daemon))
        case .keepalive: report.add(keepalive: try KeepaliveWakes.compute())
        case .load: report.add(load: try await LoadProbe.runApart(daemon, in: home))
        case .idle: report.add(idle: try await IdleProbe.measure(daemon))
        case .memory: report.add(memory: try await MemoryProbe.measure(daemon))
        case .wake: report.add(wakes: try await WakeProbe.measure(daemon))
        case .kill: report.add(kills: try await KillProbe.measure(daemon))
        case .flood: report.add(floods: try await FloodProbe.runApart(daemon, in: home))
        case .neighbour: report.add(neighbours: try await NeighbourProbe.measure(daemon))
        case .relay: report.add(relay: try await RelayProbe.measure(daemon))
        case .push: report.add(push: try await PushProbe.measure(daemon))
        case .size:
            let size = "\(decimal(Double(try SizeProbe.measure(daemon)) / 1_048_576)) MiB"
            report.add("size of dialtoned, stripped", toReach: "10 MB", size)
        case .many: report.add(many: try await ManyProbe.measure(daemon))
        }
    }

    private static func add(
        _ what: String, _ toReach: String, _ probe: LatencyProbe, to report: inout Report, _ home: Namespace
    ) async throws {
        report.add(what, toReach: toReach, try await probe.runApart(in: home))
    }
}
