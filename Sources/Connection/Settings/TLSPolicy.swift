// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// How a connection whose scheme needs TLS is secured. What is left out is the system's or the scheme's.
///
/// Plain words: files are named, not read. Two equal policies make equal sessions as long as the files stay the same.
package struct TLSPolicy: Hashable, Sendable {
    /// A version of the protocol. The raw value is how it is written.
    package enum Version: String, Hashable, Sendable, CaseIterable {
        /// RFC 5246; older ones are deprecated (RFC 8996) and never spoken.
        case v12 = "1.2"
        /// RFC 8446.
        case v13 = "1.3"
    }

    /// The client certificate for servers that ask for one.
    package struct Identity: Hashable, Sendable {
        /// The file of the certificate and, after it, of those between it and the server's authority (PEM).
        package var certificate: String
        /// The file of the private key (PEM); it may be the same.
        package var key: String
        /// The file whose first line is the password of the key; `nil` for a key that has none.
        package var passwordFile: String?

        /// An identity; without a file for the key, it stands beside the certificate.
        package init(certificate: String, key: String? = nil, passwordFile: String? = nil) {
            self.certificate = certificate
            self.key = key ?? certificate
            self.passwordFile = passwordFile
        }
    }

    /// The file of the certificates that are trusted (PEM), in place of the system's. Revocation lists in it are
    /// obeyed, and then every certificate of a server needs one of its issuer.
    package var authorities: String?
    /// Who this client is, for servers that ask.
    package var identity: Identity?
    /// Keys of which one must be in the server's certificate or, where it is verified, in its chain. Empty: any.
    package var pins: Set<CertificatePin> = []
    /// Whether the server's certificate must be trusted and name the server. With this off, pins alone still count.
    package var verifiesCertificate = true
    /// The oldest version to speak.
    package var minimumVersion = Version.v12
    /// The name that the server is asked for and its certificate must have, where it is not the remote's host.
    package var serverName: String?
    /// What to offer by ALPN, the most wanted first; empty for nothing, `nil` for what the scheme has.
    package var applicationProtocols: [String]?

    /// The system's trust, the remote's name, the scheme's protocol, version 1.2 or later.
    package init() {}

    /// The files that are read for it.
    var files: [String] {
        [authorities, identity?.certificate, identity?.key, identity?.passwordFile].compactMap { $0 }
    }
}

/// What a session is asked for: a policy with the remote's part filled in.
package struct TLSRequest: Hashable, Sendable {
    /// The name or address that the server is asked for and its certificate must have: what the user wrote, never what
    /// a lookup made of it (RFC 9525, section 1.2).
    package var host: Target.Host
    /// What to offer by ALPN, the most wanted first.
    package var applicationProtocols: [String]
    /// The rest.
    package var policy: TLSPolicy

    /// A request for what `policy` has no name or protocol of its own for.
    package init(to host: Target.Host, offering applicationProtocols: [String] = [], under policy: TLSPolicy) {
        self.host = policy.serverName.map { Target.Host($0) } ?? host
        self.applicationProtocols = policy.applicationProtocols ?? applicationProtocols
        self.policy = policy
    }
}

/// The SHA-256 of a certificate's public key (its SubjectPublicKeyInfo), as RFC 7469, section 2.4, makes it.
package struct CertificatePin: Hashable, Sendable, CustomStringConvertible {
    /// The digest in base64, 44 characters.
    package let digest: String

    /// What stands before the digest in ``description``, and may in a configuration.
    private static let prefix = "sha256/"
    /// 32 bytes in base64: 43 digits and a padding.
    private static let digits = 43

    /// A pin from the base64 of its digest, with or without `sha256/` before it; `nil` for any other text.
    package init?(_ text: String) {
        let digest = text.hasPrefix(Self.prefix) ? String(text.dropFirst(Self.prefix.utf8.count)) : text
        let bytes = Array(digest.utf8)
        guard bytes.count == Self.digits + 1, bytes.last == UInt8(ascii: "="),
            bytes.dropLast().allSatisfy(Self.isDigit),
            // The last digit carries four bits of the digest and two that are nothing: only multiples of four.
            bytes[Self.digits - 1].isMultipleOfFourInBase64
        else { return nil }
        self.digest = digest
    }

    /// The form in which it is written in a configuration.
    package var description: String { Self.prefix + digest }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}

extension UInt8 {
    fileprivate var isMultipleOfFourInBase64: Bool { "AEIMQUYcgkosw048".utf8.contains(self) }
}

/// What came of a handshake, for the status.
package struct TLSSummary: Hashable, Sendable {
    /// What is known of who the server is.
    package enum Assurance: String, Hashable, Sendable, CaseIterable {
        /// Its certificate is trusted and has its name.
        case verified
        /// Its key is one of the pins; nothing else was asked of it.
        case pinned
        /// Nothing: the user switched the verification off. Whoever is in between can read and write.
        case unverified
    }

    /// The version spoken.
    package var version: TLSPolicy.Version
    /// The cipher suite, by its name in the IANA registry or OpenSSL's where that has its own.
    package var cipher: String
    /// What is known of who the server is.
    package var assurance: Assurance
    /// Whether an earlier session was taken up: one flight less, and no certificate sent.
    package var isResumed: Bool
    /// What the server chose by ALPN.
    package var applicationProtocol: String?
    /// Until when the certificates are valid by which the two know each other; `nil` where none was seen.
    package var certificateEnd: CertificateEnd?

    /// The end of a certificate's time.
    package struct CertificateEnd: Hashable, Sendable, CustomStringConvertible {
        /// In seconds since 1970, UTC.
        package var seconds: Int64
        /// Whether it is this client's own certificate, and not the server's.
        package var isOwn: Bool

        /// An end.
        package init(seconds: Int64, isOwn: Bool) { (self.seconds, self.isOwn) = (seconds, isOwn) }

        /// Whose certificate it is, in the words of an event.
        package var description: String {
            isOwn ? "this connection's certificate ends soon" : "the server's certificate ends soon"
        }
    }

    /// A summary.
    package init(
        version: TLSPolicy.Version, cipher: String, assurance: Assurance, isResumed: Bool,
        applicationProtocol: String? = nil, certificateEnd: CertificateEnd? = nil
    ) {
        self.version = version
        self.cipher = cipher
        self.assurance = assurance
        self.isResumed = isResumed
        self.applicationProtocol = applicationProtocol
        self.certificateEnd = certificateEnd
    }
}
