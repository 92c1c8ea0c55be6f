// SPDX-License-Identifier: Apache-2.0

/// Why a TLS session did not come about or did not go on, in the words of an operator. No case ever holds a key, a
/// password or a byte of what was sent; texts that come from the server are cut short and hold printable ASCII only.
package enum TLSFailure: Error, Hashable, Sendable {
    /// The server's certificate will not do.
    case certificate(CertificateProblem)
    /// Server and client have no version of TLS in common; with the oldest that this client speaks.
    case noCommonVersion(minimum: TLSPolicy.Version)
    /// They have no cipher, group or signature algorithm in common.
    case noCommonCipher
    /// They have no application protocol in common; with what was offered.
    case noCommonProtocol(offered: [String])
    /// The server wants a client certificate, and the connection has none.
    case clientCertificateRequired
    /// The server does not accept the client certificate; with its alert.
    case clientCertificateRefused(TLSAlert)
    /// The server does not know the name that it was asked for.
    case unknownName(String)
    /// The server gave up with any other alert.
    case alert(TLSAlert)
    /// What came is not TLS: the port is another service's, or wants STARTTLS.
    case notTLS
    /// The stream ended in the middle of the handshake.
    case endedInHandshake
    /// The handshake was not over in time.
    case timedOut
    /// The stream ended without the server's word that it is the end (RFC 8446, section 6.1): a crash, a proxy, or
    /// somebody in between who cut it.
    case truncated
    /// The server broke the protocol, or OpenSSL failed; with OpenSSL's words.
    case broken(String)
    /// A file of the connection's own settings is of no use.
    case unusableFile(path: String, problem: String)

    /// Whether time alone does not mend it. A certificate that is not valid yet is no such thing: a machine without a
    /// battery for its clock boots in 1970, and a minute later it knows better.
    package var isPermanent: Bool {
        switch self {
        case .certificate(.notYetValid): false
        case .certificate, .noCommonVersion, .noCommonCipher, .noCommonProtocol, .clientCertificateRequired,
            .clientCertificateRefused, .unknownName, .notTLS, .unusableFile:
            true
        case .alert, .endedInHandshake, .timedOut, .truncated, .broken: false
        }
    }
}

/// What is wrong with a server's certificate.
package enum CertificateProblem: Hashable, Sendable {
    /// It, or the certificate of the authority named, was valid until then (RFC 3339, UTC).
    case expired(subject: String, since: String)
    /// It is valid from then on; with what this machine's clock says.
    case notYetValid(subject: String, until: String, clock: String)
    /// It is not this name's; with the names that it is for, the first few.
    case wrongName(wanted: String, found: [String])
    /// It vouches for itself.
    case selfSigned(subject: String)
    /// Nobody who is trusted here vouches for the authority named.
    case unknownIssuer(String)
    /// Its authority took it back.
    case revoked(subject: String)
    /// There is no revocation list of its authority, or an old one, and one is asked for.
    case revocationUnknown(String)
    /// Its key or its signature is too weak for this system's OpenSSL; with OpenSSL's words.
    case weak(String)
    /// It is not made for servers.
    case wrongPurpose
    /// No key that is pinned is in it; with the pin that it has.
    case pinMismatch(found: CertificatePin?)
    /// Anything else, in OpenSSL's words.
    case invalid(String)
}

/// An alert by its number (RFC 8446, section 6, and the registry of IANA).
package struct TLSAlert: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number on the wire.
    package let rawValue: UInt8

    /// An alert.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Its name, as the registry spells it but in words.
    package var description: String {
        Self.names[rawValue] ?? "alert \(rawValue)"
    }

    private static let names: [UInt8: String] = [
        0: "close notify", 10: "unexpected message", 20: "bad record MAC", 22: "record overflow",
        40: "handshake failure", 42: "bad certificate", 43: "unsupported certificate", 44: "certificate revoked",
        45: "certificate expired", 46: "certificate unknown", 47: "illegal parameter", 48: "unknown CA",
        49: "access denied", 50: "decode error", 51: "decrypt error", 70: "protocol version",
        71: "insufficient security", 80: "internal error", 86: "inappropriate fallback", 90: "user canceled",
        100: "no renegotiation", 109: "missing extension", 110: "unsupported extension", 112: "unrecognized name",
        113: "bad certificate status response", 115: "unknown PSK identity", 116: "certificate required",
        120: "no application protocol",
    ]
}

// MARK: - In words

