// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection

/// What a server can have this process compute before it is known to be anybody: the handshake runs on a
/// thread that others wait for, and OpenSSL's own bounds let a single message cost a second.
///
/// With these the worst that was found is some 10 ms: ten certificates with keys on rare curves take 1 ms each to be
/// decoded by OpenSSL 3.0, and their signatures, P-384, 0.7 ms each to be verified.
enum ComputingBounds {
    /// The bytes of a server's list of certificates; OpenSSL takes 100 KiB, and decodes as many certificates as fit
    /// there, 0.2 to 1 ms each. A chain has 3 to 8 KiB; certificates for some hundreds of names have more.
    static let longestList = 32 * 1024

    /// The certificates in it. A chain has two to four; servers that send a root, and a second one, along have six.
    static let mostCertificates = 10

    /// The bits of an RSA key: 0.3 ms for a signature at 8,192, where OpenSSL takes 16,384. Go has the same bound since
    /// a certificate of its users' servers could keep them busy for seconds (CVE-2023-29409).
    static let longestRSA: CInt = 8192

    /// The bits of an RSA key's exponent, which is 65,537 everywhere; as long as the key, it costs 15 ms. Go's bound.
    static let longestExponent: CInt = 31

    /// The curves of certificates: those that the CA/Browser Forum allows. Those that OpenSSL has besides are slower.
    static let curves: Set = ["prime256v1", "secp384r1", "secp521r1"]

    static func set(on context: OpaquePointer) {
        copenssl_set_max_certificate_list(context, CLong(longestList))
        SSL_CTX_set_security_callback(context, isAllowed)
        SSL_CTX_set_msg_callback(context, messageArrived)
    }

    /// What is wrong with one of the certificates that a server sent, or with the key that it has.
    static func excess(of chain: OpaquePointer) -> CertificateProblem? {
        let sent = X509_STORE_CTX_get0_untrusted(chain)
        let count = max(OPENSSL_sk_num(sent), 0)
        if count > mostCertificates { return tooMany }
        for index in 0..<count {
            let certificate = OPENSSL_sk_value(sent, index).map { OpaquePointer($0) }
            if let problem = excess(ofKey: X509_get0_pubkey(certificate)) { return problem }
        }
        return excess(ofKey: X509_get0_pubkey(X509_STORE_CTX_get0_cert(chain)))
    }

    private static let tooMany = CertificateProblem.invalid(
        "the server sends more than \(mostCertificates) certificates")

    private static func excess(ofKey key: OpaquePointer?) -> CertificateProblem? {
        // A key that OpenSSL cannot read has nothing computed with it.
        guard let key else { return nil }
        if EVP_PKEY_is_a(key, "RSA") == 1 || EVP_PKEY_is_a(key, "RSA-PSS") == 1 {
            if EVP_PKEY_get_bits(key) > longestRSA {
                return .invalid("its RSA key is longer than \(longestRSA) bits")
            }
            return exponentBits(of: key) > longestExponent ? .invalid("its RSA key has a long exponent") : nil
        }
        if EVP_PKEY_is_a(key, "EC") == 1 {
            return curve(of: key).map { curves.contains($0) } == true
                ? nil : .invalid("its key is on none of the curves P-256, P-384 and P-521")
        }
        return EVP_PKEY_is_a(key, "ED25519") == 1 || EVP_PKEY_is_a(key, "ED448") == 1
            ? nil : .invalid("its key is neither RSA nor on an elliptic curve")
    }

    private static func exponentBits(of key: OpaquePointer) -> CInt {
        var exponent: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, "e", &exponent) == 1 else { return .max }
        defer { BN_free(exponent) }
        return BN_num_bits(exponent)
    }

    private static func curve(of key: OpaquePointer) -> String? {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1, length < name.count else { return nil }
        return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether a list of certificates, as it came in the message of a handshake, has more than are read.
    ///
    /// - Parameter body: the message without its header (RFC 5246, section 7.4.2, and RFC 8446, section 4.4.2).
    static func isTooLong(_ body: UnsafeRawBufferPointer, version: CInt) -> Bool {
        let hasExtensions = version >= TLS1_3_VERSION
        var rest = body[...]
        func length(_ bytes: Int) -> Int? {
            guard rest.count >= bytes else { return nil }
            defer { rest = rest.dropFirst(bytes) }
            return rest.prefix(bytes).reduce(0) { $0 << 8 | Int($1) }
        }
        if hasExtensions { rest = rest.dropFirst(length(1) ?? 0) }
        _ = length(3)
        var count = 0
        while let size = length(3) {
            count += 1
            if count > mostCertificates { return true }
            rest = rest.dropFirst(size)
            if hasExtensions { rest = rest.dropFirst(length(2) ?? 0) }
        }
        return false
    }

    /// The problem of a list that ``isTooLong(_:version:)``.
    static var problemOfLongList: CertificateProblem { tooMany }
}

/// OpenSSL's own rule, which has an administrator's security level.
private let standing: SecurityCallback? = {
    let context = SSL_CTX_new(TLS_client_method())
    defer { SSL_CTX_free(context) }
    return SSL_CTX_get_security_callback(context)
}()

private typealias SecurityCallback =
    @convention(c) (
        OpaquePointer?, OpaquePointer?, CInt, CInt, CInt, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
    ) -> CInt

/// OpenSSL's rule, and no exchange of keys over a finite field: in TLS 1.2 the server chooses the group and proves
/// nothing of it (RFC 7919, section 1), and one of 10,000 bits takes 0.8 s; the largest named one takes 30 ms.
private func isAllowed(
    _ session: OpaquePointer?, _ context: OpaquePointer?, _ operation: CInt, _ bits: CInt, _ number: CInt,
    _ other: UnsafeMutableRawPointer?, _ extra: UnsafeMutableRawPointer?
) -> CInt {
    guard let standing, standing(session, context, operation, bits, number, other, extra) == 1 else { return 0 }
    switch operation & copenssl_security_other_type {
    case copenssl_security_dh:
        return 0
    case copenssl_security_cipher:
        let exchange = other.map { SSL_CIPHER_get_kx_nid(OpaquePointer($0)) }
        return exchange == NID_kx_dhe || exchange == NID_kx_dhe_psk ? 0 : 1
    case copenssl_security_group:
        // The group's number on the wire; those of finite fields are 256 and more (RFC 7919, section 2).
        return other?.load(as: UInt8.self) == 1 ? 0 : 1
    default:
        return 1
    }
}

/// Ends the handshake of a server that sends more certificates than are read, before they are decoded.
///
/// The list's length is made one that no list has, so that OpenSSL finds the message malformed. It hands out its own
/// buffer here, and has no other way to refuse a message; were it a copy, ``ComputingBounds/excess(of:)`` would refuse
/// the same list, decoded.
private func messageArrived(
    _ isWritten: CInt, _ version: CInt, _ type: CInt, _ start: UnsafeRawPointer?, _ count: Int,
    _ session: OpaquePointer?, _ argument: UnsafeMutableRawPointer?
) {
    let header = Int(SSL3_HM_HEADER_LENGTH)
    guard isWritten == 0, type == SSL3_RT_HANDSHAKE, let start, count > header,
        start.load(as: UInt8.self) == UInt8(SSL3_MT_CERTIFICATE)
    else { return }
    let body = UnsafeRawBufferPointer(start: start + header, count: count - header)
    guard ComputingBounds.isTooLong(body, version: version) else { return }
    UnsafeMutableRawBufferPointer(mutating: body).initializeMemory(as: UInt8.self, repeating: 0xFF)
    TLSSession.of(session)?.certificatesRefused()
}
