// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A recording is a pcapng file (draft-ietf-opsawg-pcapng) of the link type that nlmon devices have, so that Wireshark
/// reads it. `docs/recording.md` describes it; these are its numbers.
enum RecordingFormat {
    /// The version of what the marks say. A reader refuses a later one.
    static let version = 1

    static let sectionHeader: UInt32 = 0x0A0D_0D0A
    static let interfaceDescription: UInt32 = 1
    static let enhancedPacket: UInt32 = 6
    static let byteOrderMagic: UInt32 = 0x1A2B_3C4D

    /// LINKTYPE_NETLINK (https://www.tcpdump.org/linktypes/LINKTYPE_NETLINK.html).
    static let linkType: UInt16 = 253
    /// ARPHRD_NETLINK of linux/if_arp.h, in the header before each message.
    static let hardware: UInt16 = 824
    /// The length of that header.
    static let cookedHeaderSize = 16
    /// PACKET_USER and PACKET_KERNEL of linux/if_packet.h: where the message went.
    static let toUser: UInt16 = 6
    static let toKernel: UInt16 = 7
    /// NETLINK_ROUTE, and NETLINK_USERSOCK for what is no message of the kernel.
    static let route: UInt16 = 0
    static let userSocket: UInt16 = 2

    /// Numbers of options.
    static let endOfOptions: UInt16 = 0
    static let comment: UInt16 = 1
    static let interfaceName: UInt16 = 2
    static let system: UInt16 = 3
    static let application: UInt16 = 4
    static let timestampResolution: UInt16 = 9
    /// Ten to the minus ninth: timestamps count nanoseconds.
    static let nanoseconds: UInt8 = 9

    /// The longest value an option may have, less a rest for its padding.
    static let longestComment = 65_000
}

/// Builds the blocks of a recording at the end of a buffer.
extension [UInt8] {
    mutating func put(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value) { append(contentsOf: $0) }
    }

    /// Appends a block; `body` appends what stands between its two lengths.
    mutating func putBlock(_ type: UInt32, _ body: (inout [UInt8]) -> Void) {
        let start = count
        put(type)
        put(UInt32(0))
        body(&self)
        let length = UInt32(count - start + 4)
        put(length)
        Swift.withUnsafeBytes(of: length) { replaceSubrange(start + 4..<start + 8, with: $0) }
    }

    mutating func putOption(_ code: UInt16, _ value: some Collection<UInt8>) {
        put(code)
        put(UInt16(value.count))
        append(contentsOf: value)
        pad()
    }

    mutating func putEndOfOptions() {
        put(RecordingFormat.endOfOptions)
        put(UInt16(0))
    }

    mutating func pad() {
        while !count.isMultiple(of: 4) { append(0) }
    }

    /// Appends the section's header and the description of each channel: what every recording begins with.
    mutating func putRecordingHeader(program: String) {
        putBlock(RecordingFormat.sectionHeader) { block in
            block.put(RecordingFormat.byteOrderMagic)
            block.put(UInt16(1))
            block.put(UInt16(0))
            // How long the section is going to be is not known.
            block.put(Int64(-1))
            block.putOption(RecordingFormat.system, Array(kernelRelease().utf8))
            block.putOption(RecordingFormat.application, Array(program.utf8))
            block.putEndOfOptions()
        }
        for channel in RecordingChannel.allCases {
            putBlock(RecordingFormat.interfaceDescription) { block in
                block.put(RecordingFormat.linkType)
                block.put(UInt16(0))
                // No limit to the length of a packet.
                block.put(UInt32(0))
                block.putOption(RecordingFormat.interfaceName, Array(channel.rawValue.utf8))
                block.putOption(RecordingFormat.timestampResolution, [RecordingFormat.nanoseconds])
                block.putEndOfOptions()
            }
        }
    }

    /// Appends one packet: netlink messages, or with a comment a mark.
    mutating func putPacket(
        _ channel: RecordingChannel, timestamp: UInt64, direction: UInt16, protocol family: UInt16,
        _ bytes: UnsafeRawBufferPointer, comment: String? = nil
    ) {
        putBlock(RecordingFormat.enhancedPacket) { block in
            let length = UInt32(RecordingFormat.cookedHeaderSize + bytes.count)
            block.put(UInt32(channel.number))
            block.put(UInt32(truncatingIfNeeded: timestamp >> 32))
            block.put(UInt32(truncatingIfNeeded: timestamp))
            block.put(length)
            block.put(length)
            block.put(direction.bigEndian)
            block.put(RecordingFormat.hardware.bigEndian)
            block.append(contentsOf: [UInt8](repeating: 0, count: 10))
            block.put(family.bigEndian)
            block.append(contentsOf: bytes)
            block.pad()
            if let comment {
                block.putOption(RecordingFormat.comment, comment.utf8.prefix(RecordingFormat.longestComment))
                block.putEndOfOptions()
            }
        }
    }
}

/// `6.1.0-40-amd64`: which kernel's messages they are.
private func kernelRelease() -> String {
    var name = utsname()
    uname(&name)
    return withUnsafeBytes(of: name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

/// Where a record comes from; a pcapng "interface" of its own, so that Wireshark can filter by it.
package enum RecordingChannel: String, Sendable, CaseIterable {
    /// The socket on which the kernel tells of changes.
    case notices
    /// The socket on which it tells of gateways.
    case neighbours
    /// Our questions and its answers.
    case requests
    /// Marks: what else the verdicts depended on, and the verdicts.
    case agent

    /// Its number in the file: the place of its description.
    var number: Int {
        switch self {
        case .notices: 0
        case .neighbours: 1
        case .requests: 2
        case .agent: 3
        }
    }
}
