// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtoneVarlink

/// Makes spans of what a history has, entry by entry.
struct TimelineDrawing {
    /// The spans of one row, of which the last may still go on.
    private struct Line {
        var spans: [Timeline.Span] = []
        var isOpen = false

        /// From now on something is the case; `nil` for nothing that is known.
        mutating func turn(
            _ kind: Timeline.Kind?, _ interface: String? = nil, because cause: String?, at time: Timestamp
        ) {
            if isOpen, let last = spans.last, last.kind == kind, last.interface == interface { return }
            close(at: time)
            guard let kind else { return }
            let cause = kind == .up ? nil : cause
            spans.append(.init(kind: kind, begin: time, end: time, interface: interface, cause: cause))
            isOpen = true
        }

        mutating func close(at time: Timestamp) {
            if isOpen { spans[spans.count - 1].end = time }
            isOpen = false
        }

        /// Nothing was known any more from an earlier time on.
        mutating func forget(from time: Timestamp) {
            if isOpen, let last = spans.last { close(at: max(time, last.begin)) }
        }
    }

    /// Between the agent's start and that of a connection, where the one is part of the other: ten thousand are opened
    /// in less.
    private static let longestTurn = Duration.seconds(5)

    private let reader: Reader
    /// The connections that are drawn; none for all.
    private let names: Set<String>
    private var networkLine = Line()
    private var lines: [String: Line] = [:]
    /// From when to when nobody knows whether the agent was there, for connections not heard of since.
    private var gaps: [String: (begin: Timestamp, end: Timestamp)] = [:]
    /// The last entry of the run: when it was, and how long the machine had been up.
    private var last: (time: Timestamp, uptime: Duration?)?
    private var hasEnded = false

    init(for reader: Reader, names: Set<String>) { (self.reader, self.names) = (reader, names) }

    /// The spans of the network.
    var network: [Timeline.Span] { networkLine.spans }
    /// The spans of each connection, by the name that the reader knows it by.
    var connections: [String: [Timeline.Span]] { lines.mapValues(\.spans) }

    mutating func add(_ entry: ConnectionsAPI.History.Reply, at time: Timestamp) {
        if let change = entry.network {
            let interface = change.status == .satisfied ? change.interface : nil
            networkLine.turn(Self.kind(change), interface, because: Self.cause(change), at: time)
        } else if let event = entry.event, names.isEmpty || names.contains(event.connection.name) {
            let name = reader.subject(event.connection)
            if let gap = gaps.removeValue(forKey: name), event.kind != .continued || !event.connection.state.hasFlow {
                lines[name]?.forget(from: gap.begin)
                // What is opened later is another life of it.
                let isSame = event.kind == .continued || time - gap.end <= Self.longestTurn
                if isSame { lines[name]?.turn(.retrying, because: AgentDeath.killed.rawValue, at: gap.end) }
            }
            lines[name, default: Line()].turn(Self.kind(event), because: event.reason, at: time)
        } else if let change = entry.agent {
            note(change, at: time, uptime: entry.uptime)
        }
        last = (time, entry.uptime)
    }

    /// Nothing is known of what comes later.
    mutating func end(at time: Timestamp) {
        for (name, gap) in gaps { lines[name]?.forget(from: gap.begin) }
        gaps = [:]
        networkLine.close(at: time)
        for name in lines.keys { lines[name]?.close(at: time) }
    }

    private mutating func note(_ change: ConnectionsAPI.AgentChange, at time: Timestamp, uptime: Duration?) {
        switch change.kind {
        case .ended:
            turnOff(at: time, because: "the agent was stopped")
            hasEnded = true
        case .started:
            // One that was killed had its connections go on, as they say then, unless the machine went with it.
            if !hasEnded, let last, AgentDeath(before: uptime, after: last.uptime) == .machineOff {
                turnOff(at: last.time, because: AgentDeath.machineOff.rawValue)
                hasEnded = true
            }
            if hasEnded {
                networkLine.turn(nil, because: nil, at: time)
                for name in lines.keys { lines[name]?.turn(nil, because: nil, at: time) }
            } else if let last {
                for name in lines.keys where lines[name]?.isOpen == true { gaps[name] = (last.time, time) }
            }
            hasEnded = false
        default: break
        }
    }

    private mutating func turnOff(at time: Timestamp, because cause: String) {
        networkLine.turn(.agentOff, because: cause, at: time)
        for name in lines.keys where lines[name]?.isOpen == true {
            lines[name]?.turn(.agentOff, because: cause, at: time)
        }
    }

    private static func kind(_ event: ConnectionsAPI.Event) -> Timeline.Kind? {
        switch event.connection.state {
        case .ready, .verifying: .up
        // At first it waits for what is known of the network. If that is nothing good, an event says so.
        case .waiting where event.kind == .opened: .retrying
        case .waiting where event.connection.cause == .settingsChanged: .retrying
        case .waiting: .noNetwork
        case .resolving, .connecting, .securing, .backingOff, .failed: .retrying
        case .closed: event.connection.cause == .agentEnded ? .agentOff : nil
        }
    }

    private static func kind(_ change: ConnectionsAPI.NetworkChange) -> Timeline.Kind? {
        switch change.status {
        case .satisfied: .up
        case .unsatisfied, .requiresConnection: .noNetwork
        case .unknown: nil
        }
    }

    private static func cause(_ change: ConnectionsAPI.NetworkChange) -> String {
        change.reason.map { PathText.reason($0, change.path) } ?? PathText.status(change.status)
    }
}
