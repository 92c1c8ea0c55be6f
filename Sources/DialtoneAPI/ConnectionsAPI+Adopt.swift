// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// Supervises a socket that the caller opened, as a flow that it parks. Called with a descriptor.
    public enum Adopt: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Adopt"
        /// The socket.
        public static let takesDescriptors = true
        /// The name it got.
        public typealias Reply = Open.Reply

        /// What is to be supervised, and how.
        public struct Parameters: VarlinkParameters, Hashable {
            /// Its name.
            public var name: String
            /// The place of the socket among the descriptors that ride on the call.
            public var fileDescriptor: Int
            /// Where to dial when the flow is lost, as a URL.
            public var remote: String?
            /// How it is kept alive.
            public var keepalive: Keepalive?
            /// What the daemon says on each flow after this one to log in.
            public var opening: [OpeningStep]?
            /// How long to wait between attempts.
            public var backoff: Backoff?
            /// How the flows that are dialled after it are secured.
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
                case name, fileDescriptor, remote, keepalive, opening, backoff, tls, userTimeoutMilliseconds
                /// Named as the properties.
                case graceMilliseconds, keepAbandoned, makeBeforeBreak, otherUplinks, trafficClass, priority, mark
            }

            /// The socket at this place; what is left out is the default.
            public init(
                name: String, fileDescriptor: Int = 0, remote: String? = nil, keepalive: Keepalive? = nil,
                opening: [OpeningStep]? = nil, backoff: Backoff? = nil, tls: TLS? = nil,
                userTimeoutMilliseconds: Int? = nil, graceMilliseconds: Int? = nil, keepAbandoned: Bool? = nil,
                makeBeforeBreak: Bool? = nil, otherUplinks: Bool? = nil, trafficClass: String? = nil,
                priority: Int? = nil, mark: Int? = nil
            ) {
                self.name = name
                self.fileDescriptor = fileDescriptor
                self.remote = remote
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

            /// The policy of a connection to `remote`, where there is one; for the same fields as `Open` has.
            public func opening(_ remote: String) -> Open.Parameters {
                Open.Parameters(
                    remote: remote, name: name, keepalive: keepalive, opening: opening, backoff: backoff, tls: tls,
                    userTimeoutMilliseconds: userTimeoutMilliseconds, graceMilliseconds: graceMilliseconds,
                    keepAbandoned: keepAbandoned, makeBeforeBreak: makeBeforeBreak, otherUplinks: otherUplinks,
                    trafficClass: trafficClass, priority: priority, mark: mark)
            }

            /// The fields of the policy are checked as well.
            public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
                switch field {
                case .keepalive: Keepalive.self
                case .opening: OpeningStep.self
                case .backoff: Backoff.self
                case .tls: TLS.self
                case .name, .fileDescriptor, .remote, .userTimeoutMilliseconds, .graceMilliseconds, .keepAbandoned,
                    .makeBeforeBreak, .otherUplinks, .trafficClass, .priority, .mark:
                    nil
                }
            }
        }
    }
}
