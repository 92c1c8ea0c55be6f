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

    /// There is a connection of this name already.
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
}
