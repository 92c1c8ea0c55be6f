// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// The keys by which an app's server encrypts for one registration of the app, and the app decrypts (RFC 8291 section
/// 2): a pair of P-256 and a secret of 16 bytes. Who has ``publicKey`` and ``secret`` can send; who has ``stored`` can
/// read.
package struct PushKeys: Hashable, Sendable {
    private static let secretSize = 16

    /// The public half, uncompressed: `p256dh` in a subscription of the Push API.
    package let publicKey: [UInt8]
    /// The authentication secret: `auth` in a subscription of the Push API.
    package let secret: [UInt8]
    private let privateKey: [UInt8]

    /// New keys, of OpenSSL's randomness.
    package init() throws(WebPushError) {
        let key = try CurveKey()
        (publicKey, privateKey) = (try key.point, try key.secret)
        var secret = [UInt8](repeating: 0, count: Self.secretSize)
        guard RAND_bytes(&secret, CInt(secret.count)) == 1 else { throw .ofLibrary() }
        self.secret = secret
    }

    /// Keys that were kept.
    ///
    /// - Parameter stored: what ``stored`` was.
    /// - Returns: `nil` for what is no pair with its secret: a file that was cut or changed.
    package init?(stored: [UInt8]) {
        let size = EncryptedMessage.keySize
        guard stored.count == CurveKey.privateSize + size + Self.secretSize else { return nil }
        privateKey = Array(stored.prefix(CurveKey.privateSize))
        publicKey = Array(stored.dropFirst(CurveKey.privateSize).prefix(size))
        secret = Array(stored.suffix(Self.secretSize))
        guard CurveKey(point: publicKey, secret: privateKey) != nil else { return nil }
    }

    /// What to keep of them, where nobody else can read it: the private half, the public half, the secret.
    package var stored: [UInt8] { privateKey + publicKey + secret }

    /// What the sender encrypted.
    ///
    /// - Parameter message: the body of the sender's request, which may be anything.
    package func decrypt(_ message: [UInt8]) throws(WebPushError) -> [UInt8] {
        let message = try EncryptedMessage(message)
        guard let sender = CurveKey(point: message.senderKey) else { throw .noSenderKey }
        guard let key = CurveKey(point: publicKey, secret: privateKey) else { throw .unusableKeys }
        // RFC 8291 section 3.4, where each name of a purpose ends with a zero.
        let shared = try derivedKey(
            32, from: try key.agreement(with: sender), salt: secret,
            for: Array("WebPush: info\0".utf8) + publicKey + message.senderKey)
        let salt = Array(message.salt)
        let content = try opened(
            message.sealed, tag: message.tag,
            key: try derivedKey(16, from: shared, salt: salt, for: Array("Content-Encoding: aes128gcm\0".utf8)),
            // The first record's number is zero, so nothing is to be mixed into the nonce (RFC 8188 section 2.3).
            nonce: try derivedKey(12, from: shared, salt: salt, for: Array("Content-Encoding: nonce\0".utf8)))
        return try EncryptedMessage.withoutPadding(content)
    }
}
