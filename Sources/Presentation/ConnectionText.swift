// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import NetworkPath
internal import Varlink

/// Connections in words.
enum ConnectionText {
    /// A state as people write it.
    static func state(_ state: ConnectionsAPI.State) -> String {
        switch state {
        case .backingOff: "backing off"
        case .waiting, .resolving, .connecting, .securing, .ready, .verifying, .failed, .closed: state.rawValue
        }
    }

    /// The tone of a connection's state.
    static func tone(_ connection: ConnectionsAPI.Connection) -> Style.Tone {
        switch connection.state {
        case .ready: .good
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
            if let count = connection.unreadBytes, count > 0 { parts.append("\(count) bytes unread") }
            if connection.wake != nil {
                parts.append(connection.wakeFailed == true ? "its client could not be woken" : "waking its client")
            }
            if let avoided = connection.avoidedInterface { parts.append("nothing gets through over \(avoided)") }
            // It is connected, and the login was refused.
            if let failure = connection.lastFailure { parts.append(failure) }
            if connection.security?.assurance == .unverified { parts.append("TLS unverified") }
            if let end = connection.security?.certificateEndsAt, end - now < noticeTime {
                let whose = connection.security?.isOwnCertificate == true ? "its" : "the server's"
                parts.append("\(whose) certificate ends in \((end - now).short)")
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
