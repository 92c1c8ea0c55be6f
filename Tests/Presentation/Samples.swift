// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneVarlink

@testable import DialtonePresentation

/// Values to be shown, right in every field but those that a test is about.
enum Sample {
    static let plain = Style(hasColour: false)
    static let colour = Style(hasColour: true)

    /// The instant that counts as now: noon, so that no date changes near it.
    static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    static func interface(
        _ name: String = "wlan0", _ kind: NetworkAPI.InterfaceKind = .wifi
    ) -> NetworkAPI.Interface {
        .init(
            index: 3, name: name, kind: kind, up: true, carrier: true, addresses: ["192.168.1.23/24"],
            expensive: false, constrained: false)
    }

    static func path(
        _ status: NetworkAPI.Status = .satisfied, _ reason: NetworkAPI.Reason? = nil,
        interface: NetworkAPI.Interface? = interface(), gateway: String? = "192.168.1.1",
        _ change: (inout NetworkAPI.Path) -> Void = { _ in }
    ) -> NetworkAPI.Path {
        var path = NetworkAPI.Path(
            generation: 7, status: status, reason: reason, coherent: true, interface: interface, gateway: gateway,
            source: interface == nil ? nil : "192.168.1.23", isDirect: false, isLocalAddress: false,
            supportsIPv4: true, supportsIPv6: false, supportsDNS: true, expensive: false, constrained: false)
        change(&path)
        return path
    }

    static func connection(
        _ name: String = "office", _ state: ConnectionsAPI.State = .ready, since seconds: Int64 = 10,
        _ change: (inout ConnectionsAPI.Connection) -> Void = { _ in }
    ) -> ConnectionsAPI.Connection {
        var connection = ConnectionsAPI.Connection(
            name: name, remote: "tcp://sip.example.com:5060", epoch: 8, state: state, holder: .daemon, session: .none,
            since: noon.advanced(by: -seconds * 1000), attempt: 1)
        change(&connection)
        return connection
    }

    static func event(
        _ kind: ConnectionsAPI.EventKind, _ connection: ConnectionsAPI.Connection, reason: String? = nil,
        from previous: ConnectionsAPI.State? = nil, lasting duration: Duration? = nil
    ) -> ConnectionsAPI.Event {
        .init(
            sequence: 1, time: noon, kind: kind, connection: connection, reason: reason, previousState: previous,
            previousDuration: duration)
    }
}

extension Timestamp {
    func advanced(by milliseconds: Int64) -> Timestamp {
        Timestamp(milliseconds: self.milliseconds + milliseconds)
    }
}

/// Counts outages in a history that is made up, as the agent counts them in one that happens.
struct OutageCounter {
    private struct Life {
        let since: Timestamp
        let openedAt: Duration
        var isUp = false
        var count = 0
        var down = Duration.zero
        var outageSince: Duration?

        func told(at now: Duration) -> ConnectionsAPI.OutageCount {
            .init(
                since: since, count: count, down: down + (outageSince.map { now - $0 } ?? .zero),
                isUnderWay: outageSince != nil)
        }
    }

    private var lives: [String: Life] = [:]

    static func counted(_ entries: [ConnectionsAPI.History.Reply]) -> [ConnectionsAPI.History.Reply] {
        var counter = OutageCounter()
        return entries.map { counter.counted($0) }
    }

    private mutating func counted(_ entry: ConnectionsAPI.History.Reply) -> ConnectionsAPI.History.Reply {
        guard let event = entry.event, let now = entry.uptime else { return entry }
        let (name, state) = (event.connection.name, event.connection.state)
        var life = Life(since: event.time, openedAt: now)
        if event.kind != .opened, let before = lives[name] { life = before }
        let wasUp = life.isUp
        life.isUp = state.hasFlow
        if life.isUp || state == .closed {
            life.down += life.outageSince.take().map { now - $0 } ?? .zero
        } else if life.outageSince == nil, event.kind != .opened, wasUp || !state.isDialling {
            life.count += 1
            life.outageSince = wasUp || event.kind == .continued ? now : life.openedAt
        }
        lives[name] = life
        var entry = entry
        entry.outages = life.told(at: now)
        return entry
    }
}

extension ConnectionsAPI.State {
    fileprivate var isDialling: Bool { self == .resolving || self == .connecting || self == .securing }
}
