// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneVarlink

/// A change that hooks are called with.
package struct HookChange: Sendable {
    /// What changed: the first argument of a hook. dialtone-hooks(8) explains each.
    package enum Name: String, CaseIterable, Sendable {
        case networkUp = "network-up"
        case networkDown = "network-down"
        case networkChanged = "network-changed"
        case connectionOpened = "connection-opened"
        case connectionUp = "connection-up"
        case connectionDown = "connection-down"
        case connectionFailed = "connection-failed"
        case connectionClosed = "connection-closed"
        case sessionOpened = "session-opened"
        case openingFailed = "opening-failed"
        case certificateEnds = "certificate-ends"
        case wakeFailed = "wake-failed"
    }

    package enum Subject: Sendable {
        case network(NetworkAPI.MonitorPath.Reply)
        /// A connection after the change; with the event, unless the agent no longer had it.
        case connection(ConnectionsAPI.Connection, ConnectionsAPI.Event?)
    }

    package let name: Name
    package let subject: Subject

    package init(_ name: Name, _ subject: Subject) {
        (self.name, self.subject) = (name, subject)
    }

    /// What a hook finds in its environment.
    package var variables: [String: String] {
        var all: [String: String?] = ["DIALTONE_CHANGE": name.rawValue]
        switch subject {
        case .network(let reply):
            let path = reply.path
            all["DIALTONE_STATUS"] = path.status.rawValue
            all["DIALTONE_REASON"] = path.reason?.rawValue
            all["DIALTONE_INTERFACE"] = path.interface?.name
            all["DIALTONE_GATEWAY"] = path.gateway
            all["DIALTONE_SOURCE"] = path.source
            // Unknown of a change that happened while the agent was away.
            all["DIALTONE_CHANGES"] = reply.changes.isEmpty ? nil : reply.changes.joined(separator: " ")
        case .connection(let connection, let event):
            all["DIALTONE_NAME"] = connection.name
            all["DIALTONE_OWNER"] = connection.owner.map { "\($0)" }
            all["DIALTONE_REMOTE"] = connection.remote
            all["DIALTONE_STATE"] = connection.state.rawValue
            all["DIALTONE_CAUSE"] = (event.map(\.cause) ?? connection.cause)?.rawValue
            all["DIALTONE_REASON"] = event.map(\.reason) ?? connection.reason
            all["DIALTONE_EPOCH"] = "\(connection.epoch)"
            all["DIALTONE_INTERFACE"] = connection.interface
        }
        return all.compactMapValues { $0 }
    }

    /// What a hook reads from its standard input: an object with the member "change", and with "network" (a reply of
    /// MonitorPath), or with "connection" and "event" as the interface has them.
    package var json: [UInt8] {
        let members: [(String, [UInt8])] =
            switch subject {
            case .network(let reply): [("network", reply.json)]
            case .connection(let connection, let event):
                [("connection", connection.json)] + (event.map { [("event", $0.json)] } ?? [])
            }
        var text = Array(#"{"change":"\#(name.rawValue)""#.utf8)
        for (member, value) in members { text += Array(#","\#(member)":"#.utf8) + value }
        return text + Array("}\n".utf8)
    }
}
