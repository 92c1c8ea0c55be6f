// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// `org.dialtone.Connections` in Swift. What each field means stands in the interface's definition, ``description``.
public enum ConnectionsAPI {
    /// The interface's name.
    public static let name = "org.dialtone.Connections"
    /// The interface's definition in Varlink's language.
    public static let description = String(decoding: PackageResources.org_dialtone_Connections_varlink, as: UTF8.self)

    /// How a connection that nobody uses is kept alive.
    public struct Keepalive: VarlinkParameters, Hashable {
        /// What is sent; `nil` for what the remote's scheme has.
        public var `protocol`: String?
        /// The longest time without a sign of life.
        public var intervalMilliseconds: Int?
        /// How much earlier it may be sent to share a wake-up with others.
        public var toleranceMilliseconds: Int?
        /// Whether the interval follows what is learned of the network.
        public var adaptive: Bool?
        /// What a custom one sends, with the escapes of the interface's definition.
        public var send: String?
        /// What answers a custom one, written likewise.
        public var expect: String?
        /// Whether to wake a sleeping machine for it.
        public var wakeMachine: Bool?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case `protocol`, intervalMilliseconds, toleranceMilliseconds, adaptive, send, expect, wakeMachine
        }

        /// A keepalive; what is left out is the default of the remote's scheme.
        public init(
            protocol: String? = nil, intervalMilliseconds: Int? = nil, toleranceMilliseconds: Int? = nil,
            adaptive: Bool? = nil, send: String? = nil, expect: String? = nil, wakeMachine: Bool? = nil
        ) {
            self.protocol = `protocol`
            self.intervalMilliseconds = intervalMilliseconds
            self.toleranceMilliseconds = toleranceMilliseconds
            self.adaptive = adaptive
            self.send = send
            self.expect = expect
            self.wakeMachine = wakeMachine
        }
    }

    /// How long to wait between attempts.
    public struct Backoff: VarlinkParameters, Hashable {
        /// The wait after the first failure, before jitter.
        public var baseMilliseconds: Int?
        /// The longest wait, before jitter.
        public var maximumMilliseconds: Int?
        /// What each wait is multiplied by to get the next.
        public var multiplier: Double?
        /// How long a connection must stay up for the waits to start over.
        public var stableAfterMilliseconds: Int?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case baseMilliseconds, maximumMilliseconds, multiplier, stableAfterMilliseconds
        }

        /// A back-off; what is left out is the default of the remote's protocol.
        public init(
            baseMilliseconds: Int? = nil, maximumMilliseconds: Int? = nil, multiplier: Double? = nil,
            stableAfterMilliseconds: Int? = nil
        ) {
            self.baseMilliseconds = baseMilliseconds
            self.maximumMilliseconds = maximumMilliseconds
            self.multiplier = multiplier
            self.stableAfterMilliseconds = stableAfterMilliseconds
        }
    }

    /// A supervised connection.
    public struct Connection: Codable, Hashable, Sendable {
        /// What it is doing.
        public enum State: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case waiting, resolving, connecting, securing, ready, verifying, backingOff, failed, closed

            /// Whether a flow stands: `ready`, or `verifying` that it still is.
            public var hasFlow: Bool { self == .ready || self == .verifying }
        }

        /// Who reads and writes its socket.
        public enum Holder: String, Codable, Hashable, Sendable, CaseIterable {
            /// Dialtone watches it, or a client has taken it.
            case daemon, client
        }

        /// Whether the protocol on it is logged in.
        public enum Session: String, Codable, Hashable, Sendable, CaseIterable {
            /// As far as Dialtone knows.
            case none, opening, open, unknown
        }

        /// Its name.
        public var name: String
        /// Whose it is: a user's number. Names are by owner. `nil` from an agent of an earlier version.
        public var owner: Int?
        /// Where it leads, as a URL.
        public var remote: String
        /// Counts its sockets.
        public var epoch: Int
        /// What it is doing.
        public var state: State
        /// Why, for a person.
        public var reason: String?
        /// Who reads and writes its socket.
        public var holder: Holder
        /// Whether the protocol on it is logged in.
        public var session: Session
        /// Since when it is in this state.
        public var since: Timestamp
        /// The socket's own address and port.
        public var localAddress: String?
        /// The address and port it is connected to.
        public var remoteAddress: String?
        /// The name of the interface it goes over.
        public var interface: String?
        /// The name of the interface that the kernel would have it go over, where nothing got through there.
        public var avoidedInterface: String?
        /// Failed attempts since it was last stable.
        public var attempt: Int
        /// When the next attempt is due.
        public var nextAttemptAt: Timestamp?
        /// When the remote last answered something demonstrably.
        public var lastProof: Timestamp?
        /// What the last attempt or socket failed of, until the next one stands and is logged in.
        public var lastFailure: String?
        /// How it is secured.
        public var security: Security?
        /// Bytes that arrived and that nobody has read.
        public var unreadBytes: Int?
        /// The number of the wake that stands.
        public var wake: Int?
        /// Whether that wake was given up.
        public var wakeFailed: Bool?
        /// Whether its socket ends with the agent's process, since the service manager has no place left for it.
        public var endsWithAgent: Bool?

        /// A connection.
        public init(
            name: String, owner: Int? = nil, remote: String, epoch: Int, state: State, reason: String? = nil,
            holder: Holder, session: Session, since: Timestamp, localAddress: String? = nil,
            remoteAddress: String? = nil, interface: String? = nil, avoidedInterface: String? = nil,
            security: Security? = nil, attempt: Int, nextAttemptAt: Timestamp? = nil,
            lastProof: Timestamp? = nil, lastFailure: String? = nil, unreadBytes: Int? = nil, wake: Int? = nil,
            wakeFailed: Bool? = nil, endsWithAgent: Bool? = nil
        ) {
            self.name = name
            self.owner = owner
            self.remote = remote
            self.epoch = epoch
            self.state = state
            self.reason = reason
            self.holder = holder
            self.session = session
            self.since = since
            self.localAddress = localAddress
            self.remoteAddress = remoteAddress
            self.interface = interface
            self.avoidedInterface = avoidedInterface
            self.security = security
            self.attempt = attempt
            self.nextAttemptAt = nextAttemptAt
            self.lastProof = lastProof
            self.lastFailure = lastFailure
            self.unreadBytes = unreadBytes
            self.wake = wake
            self.wakeFailed = wakeFailed
            self.endsWithAgent = endsWithAgent
        }
    }

    /// Something that happened to a connection.
    public struct Event: Codable, Hashable, Sendable {
        /// What happened. More kinds may come; a client passes over those it does not know.
        public struct Kind: RawRepresentable, Codable, Hashable, Sendable {
            /// The name on the wire.
            public let rawValue: String

            /// The kind of that name.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// It is supervised from now on.
            public static let opened = Kind(rawValue: "opened")
            /// The agent was started anew, and goes on with it.
            public static let continued = Kind(rawValue: "continued")
            /// It has entered the state that the event's connection shows.
            public static let state = Kind(rawValue: "state")
            /// One of its remote's addresses failed, and the next one is tried.
            public static let addressFailed = Kind(rawValue: "addressFailed")
            /// Another address is tried beside those that have not answered yet.
            public static let attemptBegan = Kind(rawValue: "attemptBegan")
            /// A flow over a better path did not come about; the one that stands is kept.
            public static let moveFailed = Kind(rawValue: "moveFailed")
            /// The way to its remote changed, its state did not.
            public static let pathChanged = Kind(rawValue: "pathChanged")
            /// Its remote or policy changed.
            public static let reconfigured = Kind(rawValue: "reconfigured")
            /// A client has taken its socket.
            public static let taken = Kind(rawValue: "taken")
            /// The client gave the socket back.
            public static let parked = Kind(rawValue: "parked")
            /// The client that had the socket is gone without a word, and the socket was kept.
            public static let abandoned = Kind(rawValue: "abandoned")
            /// Bytes for the client wait.
            public static let arrived = Kind(rawValue: "arrived")
            /// The daemon logged in on a new socket by the opening exchange.
            public static let sessionOpened = Kind(rawValue: "sessionOpened")
            /// The opening exchange was refused, or had no answer time and again.
            public static let openingFailed = Kind(rawValue: "openingFailed")
            /// The certificate by which the two ends of its socket know each other ends soon.
            public static let certificateEnds = Kind(rawValue: "certificateEnds")
            /// It is no longer supervised.
            public static let closed = Kind(rawValue: "closed")
        }

        /// Counts the events, across the runs of the daemon.
        public var sequence: Int
        /// When it happened.
        public var time: Timestamp
        /// What happened.
        public var kind: Kind
        /// The connection after it.
        public var connection: Connection
        /// Why, for a person.
        public var reason: String?
        /// The state before.
        public var previousState: Connection.State?
        /// How long the state before had lasted.
        public var previousDurationMilliseconds: Int?
        /// What happened to the wake of its client; of events of that kind alone.
        public var wake: Wake?

        /// An event.
        public init(
            sequence: Int, time: Timestamp, kind: Kind, connection: Connection, reason: String? = nil,
            previousState: Connection.State? = nil, previousDurationMilliseconds: Int? = nil, wake: Wake? = nil
        ) {
            self.sequence = sequence
            self.time = time
            self.kind = kind
            self.connection = connection
            self.reason = reason
            self.previousState = previousState
            self.previousDurationMilliseconds = previousDurationMilliseconds
            self.wake = wake
        }
    }
}
