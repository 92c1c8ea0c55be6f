// SPDX-License-Identifier: Apache-2.0

/// Why a push message could not be read: what was tried and what came back, as the end of a sentence.
package enum WebPushError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It has more bytes than a push service must carry (RFC 8291 section 4: 4096).
    case tooLong(Int)
    /// It has fewer bytes than a header, a padding delimiter and an authentication tag.
    case tooShort(Int)
    /// Its header does not name a sender's key of P-256 in the uncompressed form (RFC 8291 section 4).
    case noSenderKey
    /// Its record size is none, or the message has several records, which a sender must not make (RFC 8291 section 4).
    case recordSize(Int)
    /// The authentication tag is wrong: it was encrypted for other keys, or changed on its way.
    case notAuthentic
    /// What was encrypted ends without the delimiter of a last record (RFC 8188 section 2).
    case noDelimiter
    /// The keys that were kept are no key pair of P-256 with a secret of 16 bytes.
    case unusableKeys
    /// OpenSSL failed for a reason of its own, in its words.
    case library(String)

    package var description: String {
        switch self {
        case .tooLong(let count):
            "the message has \(count) bytes, and a push message at most \(EncryptedMessage.most)"
        case .tooShort(let count):
            """
            the message has \(count) bytes, and an encrypted one at least \(EncryptedMessage.fewest): the sender must \
            encrypt it (RFC 8291, aes128gcm)
            """
        case .noSenderKey:
            "the message's header names no key of P-256: the sender must encrypt it (RFC 8291, aes128gcm)"
        case .recordSize(let size):
            "the message is not one record of at most \(size) bytes: the sender must encrypt it as one (RFC 8291)"
        case .notAuthentic:
            "the message was encrypted for other keys, or changed on its way: give the sender the keys of today"
        case .noDelimiter:
            "the message's padding does not end with the delimiter of a last record (RFC 8188)"
        case .unusableKeys:
            "the keys that were kept are no key pair of P-256 with its secret"
        case .library(let text):
            "OpenSSL: \(text)"
        }
    }
}
