// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc

@testable import DialtoneNetlink

/// An attribute's bytes: its head, its value, and what pads it to four bytes.
func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
    let head = nlattr(nla_len: UInt16(4 + value.count), nla_type: UInt16(type))
    return padded(bytes(of: head) + value)
}

/// An attribute that holds text, with the NUL at its end.
func attribute(_ type: Int, text: String) -> [UInt8] { attribute(type, Array(text.utf8) + [0]) }

/// An attribute that holds a number in the machine's byte order.
func attribute(_ type: Int, number: UInt32) -> [UInt8] { attribute(type, bytes(of: number)) }

/// An attribute that holds an address.
func attribute(_ type: Int, address: IPAddress) -> [UInt8] { attribute(type, address.bytes) }

/// A whole message: its head, the fixed header of its family, and what stands behind it.
func message<Header: BitwiseCopyable>(
    _ type: some BinaryInteger, _ header: Header, flags: CInt = 0, sequence: UInt32 = 0, _ rest: [UInt8] = []
) -> [UInt8] {
    let body = padded(bytes(of: header)) + rest
    let head = nlmsghdr(
        nlmsg_len: UInt32(MemoryLayout<nlmsghdr>.size + body.count), nlmsg_type: UInt16(type),
        nlmsg_flags: UInt16(flags), nlmsg_seq: sequence, nlmsg_pid: 0)
    return bytes(of: head) + body
}

/// An error message as the kernel's `netlink_ack` makes it: the quoted request, whole unless capped, then attributes.
func errorMessage(
    _ code: CInt, quoting request: [UInt8], isCapped: Bool, explanation: String? = nil, sequence: UInt32 = 0
) -> [UInt8] {
    var flags: CInt = isCapped ? NLM_F_CAPPED : 0
    var rest = isCapped ? Array(request[..<16]) : padded(request)
    if let explanation {
        flags |= NLM_F_ACK_TLVS
        rest += attribute(Int(NLMSGERR_ATTR_MSG.rawValue), text: explanation)
    }
    return message(NLMSG_ERROR, -code, flags: flags, sequence: sequence, rest)
}

/// A link message of `ifinfomsg` and the usual attributes.
func linkMessage(
    type: Int = RTM_NEWLINK, index: CInt = 2, name: String = "eth7", flags: [net_device_flags] = [],
    family: CInt = AF_UNSPEC, hardware: CInt = ARPHRD_ETHER, _ rest: [UInt8] = []
) -> [UInt8] {
    var header = ifinfomsg()
    header.ifi_family = UInt8(family)
    header.ifi_type = UInt16(hardware)
    header.ifi_index = index
    header.ifi_flags = flags.reduce(0) { $0 | $1.rawValue }
    return message(type, header, attribute(Int(IFLA_IFNAME), text: name) + rest)
}

/// `IFLA_LINKINFO` with the driver's name in it, behind another attribute, as bridges' ports have.
func linkInfo(driver: String) -> [UInt8] {
    attribute(
        Int(IFLA_LINKINFO),
        attribute(Int(IFLA_INFO_SLAVE_KIND), text: "bridge") + attribute(Int(IFLA_INFO_KIND), text: driver))
}

/// A neighbour message with `NDA_DST` first, where the kernel puts it.
func neighbourMessage(
    _ address: IPAddress, type: Int = RTM_NEWNEIGH, index: CInt = 2, state: CInt, family: CInt? = nil
) -> [UInt8] {
    var header = ndmsg()
    header.ndm_family = UInt8(family ?? (address.family == .v4 ? AF_INET : AF_INET6))
    header.ndm_ifindex = index
    header.ndm_state = UInt16(state)
    return message(
        type, header, attribute(Int(NDA_DST), address: address) + attribute(Int(NDA_LLADDR), [2, 0, 0, 0, 0, 1]))
}

/// The bytes of a C structure.
func bytes<T: BitwiseCopyable>(of value: T) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

private func padded(_ bytes: [UInt8]) -> [UInt8] { bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4) }

/// What `body` makes of each message of a datagram, where that is something.
func decoding<T>(_ datagram: [UInt8], _ body: (NetlinkMessage) -> T?) -> [T] {
    withGuardedBytes(datagram) { bytes in
        var results: [T] = []
        NetlinkMessage.forEach(in: bytes) { message in
            if let result = body(message) { results.append(result) }
        }
        return results
    }
}

/// The events in a datagram.
func events(_ datagram: [UInt8]) -> [KernelEvent] {
    var kinds = InterfaceKinds()
    return decoding(datagram) { KernelEvent($0, kinds: &kinds) }
}

/// Calls `body` with `bytes` laid so that the page behind their end cannot be read: an access past it is a crash.
func withGuardedBytes<T>(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    let page = Int(sysconf(CInt(_SC_PAGESIZE)))
    let room = max(1, (bytes.count + page - 1) / page) * page
    guard let start = mmap(nil, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        start != MAP_FAILED, mprotect(start + room, page, PROT_NONE) == 0
    else { preconditionFailure("no memory for a guarded buffer") }
    defer { munmap(start, room + page) }
    // The kernel's messages begin at multiples of four, so up to three bytes lie between an odd end and the guard.
    let place = start + room - (bytes.count + 3) / 4 * 4
    place.copyMemory(from: bytes, byteCount: bytes.count)
    return try body(UnsafeRawBufferPointer(start: place, count: bytes.count))
}
