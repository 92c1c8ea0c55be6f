// SPDX-License-Identifier: Apache-2.0

/// Decides which notifications a user sees.
///
/// What is wrong is derived from what is known: each input changes what is known of one thing, and from that follows
/// which *episodes* there are. An episode is one notification at most: shown when it is due, updated when its text
/// changes, withdrawn when it is over, and left alone once the user has closed it. Whatever cannot be shown is kept,
/// and shown by the next daemon if it is still true.
///
/// After each input the driver carries out the effects in their order, and sets its timer to ``deadline``.
package struct NoticeBoard {
    /// So many things can be wrong at once. A user has up to 1024 connections; a screen holds none of this.
    static let mostEpisodes = 256
    /// Two beginnings that are nearer than this are the same one: they are told by the wall clock, in milliseconds.
    static let sameTime = Duration.seconds(1)
    /// So many notifications stand at once. More would bury the rest of the screen when a network fails that many
    /// connections use; the others follow as these go.
    static let mostShown = 8
    /// What is due for longer than this was noticed late: the machine slept, or the session has just begun.
    static let lateness = Duration.seconds(5)
    /// How long something that was noticed late must still last: what a network needs that is just coming up.
    static let settling = Duration.seconds(60)
    /// The shortest time between two updates of one notification. Each of them may bring it to the front again.
    static let updatePause = Duration.seconds(60)
    /// How long a daemon that comes waits after what the one before it was shown last. One that ends at what it is
    /// shown, and that somebody starts again and again, is not asked in a loop.
    static let daemonPause = Duration.seconds(10)
    /// How long an event that does not wait lasts, after its button was pressed, until it is shown again.
    static let patience = Duration.seconds(600)
    /// The longest title and the longest body, in Unicode scalars: what a bubble shows.
    static let (longestTitle, longestBody) = (100, 400)

    /// A connection as it is told, and what must be remembered of it.
    struct Known {
        var report: WatchedConnection
        var loginRefusal: Trouble?
        var certificate: Trouble?
        var wake: Trouble?
        var unread: Trouble?
    }

    /// Something that is wrong.
    struct Trouble: Equatable {
        var since: Duration
        var reason: String?
    }

    /// Something that is wrong and that a rule is for.
    struct Episode {
        enum Stage: Equatable {
            /// It is shown then, if it is still true.
            case waiting(until: Duration)
            /// It is due.
            case due
            /// The daemon was given it. If there is a number, that is of the notification that it updates.
            case asked(attempt: UInt64, updating: UInt32?)
            /// The daemon shows it, and has shown this text since then.
            case shown(UInt32, since: Duration)
            /// The user has seen it.
            case seen
        }

        let subject: NoticeSubject
        /// What its button dials anew; `nil` for nothing.
        let connection: String?
        var rule: NoticeRule
        var trouble: Trouble
        var stage: Stage
        /// What the daemon was given last.
        var told: Notice.Content?
        /// Whether it was updated before: the first update need not wait.
        var wasUpdated = false
    }

    /// The push server's connection at the machine's agent, for the button of a login that is refused.
    let pushConnection: String
    /// An instant of the boot clock, as a clock on the wall shows it.
    let clockText: @Sendable (Duration) -> String

    var rules = NoticeRule.defaults
    var connections: [String: Known] = [:]
    var apps: [String: Trouble] = [:]
    var pushRefusal: (server: String, trouble: Trouble)?
    /// In the order in which they began.
    var episodes: [Episode] = []
    var isAgentKnown = false
    /// Whether there ever was somebody to ask: at the start the bus is not connected to yet.
    var hasBus = false
    /// Whether the last attempt failed: nothing is tried until a daemon comes, or something new is due.
    var isDaemonGone = false
    /// Before that, nothing is shown.
    var quietUntil = Duration.zero
    /// When a notification was last shown that is none that stands.
    var lastShownAt: Duration?
    var nextAttempt: UInt64 = 1
    var isFull = false

    /// When ``NoticeInput/timePassed`` is to be told; `nil` for never.
    package internal(set) var deadline: Duration?

    /// Nothing is known.
    ///
    /// - Parameters:
    ///   - pushConnection: the name of push's connection.
    ///   - clockText: writes an instant of the boot clock as a clock on the wall shows it.
    package init(pushConnection: String, clockText: @escaping @Sendable (Duration) -> String) {
        (self.pushConnection, self.clockText) = (pushConnection, clockText)
    }

    /// Takes what happened.
    ///
    /// - Parameter now: the boot clock.
    package mutating func take(_ input: NoticeInput, at now: Duration) -> [NoticeEffect] {
        var effects: [NoticeEffect] = []
        switch input {
        case .snapshot(let all):
            isAgentKnown = true
            let names = Set(all.map(\.name))
            for name in connections.keys.sorted() where !names.contains(name) { forget(name, &effects) }
            for connection in all { learn(connection, at: now, &effects) }
        case .changed(let connection): learn(connection, at: now, &effects)
        case .closed(let name): forget(name, &effects)
        case .agentLost: isAgentKnown = false
        case .appNotStarted(let app, let why):
            let since = apps[app]?.since ?? now
            // As bounded as the episodes: what is not followed is not remembered.
            guard apps[app] != nil || apps.count < Self.mostEpisodes else { break }
            apps[app] = Trouble(since: since, reason: why)
            follow(app: app, at: now, &effects)
        case .appAnswered(let app):
            apps[app] = nil
            follow(app: app, at: now, &effects)
        case .pushLogin(let server, let refusal):
            let since = pushRefusal?.server == server ? pushRefusal?.trouble.since : nil
            pushRefusal = refusal.map { (server, Trouble(since: since ?? now, reason: $0)) }
            followPush(at: now, &effects)
        case .rules(let rules, let server):
            self.rules = rules
            if pushRefusal?.server != server { pushRefusal = nil }
            followAll(at: now, &effects)
        case .daemonCame: daemonCame(at: now)
        case .daemonWent: daemonWent()
        case .shown(let attempt, let id): shown(attempt, as: id, at: now, &effects)
        case .notShown(let attempt): notShown(attempt)
        case .closedByDaemon(let id): if let index = index(of: id) { episodes[index].stage = .seen }
        case .pressed(let id): pressed(id, at: now, &effects)
        case .timePassed: break
        }
        show(at: now, &effects)
        setDeadline(at: now)
        return effects
    }

    /// What is wrong, and whether it is shown; in the order in which it began.
    package var overview: [NoticeOverview] {
        episodes.map { episode in
            let stage: NoticeOverview.Stage =
                switch episode.stage {
                case .waiting: .waiting
                case .due: .kept
                case .asked, .shown: .shown
                case .seen: .seen
                }
            return NoticeOverview(subject: episode.subject, content: content(of: episode), stage: stage)
        }
    }
}
