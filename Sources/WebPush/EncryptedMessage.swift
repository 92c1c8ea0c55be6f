// SPDX-License-Identifier: Apache-2.0

/// A push message as it is sent: the content coding `aes128gcm` (RFC 8188 section 2) as Web Push uses it (RFC 8291
/// section 4). Nothing of it is to be believed before it is decrypted.
struct EncryptedMessage {
    /// The most bytes that a message may have: what each push service carries (RFC 8291 section 4, RFC 8030 section
    /// 7.2).
    static let most = 4096
    /// The bytes of the header: salt, record size, the key's length, the key.
    static let header = saltSize + 4 + 1 + keySize
    /// The fewest bytes: a header, a delimiter, a tag.
    static let fewest = header + 1 + tagSize

    static let saltSize = 16
    static let tagSize = 16
    /// A point of P-256 in the uncompressed form (SEC 1 section 2.3.3): 4, x, y.
    static let keySize = 65
    /// A smaller record has no room for a byte of content (RFC 8188 section 2).
    private static let smallestRecord: UInt32 = 18

    let salt: ArraySlice<UInt8>
    /// The sender's public key, which is of this message alone.
    let senderKey: [UInt8]
    /// The one record, without its tag.
    let sealed: ArraySlice<UInt8>
    let tag: ArraySlice<UInt8>

    /// Cuts a message into its parts.
    init(_ message: [UInt8]) throws(WebPushError) {
        guard message.count <= Self.most else { throw .tooLong(message.count) }
        guard message.count >= Self.fewest else { throw .tooShort(message.count) }
        salt = message.prefix(Self.saltSize)
        let recordSize = message[Self.saltSize..<Self.saltSize + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard message[Self.saltSize + 4] == UInt8(Self.keySize) else { throw .noSenderKey }
        senderKey = Array(message[Self.saltSize + 5..<Self.header])
        let record = message[Self.header...]
        // The last record may be as long as the others, and there must be no others.
        guard recordSize >= Self.smallestRecord, record.count <= Int(recordSize) else {
            throw .recordSize(Int(recordSize))
        }
        sealed = record.dropLast(Self.tagSize)
        tag = record.suffix(Self.tagSize)
    }

    /// What stands before the delimiter of the last record, 2, and the zeros after it (RFC 8188 section 2).
    static func withoutPadding(_ opened: [UInt8]) throws(WebPushError) -> [UInt8] {
        guard let delimiter = opened.lastIndex(where: { $0 != 0 }), opened[delimiter] == 2 else {
            throw .noDelimiter
        }
        return Array(opened[..<delimiter])
    }
}
