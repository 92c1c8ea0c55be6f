// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// How a connection is secured, for a remote whose scheme has TLS.
    public struct TLS: VarlinkParameters, Hashable {
        /// Digests of public keys of which the server has one.
        public var pins: [String]?
        /// Whether the server's certificate must be trusted and have its name.
        public var verify: Bool?
        /// The oldest version to speak.
        public var minimumVersion: String?
        /// The name that the server is asked for and must have.
        public var serverName: String?
        /// What to offer by ALPN.
        public var applicationProtocols: [String]?
        /// The file of what is trusted.
        public var authoritiesFile: String?
        /// The file of the client's certificate.
        public var certificateFile: String?
        /// The file of its private key.
        public var keyFile: String?
        /// The file of the key's password.
        public var passwordFile: String?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case pins, verify, minimumVersion, serverName, applicationProtocols
            /// Named as the properties.
            case authoritiesFile, certificateFile, keyFile, passwordFile
        }

        /// What is left out is the system's or the scheme's.
        public init(
            pins: [String]? = nil, verify: Bool? = nil, minimumVersion: String? = nil, serverName: String? = nil,
            applicationProtocols: [String]? = nil, authoritiesFile: String? = nil, certificateFile: String? = nil,
            keyFile: String? = nil, passwordFile: String? = nil
        ) {
            self.pins = pins
            self.verify = verify
            self.minimumVersion = minimumVersion
            self.serverName = serverName
            self.applicationProtocols = applicationProtocols
            self.authoritiesFile = authoritiesFile
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            self.passwordFile = passwordFile
        }
    }

    /// What was agreed on with a server.
    public struct Security: Codable, Hashable, Sendable {
        /// What is known of who the server is.
        public enum Assurance: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case verified, pinned, unverified
        }

        /// The version of TLS.
        public var version: String
        /// The cipher suite.
        public var cipher: String
        /// What is known of who the server is.
        public var assurance: Assurance
        /// Whether an earlier session was taken up.
        public var isResumed: Bool
        /// What the server chose by ALPN.
        public var applicationProtocol: String?
        /// When the certificate ends that ends first: the server's, or this client's own.
        public var certificateEndsAt: Timestamp?
        /// Whether that is this client's own.
        public var isOwnCertificate: Bool?

        /// What was agreed on.
        public init(
            version: String, cipher: String, assurance: Assurance, isResumed: Bool, applicationProtocol: String? = nil,
            certificateEndsAt: Timestamp? = nil, isOwnCertificate: Bool? = nil
        ) {
            self.certificateEndsAt = certificateEndsAt
            self.isOwnCertificate = isOwnCertificate
            self.version = version
            self.cipher = cipher
            self.assurance = assurance
            self.isResumed = isResumed
            self.applicationProtocol = applicationProtocol
        }
    }
}
