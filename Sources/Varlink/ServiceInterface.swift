// SPDX-License-Identifier: Apache-2.0

/// `org.varlink.service`, the interface that every service has.
extension VarlinkService {
    /// The interface's name.
    public nonisolated static let interfaceName = "org.varlink.service"

    /// Who made the service, and which interfaces it has.
    public enum GetInfo: VarlinkMethod {
        /// The method's name.
        public static let name = "org.varlink.service.GetInfo"
        /// It has none.
        public typealias Parameters = VarlinkEmpty

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// Who made it.
            public var vendor: String
            /// What it is.
            public var product: String
            /// Which release of it.
            public var version: String
            /// Where to read about it.
            public var url: String
            /// The interfaces, this one among them.
            public var interfaces: [String]
        }
    }

    /// The definition of an interface in Varlink's language.
    public enum GetInterfaceDescription: VarlinkMethod {
        /// The method's name.
        public static let name = "org.varlink.service.GetInterfaceDescription"

        /// What is asked.
        public struct Parameters: VarlinkParameters, Hashable {
            /// The interface's name.
            public var interface: String

            /// The fields.
            public enum CodingKeys: CodingKey { case interface }

            /// Asks for `interface`.
            public init(interface: String) { self.interface = interface }
        }

        /// The answer.
        public struct Reply: Codable, Hashable, Sendable {
            /// The definition.
            public var description: String
        }
    }

    /// There is no such interface.
    public struct InterfaceNotFound: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.InterfaceNotFound"
        /// The interface that was asked for.
        public var interface: String
        /// The error.
        public init(interface: String) { self.interface = interface }
    }

    /// The interface has no such method.
    public struct MethodNotFound: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.MethodNotFound"
        /// The method that was called, with its interface.
        public var method: String
        /// The error.
        public init(method: String) { self.method = method }
    }

    /// The interface has the method, this service does not.
    public struct MethodNotImplemented: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.MethodNotImplemented"
        /// The method that was called, with its interface.
        public var method: String
        /// The error.
        public init(method: String) { self.method = method }
    }

    /// A parameter is unknown, missing, of the wrong type or of a value that is not allowed.
    public struct InvalidParameter: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.InvalidParameter"
        /// Which, as "outer.inner[2]".
        public var parameter: String
        /// The error.
        public init(parameter: String) { self.parameter = parameter }
    }

    /// The caller may not do that.
    public struct PermissionDenied: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.PermissionDenied"
        /// The error.
        public init() {}
    }

    /// The method answers with a stream and must be called with `more`.
    public struct ExpectedMore: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.varlink.service.ExpectedMore"
        /// The error.
        public init() {}
    }

    /// The interface's definition, after varlink.org's, with the two errors that systemd's services added to it.
    nonisolated static let interfaceDescription = """
        # What every Varlink service has: who it is and what it offers.
        interface org.varlink.service

        # Returns who made the service, and which interfaces it has.
        method GetInfo() -> (
          vendor: string,
          product: string,
          version: string,
          url: string,
          interfaces: []string
        )

        # Returns the definition of an interface.
        method GetInterfaceDescription(interface: string) -> (description: string)

        # There is no such interface.
        error InterfaceNotFound (interface: string)

        # The interface has no such method.
        error MethodNotFound (method: string)

        # The interface has the method, this service does not implement it.
        error MethodNotImplemented (method: string)

        # A parameter is unknown, missing, of the wrong type or of a value that is not allowed.
        error InvalidParameter (parameter: string)

        # The caller may not do that.
        error PermissionDenied ()

        # The method answers with a stream and must be called with "more".
        error ExpectedMore ()

        """
}
