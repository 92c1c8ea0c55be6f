// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// There is no connection of this name, or it is not for the caller to see.
    public struct NoSuchConnection: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.NoSuchConnection"
        /// The name.
        public var name: String
        /// The error.
        public init(name: String) { self.name = name }
    }

    /// Several users have a connection of this name.
    public struct AmbiguousName: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.AmbiguousName"
        /// The name.
        public var name: String
        /// The numbers of the users.
        public var owners: [Int]

        /// The error.
        public init(name: String, owners: [Int]) {
            self.name = name
            self.owners = owners
        }
    }

    /// The caller has a connection of this name already.
    public struct NameTaken: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.NameTaken"
        /// The name.
        public var name: String
        /// The error.
        public init(name: String) { self.name = name }
    }

    /// The connection belongs to another user.
    public struct NotOwner: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.NotOwner"
        /// The connection's name.
        public var name: String
        /// The error.
        public init(name: String) { self.name = name }
    }

    /// The remote cannot be dialled.
    public struct InvalidRemote: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.InvalidRemote"
        /// What was given.
        public var remote: String
        /// What is wrong with it.
        public var reason: String

        /// The error.
        public init(remote: String, reason: String) {
            self.remote = remote
            self.reason = reason
        }
    }

    /// The caller's user has as many connections, or subscriptions, as one may have.
    public struct QuotaExceeded: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.QuotaExceeded"
        /// How many that is.
        public var limit: Int
        /// The error.
        public init(limit: Int) { self.limit = limit }
    }

    /// Nothing is done for the caller's user for a while, of whatever interface: the agent crashed again and again
    /// while it answered that user.
    public struct Suspended: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.Suspended"
        /// Why, for a person.
        public var reason: String
        /// How much longer.
        public var seconds: Int
        /// The error.
        public init(reason: String, seconds: Int) {
            self.reason = reason
            self.seconds = seconds
        }
    }

    /// The agent is near the limit of its memory or of its descriptors.
    public struct OutOfResources: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.OutOfResources"
        /// Which limit that is, and how much is in use.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }

    /// The flow of this number is over.
    public struct StaleEpoch: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.StaleEpoch"
        /// The connection's name.
        public var name: String
        /// The number of the newest flow.
        public var epoch: Int

        /// The error.
        public init(name: String, epoch: Int) {
            self.name = name
            self.epoch = epoch
        }
    }

    /// The connection has no flow to do that with.
    public struct NotReady: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.NotReady"
        /// The connection's name.
        public var name: String
        /// What it is doing.
        public var state: Connection.State

        /// The error.
        public init(name: String, state: Connection.State) {
            self.name = name
            self.state = state
        }
    }

    /// A handler that is called with this timeout would not keep the connection alive.
    public struct InvalidTimeout: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.InvalidTimeout"
        /// The connection's name.
        public var name: String
        /// What is wrong with the timeout.
        public var reason: String

        /// The error.
        public init(name: String, reason: String) {
            self.name = name
            self.reason = reason
        }
    }
    /// Another process has the connection's flow.
    public struct HeldByClient: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.HeldByClient"
        /// The connection's name.
        public var name: String
        /// The number of the process.
        public var process: Int

        /// The error.
        public init(name: String, process: Int) {
            self.name = name
            self.process = process
        }
    }

    /// Nobody has taken the flow that is to be parked.
    public struct NotTaken: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.NotTaken"
        /// The connection's name.
        public var name: String

        /// The error.
        public init(name: String) { self.name = name }
    }

    /// What came with the call cannot be supervised.
    public struct InvalidDescriptor: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.InvalidDescriptor"
        /// The connection's name.
        public var name: String
        /// What is wrong with it.
        public var reason: String

        /// The error.
        public init(name: String, reason: String) {
            self.name = name
            self.reason = reason
        }
    }

    /// The caller is in another network namespace than the agent, whose connections it would get.
    public struct ForeignNetwork: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.ForeignNetwork"
        /// Whom to admit, and how, for a person.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }

    /// The kernel refused something.
    public struct SystemFailure: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.SystemFailure"
        /// The connection's name.
        public var name: String
        /// What was tried, and what came back.
        public var reason: String

        /// The error.
        public init(name: String, reason: String) {
            self.name = name
            self.reason = reason
        }
    }
}
