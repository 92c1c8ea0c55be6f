// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNotifications
internal import DialtonePlatform
internal import DialtoneVarlink

extension WatchedConnection {
    /// A certificate that ends sooner is worth a word, as for the agent's own event.
    private static let noticeOfCertificate = Duration.seconds(7 * 86_400)

    /// What the agent tells of a connection. All that others had their word in is made printable.
    init(_ connection: ConnectionsAPI.Connection, _ event: ConnectionsAPI.Event?, at now: Timestamp, _ uptime: Duration)
    {
        self.init(name: connection.name.printable)
        downSince = connection.downSince.map { uptime - (now - $0) }
        // Without a network nothing is tried: what the last try failed of is no longer why.
        failure =
            (connection.state == .waiting
            ? connection.reason ?? connection.lastFailure : connection.lastFailure ?? connection.reason)?.printable
        if event?.kind == .openingFailed {
            login = .refused((event?.reason ?? connection.lastFailure)?.printable)
        } else if connection.lastFailureCause == .loginRefused {
            login = .refused(connection.lastFailure?.printable)
        } else if connection.session == .open || connection.holder == .client || connection.lastFailure == nil {
            login = .accepted
        }
        if let security = connection.security {
            certificate = .lasts
            if let end = security.certificateEndsAt, end - now < Self.noticeOfCertificate {
                let whose =
                    security.isOwnCertificate == true ? "This machine's own certificate" : "The server's certificate"
                certificate = .ends("\(whose) ends on \(ClockText.date(end)).")
            }
        }
        isWakeFailed = connection.wakeFailed == true
        wakeDetail = event?.wake?.detail?.printable
        hasUnread = connection.holder == .daemon && (connection.unreadBytes ?? 0) > 0
    }
}
