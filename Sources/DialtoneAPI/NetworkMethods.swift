// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension NetworkAPI {
    /// The path to a target, or to the network as such.
    public enum GetPath: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Network.GetPath"

        /// What is asked.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The target.
            public var target: Target?
            /// The interface to think away.
            public var without: String?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case target, without
            }

            /// A question.
            public init(target: Target? = nil, without: String? = nil) {
                self.target = target
                self.without = without
            }

            /// The target's fields are checked as well.
            public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
                switch field {
                case .target: Target.self
                case .without: nil
                }
            }
        }

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The path now, or as it would be.
            public var path: Path
            /// The answer.
            public init(path: Path) { self.path = path }
        }
    }

    /// The path to a target, or to the network as such, and each change of it.
    public enum MonitorPath: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Network.MonitorPath"
        /// The present first, then each change.
        public static let isStream = true
        /// What is asked.
        public typealias Parameters = TargetParameters

        /// One of the answers.
        public struct Reply: Codable, Hashable, Sendable {
            /// The path now.
            public var path: Path
            /// What differs from the reply before.
            public var changes: [String]

            /// An answer.
            public init(path: Path, changes: [String]) {
                self.path = path
                self.changes = changes
            }
        }
    }

    /// A target, or none for the network as such.
    public struct TargetParameters: VarlinkParameters, Hashable {
        /// The target.
        public var target: Target?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the property.
            case target
        }

        /// A target, or none for the network as such.
        public init(target: Target? = nil) { self.target = target }

        /// The target's fields are checked as well.
        public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
            switch field {
            case .target: Target.self
            }
        }
    }

    /// Why the path to a target is as it is.
    public enum Explain: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Network.Explain"

        /// What is asked.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The target.
            public var target: Target
            /// The interface to think away.
            public var without: String?

            /// The fields.
            public enum CodingKeys: String, CodingKey, CaseIterable {
                /// Named as the properties.
                case target, without
            }

            /// A question.
            public init(target: Target, without: String? = nil) {
                self.target = target
                self.without = without
            }

            /// The target's fields are checked as well.
            public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
                switch field {
                case .target: Target.self
                case .without: nil
                }
            }
        }

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The path now, or as it would be.
            public var path: Path
            /// What it rests on, in order.
            public var steps: [Step]
            /// The paths to the other addresses of the target's name.
            public var others: [Path]?
            /// The interfaces that were thought away.
            public var without: [String]?

            /// The answer.
            public init(path: Path, steps: [Step], others: [Path]? = nil, without: [String]? = nil) {
                self.path = path
                self.steps = steps
                self.others = others
                self.without = without
            }
        }
    }

    /// One thing that was looked at on the way to a target.
    public struct Step: Codable, Hashable, Sendable {
        /// What was looked at.
        public enum Subject: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case name, rule, table, route, nexthop, link, neighbour, source
        }

        /// What was looked at.
        public var subject: Subject
        /// What was found.
        public var text: String
        /// Whether it is why the target cannot be reached.
        public var decisive: Bool

        /// A step.
        public init(subject: Subject, text: String, decisive: Bool) {
            self.subject = subject
            self.text = text
            self.decisive = decisive
        }
    }

    /// The interfaces of this machine.
    public enum ListInterfaces: VarlinkMethod {
        /// The method's name.
        public static let name = "org.dialtone.Network.ListInterfaces"
        /// It has none.
        public typealias Parameters = VarlinkEmpty

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The interfaces.
            public var interfaces: [Interface]
            /// The answer.
            public init(interfaces: [Interface]) { self.interfaces = interfaces }
        }
    }

    /// The target makes no sense.
    public struct InvalidTarget: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Network.InvalidTarget"
        /// What is wrong with it.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }

    /// The caller is in another network namespace than the agent, which would ask name servers for it.
    public struct ForeignNetwork: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Network.ForeignNetwork"
        /// Whom to admit, and how, for a person.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }

    /// The agent is near the limit of its memory or of its descriptors.
    public struct OutOfResources: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Network.OutOfResources"
        /// Which limit that is, and how much is in use.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }

    /// The caller's user has as many subscriptions as one may have.
    public struct QuotaExceeded: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Network.QuotaExceeded"
        /// How many that is.
        public var limit: Int
        /// The error.
        public init(limit: Int) { self.limit = limit }
    }
}
