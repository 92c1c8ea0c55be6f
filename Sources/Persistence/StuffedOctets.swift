// SPDX-License-Identifier: Apache-2.0

/// Octets without a line end among them, so that they fit in a line of a file: octet stuffing as in PPP (RFC 1662,
/// section 4.2), with the line end in the place of PPP's flag.
enum StuffedOctets {
    private static let escape: UInt8 = 0x7D
    /// What an escaped octet is combined with, by exclusive or.
    private static let mask: UInt8 = 0x20
    private static let lineEnd = UInt8(ascii: "\n")

    static func stuffed(_ octets: some Collection<UInt8>) -> [UInt8] {
        var stuffed: [UInt8] = []
        // About one octet in a hundred is escaped.
        stuffed.reserveCapacity(octets.count + octets.count / 64)
        for octet in octets {
            if octet == lineEnd || octet == escape {
                stuffed += [escape, octet ^ mask]
            } else {
                stuffed.append(octet)
            }
        }
        return stuffed
    }

    /// The octets that were stuffed; `nil` where these are none that ``stuffed(_:)`` writes.
    static func plain(_ stuffed: some Sequence<UInt8>) -> [UInt8]? {
        var plain: [UInt8] = []
        var isEscaped = false
        for octet in stuffed {
            if isEscaped {
                guard [lineEnd, escape].contains(octet ^ mask) else { return nil }
                plain.append(octet ^ mask)
                isEscaped = false
            } else if octet == escape {
                isEscaped = true
            } else {
                plain.append(octet)
            }
        }
        return isEscaped ? nil : plain
    }
}
