// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection
package import DialtoneProcesses

/// What an administrator or user told the daemon. Plain values: two loads of the same text are equal, wherever in the
/// files it stands, so a reload finds the connections that did not change by comparing.
package struct Configuration: Hashable, Sendable {
    /// The connections to supervise from the start, in the order of the files.
    package var connections: [ConnectionSettings] = []
    /// What is said of the host's interfaces.
    package var network = NetworkSettings()
    /// Who is served.
    package var clients = ClientSettings()
    /// What a user of the socket may take up.
    package var limits = LimitSettings()

    /// The embedded default, for a machine without any file: no connection, the default limits.
    package init() {}
}

/// One `[[connection]]`. An absent setting is not filled in here: its default belongs to the part that obeys it.
package struct ConnectionSettings: Hashable, Sendable {
    /// What it is called; unique over all files. See `ConnectionName`.
    package var name: String
    /// Where it goes, as it is written: `tcp://sip.example.com:5060`.
    package var remote: String
    /// The user it belongs to, by number; without one, the user that the daemon runs as (and root, always).
    package var owner: UInt32?
    /// How it is kept.
    package var settings = ConnectionsAPI.Settings()
    /// How a sleeping client is got to run, beyond the event that every subscriber gets.
    package var wake: WakeSettings?
}

/// `wake = { … }`: the ways to get a client to run; several are steps of an escalation.
package struct WakeSettings: Hashable, Sendable {
    /// A unit of the service manager to start.
    package var unit: String?
    /// A program to launch, by its absolute path, with its arguments.
    package var command: [String]?
    /// Whether the program finds the socket as its standard input and output.
    package var usesStandardStreams: Bool?
    /// Whose the program is to be.
    package var identity: ProgramIdentity?
    /// The number of a signal for the process that parked the connection.
    package var signal: Int32?
    /// What is thawed.
    package var thaw: WakeTargets.Thaw?
    /// When the client is launched.
    package var launch: WakePolicy.Launch?
    /// Whether a program that failed is launched again.
    package var relaunches: Bool?
    /// What the client is woken for.
    package var reasons: Set<WakeReason>?
    /// How long a client that runs has to acknowledge.
    package var answerTime: Duration?
    /// How long a client that is started has.
    package var startTime: Duration?
    /// How often each means is tried.
    package var rounds: Int?
    /// The wait before the second round, and before a program that failed is launched again.
    package var pause: Duration?
    /// The longest such wait.
    package var longestPause: Duration?

    /// Nothing beside the event.
    package init() {}
}

/// `[network]`
package struct NetworkSettings: Hashable, Sendable {
    /// Interfaces whose use costs money, by name.
    package var expensive: Set<String> = []
    /// Interfaces whose use does not, whatever their kind or the network manager say, by name.
    package var inexpensive: Set<String> = []
    /// Interfaces on which the user wants little traffic, by name.
    package var constrained: Set<String> = []
}

/// `[clients]`
package struct ClientSettings: Hashable, Sendable {
    /// The users whose programs get connections also from another network namespace than the daemon's, by number.
    package var otherNamespaces: Set<UInt32> = []
}

/// `[limits]`: what one user may take up of the daemon. Root has no limit.
package struct LimitSettings: Hashable, Sendable {
    /// Connections, opened over the socket or named in the files. A thousand is the number that the daemon's memory
    /// and wake-ups are measured with.
    package var connectionsPerUser = 1024
    /// Monitors of the network and of connections. A desktop has a handful of them; each costs a queue.
    package var subscriptionsPerUser = 64
    /// Bytes that wait to be read by the user's clients. Four mebibytes are some ten thousand events.
    package var queuedBytesPerUser = 4 << 20
}
