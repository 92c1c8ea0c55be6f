// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI

/// Tells the changes that hooks are called with from what the agent says. It compares with what it knew before, so that
/// a change shows as well if its event was missed: while the agent was away, or in a gap.
package struct HookChanges {
    private struct Key: Hashable {
        let owner: Int?
        let name: String

        init(_ connection: ConnectionsAPI.Connection) {
            (owner, name) = (connection.owner, connection.name)
        }
    }

    private var path: NetworkAPI.Path?
    private var connections: [Key: ConnectionsAPI.Connection]?

    package init() {}

    /// What a reply of MonitorPath changes; nothing in the first one.
    package mutating func take(_ reply: NetworkAPI.MonitorPath.Reply) -> HookChange? {
        let (earlier, now) = (path, reply.path)
        // An agent that cannot ask the kernel knows nothing else than before.
        guard now.status != .unknown else { return nil }
        path = now
        guard let earlier else { return nil }
        let isUp = now.status == .satisfied
        if isUp != (earlier.status == .satisfied) {
            return HookChange(isUp ? .networkUp : .networkDown, .network(reply))
        }
        return now.comparable == earlier.comparable ? nil : HookChange(.networkChanged, .network(reply))
    }

    /// What a reply of Monitor changes; nothing in the first one.
    package mutating func take(_ reply: ConnectionsAPI.Monitor.Reply) -> [HookChange] {
        let isFirst = connections == nil
        var known = connections ?? [:]
        defer { connections = known }
        if reply.kind == .change {
            return reply.connections.flatMap { Self.changes(of: $0, reply.event, in: &known) }
        }
        let present = Set(reply.connections.map(Key.init))
        var changes: [HookChange] = []
        for (key, connection) in known where !present.contains(key) {
            known[key] = nil
            changes += Self.end(of: connection, nil)
        }
        for connection in reply.connections { changes += Self.changes(of: connection, nil, in: &known) }
        return isFirst ? [] : changes
    }

    private static func changes(
        of connection: ConnectionsAPI.Connection, _ event: ConnectionsAPI.Event?,
        in known: inout [Key: ConnectionsAPI.Connection]
    ) -> [HookChange] {
        let key = Key(connection)
        let earlier = known[key]
        if event?.kind == .closed {
            known[key] = nil
            return end(of: connection, event, wasUp: earlier?.isUp == true)
        }
        known[key] = connection
        var names: [HookChange.Name] = []
        if earlier == nil { names.append(.connectionOpened) }
        if connection.isUp != (earlier?.isUp ?? false) {
            names.append(connection.isUp ? .connectionUp : .connectionDown)
        }
        if connection.state == .failed, earlier?.state != .failed { names.append(.connectionFailed) }
        if let name = event?.ownName { names.append(name) }
        return names.map { HookChange($0, .connection(connection, event)) }
    }

    private static func end(
        of connection: ConnectionsAPI.Connection, _ event: ConnectionsAPI.Event?, wasUp: Bool? = nil
    ) -> [HookChange] {
        let names: [HookChange.Name] =
            wasUp ?? connection.isUp ? [.connectionDown, .connectionClosed] : [.connectionClosed]
        return names.map { HookChange($0, .connection(connection, event)) }
    }
}

extension ConnectionsAPI.Connection {
    /// Whether it has a socket that works.
    fileprivate var isUp: Bool { upSince != nil }
}

extension ConnectionsAPI.Event {
    /// The change that the event is by itself.
    fileprivate var ownName: HookChange.Name? {
        switch kind {
        case .sessionOpened: .sessionOpened
        case .openingFailed: .openingFailed
        case .certificateEnds: .certificateEnds
        case .wake: wake?.stage == .failed ? .wakeFailed : nil
        default: nil
        }
    }
}

extension NetworkAPI.Path {
    /// Without what changes although packets take the same path.
    fileprivate var comparable: NetworkAPI.Path {
        var path = self
        (path.generation, path.coherent) = (0, true)
        return path
    }
}
