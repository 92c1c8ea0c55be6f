// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtoneVarlink

/// Connections in words.
enum ConnectionText {
    /// A state as people write it.
    static func state(_ state: ConnectionsAPI.State) -> String {
        switch state {
        case .backingOff: "backing off"
        case .waiting, .resolving, .connecting, .securing, .ready, .verifying, .failed, .closed: state.rawValue
        }
    }

    /// What a connection is doing now, and whether it is of use.
    static func standing(_ connection: ConnectionsAPI.Connection) -> String {
        if isUnused(connection) { return "connected, not logged in" }
        return isLoggingIn(connection) ? "logging in" : state(connection.state)
    }

    /// Whether it is connected, and the agent logs in on it for its client.
    private static func isLoggingIn(_ connection: ConnectionsAPI.Connection) -> Bool {
        connection.state == .ready && connection.session == .opening
    }

    /// Whether it is connected, and its server serves nobody on it.
    private static func isUnused(_ connection: ConnectionsAPI.Connection) -> Bool {
        connection.state == .ready && connection.lacksLogin == true
    }

    /// For how long it has been up or down.
    static func duration(_ connection: ConnectionsAPI.Connection, now: Timestamp) -> String {
        if let since = connection.upSince, !isLoggingIn(connection) { return "up \((now - since).short)" }
        if let since = connection.downSince { return "down \((now - since).short)" }
        return (now - connection.since).short
    }

    /// Who reads and writes its socket.
    static func holder(_ connection: ConnectionsAPI.Connection) -> String {
        guard connection.state.hasFlow else { return "–" }
        return switch connection.holder {
        case .daemon: "agent"
        case .client: "client"
        }
    }

    /// The tone of a connection's state.
    static func tone(_ connection: ConnectionsAPI.Connection) -> Style.Tone {
        switch connection.state {
        case .ready: isUnused(connection) || isLoggingIn(connection) ? .warning : .good
        case .waiting, .resolving, .connecting, .securing, .verifying, .backingOff: .warning
        case .failed, .closed: .bad
        }
    }

    /// How long before it the end of a certificate is shown: a week, as its event is told.
    private static let noticeTime = Duration.seconds(7 * 86_400)

    /// What stands behind the columns: why it is not ready, and when it is tried again; or what to know of one that is.
    static func remark(_ connection: ConnectionsAPI.Connection, now: Timestamp) -> String {
        var parts: [String] = []
        if connection.state == .ready {
            if isUnused(connection) { parts.append("needs an opening, or a client that takes it and logs in") }
            if connection.holder == .client { parts.append("a client has the socket") }
            if let count = connection.unreadBytes, count > 0 { parts.append("\(count) bytes unread") }
            if connection.wake != nil {
                parts.append(connection.wakeFailed == true ? "no client could be woken" : "waking its client")
            }
            if let avoided = connection.avoidedInterface { parts.append("nothing gets through over \(avoided)") }
            // It is connected, and the login was refused.
            if let failure = connection.lastFailure { parts.append(failure) }
            if connection.security?.assurance == .unverified { parts.append("TLS unverified") }
            if let end = connection.security?.certificateEndsAt, end - now < noticeTime {
                let whose = connection.security?.isOwnCertificate == true ? "its" : "the server's"
                parts.append("\(whose) certificate \(ending(end, now: now))")
            }
            if connection.endsWithAgent == true { parts.append("no place in the store, ends with the agent") }
            return parts.joined(separator: ", ")
        }
        if let reason = connection.reason { parts.append(reason) }
        if let failure = connection.lastFailure, failure != connection.reason {
            parts.append("last failure: \(failure)")
        }
        if let next = connection.nextAttemptAt {
            parts.append("\(ordinal(connection.attempt)) try in \((next - now).short)")
        }
        return parts.joined(separator: ", ")
    }

    /// `ends in 3 d`, or `ended 3 d ago`: a socket may outlive its certificate.
    static func ending(_ end: Timestamp, now: Timestamp) -> String {
        end > now ? "ends in \((end - now).short)" : "ended \((now - end).short) ago"
    }

    /// `1st`, `2nd`, `3rd`, `4th`, `11th`.
    static func ordinal(_ number: Int) -> String {
        let suffix =
            switch (number % 10, number % 100) {
            case (_, 11...13): "th"
            case (1, _): "st"
            case (2, _): "nd"
            case (3, _): "rd"
            default: "th"
            }
        return "\(number)\(suffix)"
    }
}
