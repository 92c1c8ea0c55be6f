// SPDX-License-Identifier: Apache-2.0

/// Why a sleeping client is to run. The raw values are published: on the socket, in the history and in the environment
/// of a program that is launched.
package enum WakeReason: String, Hashable, Sendable, CaseIterable {
    /// The server sent something that the client is to read.
    case data
    /// Another flow stands, and its server waits for a session.
    case reconnected
    /// The client's own keepalive is due.
    case keepAlive
    /// A step of the opening exchange that the client left did not match.
    case openingFailed
    /// The flow is gone, and its client wants to know.
    case lost
    /// The client ended with a failure, or without giving back the flow that it held.
    case clientDied
    /// The connection stands for the first time, and its file wants the client to run from then on.
    case start
}

/// A way to get a client to run. The raw values are published.
package enum WakeMeans: String, Hashable, Sendable, CaseIterable, Comparable {
    /// An event to whoever of the owner's watches the connection.
    case event
    /// A signal to the process that parked the flow, `SIGCONT` by default.
    case signal
    /// The thaw of a control group or a unit.
    case thaw
    /// The start of a unit of the service manager.
    case unit
    /// The launch of a program.
    case exec

    /// The cheaper one first: a program that runs already is asked before another is started.
    package static func < (left: WakeMeans, right: WakeMeans) -> Bool { left.cost < right.cost }

    private var cost: Int {
        switch self {
        case .event: 0
        case .signal: 1
        case .thaw: 2
        case .unit: 3
        case .exec: 4
        }
    }

    /// Whether it starts a program, which then takes its time, and not only nudges one.
    package var startsProgram: Bool {
        switch self {
        case .event, .signal, .thaw: false
        case .unit, .exec: true
        }
    }
}

/// What is known of a connection's client at one moment.
package struct ClientPresence: OptionSet, Hashable, Sendable {
    /// The bits.
    package let rawValue: UInt8

    /// A presence of these bits.
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Somebody of the owner's watches the connection over the socket.
    package static let subscribed = ClientPresence(rawValue: 1)
    /// The process that parked the flow, or was launched for it, lives.
    package static let alive = ClientPresence(rawValue: 2)
    /// That process is stopped (`SIGSTOP`): it reads no event until it is continued.
    package static let stopped = ClientPresence(rawValue: 4)
    /// Its control group is frozen: neither an event nor a signal reaches it until it is thawed.
    package static let frozen = ClientPresence(rawValue: 8)
    /// Neither is known of it: the agent may not look.
    package static let hidden = ClientPresence(rawValue: 16)
}
