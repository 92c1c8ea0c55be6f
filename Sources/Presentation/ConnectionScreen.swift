// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneNetworkPath
package import DialtoneVarlink

/// `dialtone status NAME`: all that is known of one connection.
package struct ConnectionScreen: Sendable {
    private let connection: ConnectionsAPI.Connection
    private let events: [WatchLine]
    private let now: Timestamp
    private let reader: Reader
    private let localTime: LocalTime

    /// What is known at `now`.
    ///
    /// - Parameter events: the last that happened to it, the oldest first.
    package init(
        _ connection: ConnectionsAPI.Connection, events: [ConnectionsAPI.Event], now: Timestamp,
        for reader: Reader = Reader(), _ localTime: LocalTime
    ) {
        self.connection = connection
        self.events = events.map { WatchLine($0, for: reader) }
        self.now = now
        self.reader = reader
        self.localTime = localTime
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let state = style.paint(ConnectionText.standing(connection), ConnectionText.tone(connection))
        let remark = ConnectionText.remark(connection, now: now)
        var table = Table()
        for (heading, text) in facts { table.add([.init("  \(heading)", .faint), .init(text)]) }
        var lines = [style.paint(connection.name, .strong) + "  " + state]
        lines += remark.wrapped(to: style.width ?? .max, indent: 2)
        lines += [""] + table.lines(style)
        guard !events.isEmpty else { return lines }
        lines += ["", style.paint("  last events", .faint)]
        let narrower = Style(hasColour: style.hasColour, width: style.width.map { $0 - 2 })
        var day = localTime.day(now)
        for event in events {
            let today = localTime.day(event.time)
            if today != day { lines.append("  " + style.paint(today, .strong)) }
            day = today
            lines += event.linesWithoutSubject(narrower, clock: localTime.clock).map { "  \($0)" }
        }
        return lines
    }

    /// What there is to say of it, each with its heading.
    private var facts: [(String, String)] {
        let all: [(String, String?)] = [
            ("remote", remote), ("over", interface), ("since", since),
            ("last heard from", connection.lastProof.map { "\((now - $0).short) ago" }),
            ("socket", socket), ("session", session),
            ("keepalive", connection.keepaliveInterval.map { "every \($0.short)" }), ("TLS", security),
            ("owner", connection.owner == nil ? nil : reader.owner(connection)), ("wake", wake),
            ("unread", connection.unreadBytes.flatMap { $0 > 0 ? "\($0) bytes" : nil }),
            ("last failure", connection.lastFailure),
            ("after a restart", connection.endsWithAgent == true ? "dialled again: no place in the store" : nil),
        ]
        return all.compactMap { heading, text in text.map { (heading, $0) } }
    }

    private var remote: String {
        connection.remote + (connection.remoteAddress.map { " (\($0))" } ?? "")
    }

    private var interface: String? {
        guard let interface = connection.interface else { return nil }
        let source = connection.localAddress.map { " from \($0)" } ?? ""
        return interface + source + (connection.avoidedInterface.map { ", around \($0)" } ?? "")
    }

    private var since: String {
        let time = connection.upSince ?? connection.downSince ?? connection.since
        let instant = "\(localTime.day(time)) \(localTime.clock(time))"
        return "\(instant), \(ConnectionText.duration(connection, now: now))"
    }

    private var socket: String {
        guard connection.state.hasFlow else {
            return connection.epoch > 0 ? "none; the last one was number \(connection.epoch)" : "none so far"
        }
        return switch connection.holder {
        case .daemon: "number \(connection.epoch), held by the agent"
        case .client: "number \(connection.epoch), held by a client"
        }
    }

    private var session: String? {
        guard connection.state.hasFlow else { return nil }
        return switch connection.session {
        case .none: "not logged in"
        case .opening: "logging in"
        case .open: "logged in"
        case .unknown: "as the client left it"
        }
    }

    private var security: String? {
        guard let security = connection.security else { return nil }
        let assurance =
            switch security.assurance {
            case .verified: "certificate verified"
            case .pinned: "certificate pinned"
            case .unverified: "certificate not verified"
            }
        let whose = security.isOwnCertificate == true ? "its own certificate " : ""
        let end = security.certificateEndsAt.map { ", \(whose)\(ConnectionText.ending($0, now: now))" } ?? ""
        return "\(security.version), \(security.cipher), \(assurance)\(end)"
    }

    private var wake: String? {
        guard let number = connection.wake else { return nil }
        return connection.wakeFailed == true
            ? "number \(number): no client could be woken" : "number \(number): waking the client"
    }
}
