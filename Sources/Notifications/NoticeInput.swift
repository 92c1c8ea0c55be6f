// SPDX-License-Identifier: Apache-2.0

/// What happened.
package enum NoticeInput: Sendable {
    /// All connections of the user, as the machine's agent tells them.
    case snapshot([WatchedConnection])
    /// One of them changed, or is new.
    case changed(WatchedConnection)
    /// One of them is over.
    case closed(String)
    /// The machine's agent went: nothing is known of connections until the next snapshot.
    case agentLost
    /// A push's app cannot be started.
    case appNotStarted(app: String, why: String)
    /// An app was started, or nothing waits for it any more.
    case appAnswered(app: String)
    /// Push's server refuses the login, or does no longer: `nil`.
    case pushLogin(server: String, refusal: String?)
    /// The rules, and the server of push that counts; a login refused by another one is over.
    case rules([NoticeRule], pushServer: String?)
    /// A notification daemon came to the bus, in place of another or of none; or the bus is new, and one may be there.
    case daemonCame
    /// It left, and what it showed with it.
    case daemonWent
    /// The daemon has the notification of this attempt, under its own number.
    case shown(attempt: UInt64, id: UInt32)
    /// The daemon does not have it: it is not there, or it refused.
    case notShown(attempt: UInt64)
    /// A notification is no longer on the screen. Whoever closed it, it was seen.
    case closedByDaemon(id: UInt32)
    /// Its button was pressed.
    case pressed(id: UInt32)
    /// The deadline is reached.
    case timePassed
}

/// What is known of a connection.
package struct WatchedConnection: Hashable, Sendable {
    /// How its login stands.
    package enum Login: Hashable, Sendable {
        /// The server refused it, or did not answer.
        case refused(String?)
        /// It is logged in, or nobody but its client knows.
        case accepted
        /// As it was.
        case asBefore
    }

    /// What is known of the certificates of its socket.
    package enum Certificate: Hashable, Sendable {
        /// Nothing: it has no socket, or one without TLS. What was known before holds on.
        case unknown
        /// They are good for longer than a week.
        case lasts
        /// One of them ends sooner; which, and when.
        case ends(String)
    }

    /// Its name, among those of the user.
    package var name: String
    /// Since when it has had no socket, on the boot clock, as near as can be told; `nil` while it has one.
    package var downSince: Duration?
    /// Why it is down.
    package var failure: String?
    /// How its login stands.
    package var login = Login.asBefore
    /// What is known of its certificates.
    package var certificate = Certificate.unknown
    /// Whether the wake of its client was given up.
    package var isWakeFailed = false
    /// What went wrong with the wake, where the report says.
    package var wakeDetail: String?
    /// Whether bytes wait that nobody has read, and no client has the socket.
    package var hasUnread = false

    /// A connection of which nothing is wrong.
    package init(name: String) { self.name = name }
}
