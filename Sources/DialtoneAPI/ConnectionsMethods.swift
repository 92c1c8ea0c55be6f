// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// The connections that the caller may see.
    public enum List: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.List"
        /// It has none.
        public typealias Parameters = VarlinkEmpty

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The connections.
            public var connections: [Connection]
            /// The answer.
            public init(connections: [Connection]) { self.connections = connections }
        }
    }

    /// The connections and each change of them.
    public enum Monitor: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Monitor"
        /// A snapshot first, or the first change after a sequence.
        public static let isStream = true

        /// What is asked.
        public struct Parameters: VarlinkParameters, Hashable {
            /// Only these connections.
            public var names: [String]?
            /// Only connections of this user.
            public var owner: Int?
            /// Go on after the event of this sequence.
            public var after: Int?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case names, owner, after
            }

            /// All connections from now on, or these, or since then.
            public init(names: [String]? = nil, owner: Int? = nil, after: Int? = nil) {
                self.names = names
                self.owner = owner
                self.after = after
            }
        }

        /// One of the answers.
        public struct Reply: Codable, Hashable, Sendable {
            /// What a reply brings.
            public enum Kind: String, Codable, Hashable, Sendable, CaseIterable {
                /// What each means stands in the interface's definition.
                case snapshot, change, gap
            }

            /// What to resume after.
            public var sequence: Int
            /// What it brings.
            public var kind: Kind
            /// All connections in a snapshot and a gap, the one concerned in a change.
            public var connections: [Connection]
            /// What happened, in a change.
            public var event: Event?

            /// An answer.
            public init(sequence: Int, kind: Kind, connections: [Connection], event: Event? = nil) {
                self.sequence = sequence
                self.kind = kind
                self.connections = connections
                self.event = event
            }
        }
    }

    /// Supervises a connection from now on.
    public enum Open: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Open"

        /// What is to be supervised, and how.
        public struct Parameters: VarlinkParameters, Hashable {
            /// Where it leads, as a URL.
            public var remote: String
            /// Its name.
            public var name: String?
            /// How it is kept alive.
            public var keepalive: Keepalive?
            /// What the daemon says on each new flow to log in.
            public var opening: [OpeningStep]?
            /// How long to wait between attempts.
            public var backoff: Backoff?
            /// How it is secured.
            public var tls: TLS?
            /// How long bytes may stay without acknowledgement until the connection counts as lost.
            public var userTimeoutMilliseconds: Int?
            /// How long a flow is kept whose local address or whose way is gone.
            public var graceMilliseconds: Int?
            /// Whether a flow is kept whose client is gone without having parked it.
            public var keepAbandoned: Bool?
            /// Whether a better path is taken while the old one still works.
            public var makeBeforeBreak: Bool?
            /// Whether another uplink is tried where nothing gets through over the usual one.
            public var otherUplinks: Bool?
            /// How its packets are marked for the network.
            public var trafficClass: String?
            /// In which order its packets leave this machine.
            public var priority: Int?
            /// The firewall mark of its packets.
            public var mark: Int?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case remote, name, keepalive, opening, backoff, tls, userTimeoutMilliseconds, makeBeforeBreak
                /// Named as the properties.
                case graceMilliseconds, keepAbandoned, otherUplinks, trafficClass, priority, mark
            }

            /// A connection; what is left out is the default.
            public init(
                remote: String, name: String? = nil, keepalive: Keepalive? = nil, opening: [OpeningStep]? = nil,
                backoff: Backoff? = nil, tls: TLS? = nil, userTimeoutMilliseconds: Int? = nil,
                graceMilliseconds: Int? = nil, keepAbandoned: Bool? = nil, makeBeforeBreak: Bool? = nil,
                otherUplinks: Bool? = nil, trafficClass: String? = nil, priority: Int? = nil, mark: Int? = nil
            ) {
                self.remote = remote
                self.name = name
                self.keepalive = keepalive
                self.opening = opening
                self.backoff = backoff
                self.tls = tls
                self.userTimeoutMilliseconds = userTimeoutMilliseconds
                self.graceMilliseconds = graceMilliseconds
                self.keepAbandoned = keepAbandoned
                self.makeBeforeBreak = makeBeforeBreak
                self.otherUplinks = otherUplinks
                self.trafficClass = trafficClass
                self.priority = priority
                self.mark = mark
            }

            /// The fields of the policy are checked as well.
            public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
                switch field {
                case .keepalive: Keepalive.self
                case .opening: OpeningStep.self
                case .backoff: Backoff.self
                case .tls: TLS.self
                case .remote, .name, .userTimeoutMilliseconds, .graceMilliseconds, .keepAbandoned, .makeBeforeBreak,
                    .otherUplinks, .trafficClass, .priority, .mark:
                    nil
                }
            }
        }

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The name it got.
            public var name: String
            /// The answer.
            public init(name: String) { self.name = name }
        }
    }

    /// Closes a connection and supervises it no longer.
    public enum Close: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Close"
        /// Which connection.
        public typealias Parameters = NameParameters
        /// It has none.
        public typealias Reply = VarlinkEmpty
    }

    /// Drops the connection's socket if there is one and dials, at once or when a server that asked to be left alone
    /// may be dialled again.
    public enum Redial: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Redial"
        /// It has none.
        public typealias Reply = VarlinkEmpty

        /// Which connection, and when.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The connection's name.
            public var name: String
            /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
            public var owner: Int?
            /// How long the server wants to be left alone.
            public var afterMilliseconds: Int?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case name, owner, afterMilliseconds
            }

            /// The connection of that name.
            public init(name: String, owner: Int? = nil, afterMilliseconds: Int? = nil) {
                self.name = name
                self.owner = owner
                self.afterMilliseconds = afterMilliseconds
            }
        }
    }

    /// The connection that something is to be done to.
    public struct NameParameters: VarlinkParameters, Hashable {
        /// Its name.
        public var name: String
        /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
        public var owner: Int?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case name, owner
        }

        /// The connection of that name.
        public init(name: String, owner: Int? = nil) {
            self.name = name
            self.owner = owner
        }
    }
}
