// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// A change of the network's path, as the history has it.
    public struct NetworkChange: Codable, Hashable, Sendable {
        /// When it happened.
        public var time: Timestamp
        /// The names of what changed; none where the agent began to watch.
        public var changes: [String]
        /// Whether packets can leave.
        public var status: NetworkAPI.Path.Status
        /// Why they cannot.
        public var reason: NetworkAPI.Path.Reason?
        /// The name of the interface that they leave by.
        public var interface: String?
        /// What kind of interface that is.
        public var kind: NetworkAPI.Interface.Kind?
        /// The next hop.
        public var gateway: String?
        /// The source address that packets carry.
        public var source: String?
        /// Whether IPv4 packets can leave.
        public var supportsIPv4: Bool
        /// Whether IPv6 packets can leave.
        public var supportsIPv6: Bool
        /// Whether a configured name server can be reached.
        public var supportsDNS: Bool
        /// Whether the interface's traffic costs money by volume.
        public var expensive: Bool
        /// Whether the user asked to spare the interface.
        public var constrained: Bool
        /// The status before.
        public var previousStatus: NetworkAPI.Path.Status?
        /// How long the status before had lasted.
        public var previousDurationMilliseconds: Int?

        /// The change to a path.
        public init(
            time: Timestamp, changes: [String], to path: NetworkAPI.Path,
            previousStatus: NetworkAPI.Path.Status? = nil, previousDurationMilliseconds: Int? = nil
        ) {
            self.time = time
            self.changes = changes
            status = path.status
            reason = path.reason
            interface = path.interface?.name
            kind = path.interface?.kind
            gateway = path.gateway
            source = path.source
            supportsIPv4 = path.supportsIPv4
            supportsIPv6 = path.supportsIPv6
            supportsDNS = path.supportsDNS
            expensive = path.expensive
            constrained = path.constrained
            self.previousStatus = previousStatus
            self.previousDurationMilliseconds = previousDurationMilliseconds
        }
    }

    /// Something that happened to the agent itself.
    public struct AgentChange: Codable, Hashable, Sendable {
        /// What happened to it.
        public enum Kind: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case started, ended, resumed
        }

        /// When it happened.
        public var time: Timestamp
        /// What happened.
        public var kind: Kind
        /// How long the machine had slept.
        public var sleptMilliseconds: Int?

        /// A change.
        public init(time: Timestamp, kind: Kind, sleptMilliseconds: Int? = nil) {
            self.time = time
            self.kind = kind
            self.sleptMilliseconds = sleptMilliseconds
        }
    }

    /// What of the history is not kept any more.
    public struct Dropped: Codable, Hashable, Sendable {
        /// What is kept apart from what else.
        public enum Part: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case network, connections, wakes
        }

        /// Which part of it.
        public var part: Part
        /// Whose it was; `nil` for the network's and the agent's.
        public var owner: Int?
        /// How much happened that is not kept.
        public var count: Int
        /// When the oldest happened that is.
        public var until: Timestamp

        /// What is not kept any more.
        public init(part: Part, owner: Int? = nil, count: Int, until: Timestamp) {
            (self.part, self.owner, self.count, self.until) = (part, owner, count, until)
        }
    }

    /// What happened, the oldest first.
    public enum History: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.History"
        /// It ends with the last reply.
        public static let isStream = true

        /// What is asked.
        public struct Parameters: VarlinkParameters, Hashable {
            /// Only these connections.
            public var names: [String]?
            /// Only connections of this user.
            public var owner: Int?
            /// Only what happened then or later.
            public var since: Timestamp?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case names, owner, since
            }

            /// All that is kept, or of these connections, or since then.
            public init(names: [String]? = nil, owner: Int? = nil, since: Timestamp? = nil) {
                self.names = names
                self.owner = owner
                self.since = since
            }
        }

        /// One thing that happened; the last reply has none.
        public struct Reply: Codable, Hashable, Sendable {
            /// What happened to a connection.
            public var event: Event?
            /// What happened to the network.
            public var network: NetworkChange?
            /// What happened to the agent.
            public var agent: AgentChange?
            /// What is not kept any more; before all else.
            public var dropped: Dropped?
            /// How long the machine had been up when it happened, in milliseconds, its sleep included.
            public var uptimeMilliseconds: Int?
            /// How many events of the same owner right before this one are left out, because there were too many.
            public var omitted: Int?

            /// A reply.
            public init(
                event: Event? = nil, network: NetworkChange? = nil, agent: AgentChange? = nil, dropped: Dropped? = nil,
                uptimeMilliseconds: Int? = nil
            ) {
                self.event = event
                self.network = network
                self.agent = agent
                self.dropped = dropped
                self.uptimeMilliseconds = uptimeMilliseconds
            }

            /// When it happened, or from when on it is kept; `nil` for the last reply.
            public var time: Timestamp? { event?.time ?? network?.time ?? agent?.time ?? dropped?.until }
        }
    }
}
