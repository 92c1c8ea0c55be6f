// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

// What Web Push takes of OpenSSL, each with what it was given checked.

extension WebPushError {
    /// What OpenSSL says of the call before, for a failure that no input explains.
    static func ofLibrary() -> WebPushError {
        let code = ERR_get_error()
        ERR_clear_error()
        return .library(ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)")
    }
}

/// One output of HMAC-SHA-256 (RFC 2104).
func authenticationCode(_ data: [UInt8], key: [UInt8]) throws(WebPushError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var size = 0
    let made = EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key, key.count, data, data.count, &code, code.count, &size)
    guard made != nil, size == code.count else { throw .ofLibrary() }
    return code
}

/// HKDF-SHA-256 (RFC 5869) for as many bytes as one block has, which is all that Web Push needs.
func derivedKey(
    _ size: Int, from secret: [UInt8], salt: [UInt8], for purpose: [UInt8]
) throws(WebPushError) -> [UInt8] {
    let key = try authenticationCode(secret, key: salt)
    return Array(try authenticationCode(purpose + [1], key: key).prefix(size))
}

/// Opens what AEAD_AES_128_GCM sealed (RFC 5116) without associated data.
///
/// - Throws: ``WebPushError/notAuthentic`` where the tag is not of this content and key.
func opened(
    _ sealed: ArraySlice<UInt8>, tag: ArraySlice<UInt8>, key: [UInt8], nonce: [UInt8]
) throws(WebPushError) -> [UInt8] {
    ERR_clear_error()
    guard let context = EVP_CIPHER_CTX_new() else { throw .ofLibrary() }
    defer { EVP_CIPHER_CTX_free(context) }
    // GCM's nonce of 96 bits is OpenSSL's own default.
    guard EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1 else { throw .ofLibrary() }
    let (sealed, tag) = (Array(sealed), Array(tag))
    var content = [UInt8](repeating: 0, count: sealed.count)
    var (count, rest) = (CInt(0), CInt(0))
    guard EVP_DecryptUpdate(context, &content, &count, sealed, CInt(clamping: sealed.count)) == 1 else {
        throw .ofLibrary()
    }
    var expected = tag
    let isSet = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CInt(expected.count), &expected) == 1
    var none: [UInt8] = [0]
    guard isSet, EVP_DecryptFinal_ex(context, &none, &rest) == 1 else {
        ERR_clear_error()
        throw .notAuthentic
    }
    return content
}
