// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// A key of the curve P-256 (secp256r1), public or with its private half.
struct CurveKey: ~Copyable {
    /// The bytes of the private half: a number, big-endian.
    static let privateSize = 32

    /// OpenSSL is set up without its exit handler, which would take its tables down while a thread may still decrypt.
    private static let isReady = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    private let key: OpaquePointer

    deinit { EVP_PKEY_free(key) }

    /// A new pair.
    init() throws(WebPushError) {
        guard Self.isReady, let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw .ofLibrary() }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw .ofLibrary() }
        self.key = key
    }

    /// A key of its parts.
    ///
    /// - Parameters:
    ///   - point: the public half, uncompressed. It is checked to be on the curve.
    ///   - secret: the private half, big-endian; `nil` for a public key. It is checked to be of that point.
    /// - Returns: `nil` where they are no such key.
    init?(point: [UInt8], secret: [UInt8]? = nil) {
        guard Self.isReady, point.count == EncryptedMessage.keySize, point.first == 4,
            let key = Self.made(point: point, secret: secret)
        else {
            ERR_clear_error()
            return nil
        }
        self.key = key
    }

    private static func made(point: [UInt8], secret: [UInt8]?) -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil), let builder = OSSL_PARAM_BLD_new() else {
            return nil
        }
        let number = secret.flatMap { BN_bin2bn($0, CInt(clamping: $0.count), nil) }
        defer {
            EVP_PKEY_CTX_free(context)
            OSSL_PARAM_BLD_free(builder)
            BN_clear_free(number)
        }
        // The builder reads what it was given, names as well, when it is turned into parameters, and not before.
        return point.withUnsafeBytes { point -> OpaquePointer? in
            guard OSSL_PARAM_BLD_push_utf8_string(builder, constant("group"), constant("P-256"), 0) == 1,
                OSSL_PARAM_BLD_push_octet_string(builder, constant("pub"), point.baseAddress, point.count) == 1,
                secret == nil || OSSL_PARAM_BLD_push_BN(builder, constant("priv"), number) == 1,
                let parameters = OSSL_PARAM_BLD_to_param(builder)
            else { return nil }
            defer { OSSL_PARAM_free(parameters) }
            var key: OpaquePointer?
            let selection = secret == nil ? copenssl_public_key : copenssl_key_pair
            guard EVP_PKEY_fromdata_init(context) == 1,
                EVP_PKEY_fromdata(context, &key, selection, parameters) == 1, let key
            else { return nil }
            if isSound(key, isPair: secret != nil) { return key }
            EVP_PKEY_free(key)
            return nil
        }
    }

    /// A text that stays where it is.
    private static func constant(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    private static func isSound(_ key: OpaquePointer, isPair: Bool) -> Bool {
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else { return false }
        defer { EVP_PKEY_CTX_free(context) }
        return (isPair ? EVP_PKEY_check(context) : EVP_PKEY_public_check(context)) == 1
    }

    /// The public half, uncompressed.
    var point: [UInt8] {
        get throws(WebPushError) {
            var point = [UInt8](repeating: 0, count: EncryptedMessage.keySize)
            var size = 0
            guard EVP_PKEY_get_octet_string_param(key, "pub", &point, point.count, &size) == 1,
                size == point.count
            else { throw .ofLibrary() }
            return point
        }
    }

    /// The private half, big-endian.
    var secret: [UInt8] {
        get throws(WebPushError) {
            var number: OpaquePointer?
            guard EVP_PKEY_get_bn_param(key, "priv", &number) == 1, let number else { throw .ofLibrary() }
            defer { BN_clear_free(number) }
            var secret = [UInt8](repeating: 0, count: Self.privateSize)
            guard BN_bn2binpad(number, &secret, CInt(secret.count)) == CInt(secret.count) else { throw .ofLibrary() }
            return secret
        }
    }

    /// What both ends of a Diffie-Hellman exchange come to (RFC 8291 section 3.1).
    borrowing func agreement(with peer: borrowing CurveKey) throws(WebPushError) -> [UInt8] {
        ERR_clear_error()
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else { throw .ofLibrary() }
        defer { EVP_PKEY_CTX_free(context) }
        var secret = [UInt8](repeating: 0, count: Self.privateSize)
        var size = secret.count
        guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, peer.key) == 1,
            EVP_PKEY_derive(context, &secret, &size) == 1, size == secret.count
        else { throw .ofLibrary() }
        return secret
    }

    /// Whether `signature` (r and s, 32 bytes each: RFC 7518 section 3.4) is this key's ECDSA-SHA-256 of `content`.
    borrowing func verifies(_ signature: [UInt8], of content: [UInt8]) -> Bool {
        guard signature.count == 2 * Self.privateSize, let value = ECDSA_SIG_new() else { return false }
        defer {
            ECDSA_SIG_free(value)
            ERR_clear_error()
        }
        let halves = (Array(signature.prefix(Self.privateSize)), Array(signature.suffix(Self.privateSize)))
        let numbers = (
            BN_bin2bn(halves.0, CInt(Self.privateSize), nil), BN_bin2bn(halves.1, CInt(Self.privateSize), nil)
        )
        // Both are the signature's own from here on.
        guard ECDSA_SIG_set0(value, numbers.0, numbers.1) == 1 else {
            BN_free(numbers.0)
            BN_free(numbers.1)
            return false
        }
        var encoded: UnsafeMutablePointer<UInt8>?
        let size = i2d_ECDSA_SIG(value, &encoded)
        guard size > 0, let encoded, let context = EVP_MD_CTX_new() else { return false }
        defer {
            CRYPTO_free(encoded, #fileID, #line)
            EVP_MD_CTX_free(context)
        }
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, encoded, Int(size), content, content.count) == 1
    }
}
