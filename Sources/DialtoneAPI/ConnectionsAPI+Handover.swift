// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The hand-over of flows between the daemon and a client that sleeps.
extension ConnectionsAPI {
    /// Gives the caller a connection's flow. Answered with a descriptor.
    public enum Take: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Take"
        /// What a call waits for that cannot be answered at once.
        public enum Awaited: String, Codable, Hashable, Sendable, CaseIterable {
            /// A flow that can be taken.
            case flow
            /// Something to be read.
            case data
        }

        /// Which connection, and when.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The connection's name.
            public var name: String
            /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
            public var owner: Int?
            /// What is waited for; `nil` for nothing, and the call fails where there is no flow.
            public var until: Awaited?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case name, owner, until
            }

            /// The connection of that name.
            public init(name: String, owner: Int? = nil, until: Awaited? = nil) {
                self.name = name
                self.owner = owner
                self.until = until
            }
        }

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The connection, which the caller holds now.
            public var connection: Connection
            /// The place of the flow's descriptor among those that ride on the reply.
            public var fileDescriptor: Int
            /// The number of the flow, to park it with.
            public var epoch: Int
            /// Whether it has ended, and what it received before is there to be read.
            public var isOver: Bool

            /// The answer.
            public init(connection: Connection, fileDescriptor: Int, epoch: Int, isOver: Bool) {
                self.connection = connection
                self.fileDescriptor = fileDescriptor
                self.epoch = epoch
                self.isOver = isOver
            }
        }
    }

    /// Gives a flow back, with a session on it.
    public enum Park: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Park"
        /// It has none.
        public typealias Reply = VarlinkEmpty

        /// Which flow.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The connection's name.
            public var name: String
            /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
            public var owner: Int?
            /// The number of the flow.
            public var epoch: Int
            /// What the daemon says on each new flow from now on to log in; empty for nothing, `nil` for what it did
            /// before.
            public var opening: [OpeningStep]?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case name, owner, epoch, opening
            }

            /// The flow of this number.
            public init(name: String, owner: Int? = nil, epoch: Int, opening: [OpeningStep]? = nil) {
                self.name = name
                self.owner = owner
                self.epoch = epoch
                self.opening = opening
            }

            /// The fields of the opening are checked as well.
            public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
                switch field {
                case .opening: OpeningStep.self
                case .name, .owner, .epoch: nil
                }
            }
        }
    }

    /// Says that the caller sees to what it was woken for.
    public enum Acknowledge: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.Acknowledge"
        /// It has none.
        public typealias Reply = VarlinkEmpty

        /// Which wake.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The connection's name.
            public var name: String
            /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
            public var owner: Int?
            /// The number of the wake.
            public var wake: Int

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case name, owner, wake
            }

            /// The wake of this number.
            public init(name: String, owner: Int? = nil, wake: Int) {
                self.name = name
                self.owner = owner
                self.wake = wake
            }
        }
    }

    /// Has the caller called to keep its connection alive itself.
    public enum KeepAlive: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Connections.KeepAlive"
        /// The agreement first, then each call of the handler.
        public static let isStream = true

        /// Which connection, and how often.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The connection's name.
            public var name: String
            /// Whose it is; `nil` for the caller's own, or for root the only one of the name.
            public var owner: Int?
            /// The longest time between two calls.
            public var timeoutMilliseconds: Int
            /// Whether to wake a sleeping machine for it.
            public var wakeMachine: Bool?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case name, owner, timeoutMilliseconds, wakeMachine
            }

            /// Calls at least that often.
            public init(name: String, owner: Int? = nil, timeoutMilliseconds: Int, wakeMachine: Bool? = nil) {
                self.name = name
                self.owner = owner
                self.timeoutMilliseconds = timeoutMilliseconds
                self.wakeMachine = wakeMachine
            }
        }

        /// One of the answers.
        public struct Reply: Codable, Hashable, Sendable {
            /// The number of the wake that this call is; `nil` in the first answer, which is none.
            public var wake: Int?
            /// How long the caller may have the flow.
            public var limitMilliseconds: Int

            /// An answer.
            public init(wake: Int? = nil, limitMilliseconds: Int) {
                self.wake = wake
                self.limitMilliseconds = limitMilliseconds
            }
        }
    }
}
