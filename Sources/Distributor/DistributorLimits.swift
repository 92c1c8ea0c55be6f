// SPDX-License-Identifier: Apache-2.0

/// The bounds and times of a ``Distributor``.
package struct DistributorLimits: Hashable, Sendable {
    /// The longest token (UnifiedPush, `dbus.md`).
    package static let token = 1...100
    /// The longest endpoint (UnifiedPush, `dbus.md`).
    package static let endpoint = 1...1000
    /// The shortest and longest body (UnifiedPush, `dbus.md`; RFC 8030, section 7.2, wants 4096 bytes at least).
    package static let body = 1...4096
    /// What an app may say of a registration, and the longest VAPID key: 65 bytes of a P-256 point are 88 of base64.
    package static let summary = 0...1000
    package static let vapid = 1...128
    /// A bus name (D-Bus specification, "Valid Names") and what a sandbox is called.
    package static let name = 1...255
    /// What a server's value remembers (``PushServerTurn/memory``).
    package static let memory = 65_536

    /// Registrations of one app, or of all the names of one sandbox: a quarter of those that fit at a server where the
    /// fewest do (256, at an XMPP account), so that no app keeps the others from registering. A mail or chat program
    /// registers once for each account or room.
    package var registrationsOfApp = 64
    /// All registrations: 64 such apps. Some 2 MB of memory where all texts are as long as they may be short of the
    /// endpoints.
    package var registrations = 4096
    /// What may wait for one app, likewise: a night's chat. The rest is the server's to keep, or is given up where it
    /// would hold up others (``MessageOutcome/full(_:)``).
    package var messagesOfApp = 1024
    package var bytesOfApp = 1 << 20
    /// What may wait for all apps; it is held in memory, too.
    package var messages = 4096
    package var bytes = 4 << 20
    /// What VoIP messages may take beyond these: a chat does not block a call. Calls are few.
    package var voipReserve = 64
    /// Settled messages that are known when they come again: twice what may wait, so that none is forgotten whose
    /// server could not be told yet.
    package var settled = 8192
    /// How long they are known: a machine that was off over a holiday finds what its server could not be told before.
    package var settledAge = Duration.seconds(30 * 86_400)
    /// What is still to be ended at servers. Beyond it the oldest is left to the server.
    package var endings = 4096

    /// How long a call of Register waits for the server: below the 25 s of a D-Bus call (`DBUS_DEFAULT_TIMEOUT`), and
    /// as long as a person looks at a program that starts.
    package var registerCall = Duration.seconds(10)
    /// Calls of Register that wait for the same registration. A program that asks more often does not read answers.
    package var registerCalls = 8
    /// How long a server has to answer a registration or an ending before it is asked again: thrice what a server takes
    /// that is overloaded (autopush closes after 30 s without an answer).
    package var serverAnswer = Duration.seconds(60)
    /// Requests that one server has at the same time.
    package var serverRequests = 16
    /// The wait before a server is asked again that failed, doubled each time up to an hour.
    package var serverRetry = Backoff(first: .seconds(30), factor: 2, ceiling: .seconds(3600))
    /// At which share of an endpoint's time it is renewed: half of it is left to be offline in, a night of a day.
    package var renewalPercent: Int64 = 50
    /// The least and the longest wait before a renewal, whatever the server or the clock says.
    package var renewalWait = Duration.seconds(600)...Duration.seconds(30 * 86_400)
    /// How long the old endpoint is still heard at the old server after a change of servers: an app's server may learn
    /// the new one when the app is next used.
    package var moveGrace = Duration.seconds(86_400)

    /// How long an app has to start, and then for its answer: twice what D-Bus gives a call
    /// (`sd_bus_get_method_call_timeout`, 25 s).
    package var answer = Duration.seconds(50)
    /// The same for a VoIP push: the rule of `session.md`.
    package var voipAnswer = Duration.seconds(30)
    /// How much later than that the driver's word is not awaited any longer.
    package var answerSlack = Duration.seconds(5)
    /// The wait after a failure: an app that crashed is not started each second; four waits make seven minutes, in
    /// which an app that is being updated is back.
    package var retry = Backoff(first: .seconds(5), factor: 4, ceiling: .seconds(300))
    /// The same for VoIP: a caller waits half a minute.
    package var voipRetry = Backoff(first: .seconds(1), factor: 2, ceiling: .seconds(8))
    /// So many failures set a message aside.
    package var failures = 5
    /// The wait after an app could not be started, or is not known: nothing that a second mends.
    package var startRetry = Backoff(first: .seconds(60), factor: 2, ceiling: .seconds(3600))
    /// For how long, and how often at least, nobody must have known the app before its registration is ended: an update
    /// takes minutes, a disk that is not mounted may be missed for hours. The count holds where the clock was set.
    package var unknownGrace = Duration.seconds(86_400)
    package var unknownAnswers = 12
    /// How long after the bus came an unknown app does not count: its service files may not be read yet.
    package var busSettling = Duration.seconds(600)
    /// VoIP messages missed in a row that demote a registration.
    package var misses = 3
    /// Counted calls (``Attempt/isCounted``) that may be under way: of one app or sandbox, and of all. The first one
    /// starts an app.
    package var callsOfApp = 4
    package var calls = 32

    /// How long a message lives whose server does not say.
    package var timeToLive = Duration.seconds(86_400)
    /// The shortest life: a TTL of 0 (RFC 8030, section 5.2) means now or never, and now includes the app's start.
    package var shortestLife = Duration.seconds(60)
    /// The longest: the clock may have been set back.
    package var longestLife = Duration.seconds(30 * 86_400)
    /// How long deliveries rest after the word that the machine is about to sleep, where nobody says that it woke up:
    /// logind gives all programs 5 s (`InhibitDelayMaxSec`).
    package var suspending = Duration.seconds(60)
    /// How many settled messages a server is told of again at the first login: the process may have ended between
    /// saving and telling. As many as a server may have handed over without an answer.
    package var settledAgain = 64
    /// From which battery level on only `high` is delivered (UPower's `PercentageLow` is 20 %).
    package var lowBattery = 20
    /// The wait before something is saved again that could not be.
    package var saveRetry = Backoff(first: .seconds(5), factor: 2, ceiling: .seconds(300))
    /// A change of the clock that is told, and after which what waits is dated anew.
    package var clockStep = Duration.seconds(10)

    /// The limits that hold.
    package init() {}

    /// A wait that grows.
    package struct Backoff: Hashable, Sendable {
        package var first: Duration
        package var factor: Int
        package var ceiling: Duration

        /// The wait after so many failures in a row; none counts as one.
        func wait(after failures: Int) -> Duration {
            var wait = first
            for _ in 0..<max(failures - 1, 0) where wait < ceiling { wait = wait * factor }
            return min(wait, ceiling)
        }
    }
}
