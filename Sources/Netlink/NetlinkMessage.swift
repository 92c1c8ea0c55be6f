// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import Glibc

/// One message inside a datagram, read in place.
struct NetlinkMessage {
    let header: UnsafeMutablePointer<nlmsghdr>

    var type: Int { Int(header.pointee.nlmsg_type) }
    var sequence: UInt32 { header.pointee.nlmsg_seq }

    /// Whether the dump that this message belongs to was interrupted by a change and may be inconsistent.
    var isInterruptedDump: Bool { CInt(header.pointee.nlmsg_flags) & NLM_F_DUMP_INTR != 0 }

    /// The error number of an `NLMSG_ERROR`, positive; zero for an acknowledgement. A dump that fails on its way has
    /// its error in the `NLMSG_DONE` at its end (`netlink_dump_done` in net/netlink/af_netlink.c). `nil` for any other
    /// message.
    var errorCode: CInt? {
        // Negated without a trap: what arrives is not to be trusted with one.
        switch CInt(type) {
        case NLMSG_ERROR: payload(nlmsgerr.self).map { 0 &- $0.error }
        case NLMSG_DONE: payload(CInt.self).flatMap { $0 < 0 ? 0 &- $0 : nil }
        default: nil
        }
    }

    /// What the kernel says about an error in words (`NLMSGERR_ATTR_MSG`), where it does.
    var explanation: String? {
        guard type == NLMSG_ERROR, CInt(header.pointee.nlmsg_flags) & NLM_F_ACK_TLVS != 0,
            let error = payload(nlmsgerr.self)
        else { return nil }
        // The attributes stand behind the quoted request: the whole of it, or only its header.
        let isCapped = CInt(header.pointee.nlmsg_flags) & NLM_F_CAPPED != 0
        let quoted = isCapped ? 0 : max(0, Int(error.msg.nlmsg_len) - MemoryLayout<nlmsghdr>.size)
        guard let start = CInt(exactly: MemoryLayout<nlmsgerr>.size + quoted) else { return nil }
        let attributes = NetlinkAttributes(
            position: nlmsg_attrdata(header, start), remaining: nlmsg_attrlen(header, start))
        return attributes.first { $0.type == Int(NLMSGERR_ATTR_MSG.rawValue) }?.string
    }

    /// The fixed header of the message's family, or `nil` where the message is too short to hold one.
    func payload<T: BitwiseCopyable>(_: T.Type) -> T? {
        guard nlmsg_valid_hdr(header, CInt(MemoryLayout<T>.size)) != 0 else { return nil }
        return nlmsg_data(header)?.loadUnaligned(as: T.self)
    }

    /// The attributes behind a fixed header of type `T`.
    func attributes<T: BitwiseCopyable>(after _: T.Type) -> NetlinkAttributes {
        let size = CInt(MemoryLayout<T>.size)
        return NetlinkAttributes(position: nlmsg_attrdata(header, size), remaining: nlmsg_attrlen(header, size))
    }

    /// Calls `body` with each message of a datagram.
    static func forEach(in datagram: UnsafeRawBufferPointer, _ body: (NetlinkMessage) throws -> Void) rethrows {
        var remaining = CInt(datagram.count)
        // libnl takes the messages as mutable and does not write to them.
        var next = UnsafeMutableRawPointer(mutating: datagram.baseAddress)?
            .assumingMemoryBound(to: nlmsghdr.self)
        while let header = next, nlmsg_ok(header, remaining) != 0 {
            try body(NetlinkMessage(header: header))
            next = nlmsg_next(header, &remaining)
        }
    }
}

/// The attributes of a message or of a nested attribute, in order.
struct NetlinkAttributes: Sequence, IteratorProtocol {
    fileprivate var position: UnsafeMutablePointer<nlattr>?
    fileprivate var remaining: CInt

    fileprivate init(position: UnsafeMutablePointer<nlattr>?, remaining: CInt) {
        self.position = position
        // libnl takes a negative length for a very large one (`nla_ok`).
        self.remaining = Swift.max(remaining, 0)
    }

    /// The attributes that lie end to end in `bytes`.
    init(in bytes: UnsafeRawBufferPointer) {
        // libnl takes the attributes as mutable and does not write to them.
        position = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: nlattr.self)
        remaining = CInt(bytes.count)
    }

    mutating func next() -> NetlinkAttribute? {
        guard let attribute = position, nla_ok(attribute, remaining) != 0 else { return nil }
        position = nla_next(attribute, &remaining)
        // The padding of the last one may be missing.
        remaining = Swift.max(remaining, 0)
        return NetlinkAttribute(pointer: attribute)
    }
}

/// One attribute, read in place.
struct NetlinkAttribute {
    fileprivate let pointer: UnsafeMutablePointer<nlattr>

    /// Its type, without the flags for nesting and byte order.
    var type: Int { Int(nla_type(pointer)) }

    /// Its bytes.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nla_data(pointer), count: Int(nla_len(pointer))) }

    /// Its value as a 32-bit number in the machine's byte order; `nil` where it is shorter.
    var uint32: UInt32? { bytes.count >= 4 ? bytes.loadUnaligned(as: UInt32.self) : nil }

    /// Its value as text up to the first NUL.
    var string: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }

    /// The attributes inside it.
    var nested: NetlinkAttributes {
        NetlinkAttributes(
            position: nla_data(pointer)?.assumingMemoryBound(to: nlattr.self), remaining: nla_len(pointer))
    }
}

extension Duration {
    /// The ticks of a second in the times that the kernel tells (`USER_HZ`, sysconf(3)).
    private static let ticksPerSecond = Int64(sysconf(CInt(_SC_CLK_TCK)))

    /// A time as the kernel tells it in its messages.
    static func kernelTicks(_ count: Int64) -> Duration { .milliseconds(count * 1000 / ticksPerSecond) }
}
