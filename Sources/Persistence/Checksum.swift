// SPDX-License-Identifier: Apache-2.0

/// CRC-32 as Ethernet and gzip have it (RFC 1952, section 8): tells a record that was written whole from one that was
/// not.
enum Checksum {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1 }
    }

    /// The checksum of `bytes`.
    static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
        let table = table
        return ~bytes.reduce(~UInt32(0)) { value, byte in
            value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)]
        }
    }
}