extension TLSFailure: CustomStringConvertible {
    /// In the words of the status line; never ends in a full stop.
    package var description: String {
        switch self {
        case .certificate(let problem): problem.description
        case .noCommonVersion(let minimum): "the server does not speak TLS \(minimum.rawValue) or later"
        case .noCommonCipher: "the server has no cipher in common with this client"
        case .noCommonProtocol(let offered):
            "the server does not speak \(offered.joined(separator: " or ")) on this port"
        case .clientCertificateRequired: "the server wants a client certificate, and this connection has none"
        case .clientCertificateRefused(let alert): "the server refused the client certificate: \(alert)"
        case .unknownName(let name): "the server does not know the name \(name)"
        case .alert(let alert): "the server ended TLS: \(alert)"
        case .notTLS: "the server's answer is not TLS"
        case .endedInHandshake: "the server hung up in the TLS handshake"
        case .timedOut: "the server did not finish the TLS handshake in time"
        case .truncated: "the stream was cut off without TLS's end"
        case .broken(let text): "TLS failed: \(text)"
        case .unusableFile(let path, let problem): "\(path): \(problem)"
        }
    }

    /// What a user can do about it; `nil` where there is nothing but to wait.
    package var advice: String? {
        switch self {
        case .certificate(let problem): problem.advice
        case .noCommonVersion(.v12):
            "older versions of TLS are broken (RFC 8996): the server must be brought up to date"
        case .noCommonVersion(.v13): "allow TLS 1.2 by min_version, or bring the server up to date"
        case .noCommonCipher: "compare the server's ciphers with those of \"openssl ciphers -s\" on this machine"
        case .noCommonProtocol: "check the port, or set alpn to what the server speaks there, or to [] for nothing"
        case .clientCertificateRequired: "name a certificate and a key in the connection's tls"
        case .clientCertificateRefused: "check that the server trusts the issuer of the certificate, and its dates"
        case .unknownName: "check the remote's name, or set server_name to the one that the server has"
        case .notTLS: "check the port; for a port without TLS, use the scheme without it"
        case .unusableFile: "mend the file; it is read again with the next attempt"
        case .alert, .endedInHandshake, .timedOut, .truncated, .broken: nil
        }
    }
}

extension CertificateProblem: CustomStringConvertible {
    /// What is wrong, as a sentence without its full stop.
    package var description: String {
        switch self {
        case .expired(let subject, let since): "the certificate of \(subject) expired on \(since)"
        case .notYetValid(let subject, let until, let clock):
            "the certificate of \(subject) is not valid before \(until), and this machine's clock says \(clock)"
        case .wrongName(let wanted, let found):
            found.isEmpty
                ? "the certificate is not for \(wanted); it has no name (no subjectAltName) at all"
                : "the certificate is not for \(wanted) but for \(found.joined(separator: ", "))"
        case .selfSigned(let subject): "the certificate of \(subject) is self-signed"
        case .unknownIssuer(let issuer): "the certificate's issuer is not trusted here: \(issuer)"
        case .revoked(let subject): "the certificate of \(subject) is revoked"
        case .revocationUnknown(let text): "the certificate's revocation cannot be checked: \(text)"
        case .weak(let text): "the certificate is too weak: \(text)"
        case .wrongPurpose: "the certificate is not made for servers"
        case .pinMismatch(let found?): "the server's key is not pinned; its pin is \(found)"
        case .pinMismatch(nil): "the server's key is not pinned"
        case .invalid(let text): "the certificate is invalid: \(text)"
        }
    }

    fileprivate var advice: String? {
        switch self {
        case .expired: "the server needs a new certificate; if it has one, check this machine's clock"
        case .notYetValid: "check this machine's clock"
        case .wrongName: "check the remote's name, or set server_name to one that the certificate has"
        case .selfSigned: "name the certificate as the connection's ca, or pin its key"
        case .unknownIssuer:
            "name the issuer's certificate as the connection's ca; if the issuer is a public one, the server does not "
                + "send its intermediate certificate, or this machine lacks the package ca-certificates"
        case .revoked: "the server needs a new certificate"
        case .revocationUnknown: "put a current revocation list of the issuer into the connection's ca file"
        case .weak: "the server needs a stronger certificate"
        case .wrongPurpose: "the server needs a certificate with the extended key usage serverAuth"
        case .pinMismatch: "if the server changed its key on purpose, add the new pin; otherwise somebody is in between"
        case .invalid: nil
        }
    }
}
