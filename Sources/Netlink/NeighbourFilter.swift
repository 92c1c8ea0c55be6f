// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath

/// The classic BPF program that lets through only what is told of certain gateways.
///
/// On a busy network the neighbour group carries a message for each of thousands of hosts, again and again. Filtered in
/// the kernel they never wake this process. What passes: a gateway's failure and the removal of its entry; of one that
/// is awaited its recovery too. A healthy gateway's way through `STALE`, `DELAY`, `PROBE` and `REACHABLE` says nothing
/// new.
struct NeighbourFilter {
    /// Beyond this many gateways only the state is filtered. The kernel charges a filter to its socket, up to
    /// `net.core.optmem_max`, 20 KiB on older kernels; an IPv6 gateway was measured to take 500 bytes of it, and while
    /// one filter replaces another both are charged. A machine with more than sixteen gateways in use is a rare one.
    static let mostAddresses = 16

    private(set) var program: [sock_filter] = []

    /// A filter for `addresses` and those `awaited`; with `nil` for all there are, whose recovery passes if any is
    /// awaited.
    init(for addresses: Set<IPAddress>?, awaited: Set<IPAddress>) {
        let all = addresses.map { $0.union(awaited) }
        guard let all, all.count <= Self.mostAddresses else {
            load(BPF_H, at: Self.type)
            skipIf(BPF_JEQ, Self.asLoaded(UInt16(RTM_DELNEIGH)), count: 3)
            load(BPF_H, at: Self.state)
            let states = awaited.isEmpty ? NUD_FAILED : NUD_FAILED | KernelEvent.answering
            skipIf(BPF_JSET, Self.asLoaded(UInt16(states)), count: 1)
            drop()
            accept()
            return
        }
        // The healthy ones first, so that good news goes past them.
        var healthy = NeighbourFilter()
        for address in all.subtracting(awaited) { healthy.acceptIfDestination(is: address) }
        load(BPF_H, at: Self.type)
        skipIf(BPF_JEQ, Self.asLoaded(UInt16(RTM_DELNEIGH)), count: 5)
        load(BPF_H, at: Self.state)
        skipIf(BPF_JSET, Self.asLoaded(UInt16(NUD_FAILED)), count: 3)
        skipIf(BPF_JSET, Self.asLoaded(UInt16(KernelEvent.answering)), count: 1)
        drop()
        jump(over: UInt32(healthy.program.count))
        program += healthy.program
        for address in awaited { acceptIfDestination(is: address) }
        drop()
    }

    private init() {}

    // struct nlmsghdr: length 4, type 2 at 4; struct ndmsg from 16: family at 16, state at 24; first attribute at 28,
    // its value at 32. The kernel puts NDA_DST first (neigh_fill_info in net/core/neighbour.c).
    private static let (type, state, destination): (UInt32, UInt32, UInt32) = (4, 24, 32)

    /// A host-order 16-bit field as `BPF_LD | BPF_ABS`, which reads in network order, loads it.
    private static func asLoaded(_ value: UInt16) -> UInt32 { UInt32(value.bigEndian) }

    private mutating func acceptIfDestination(is address: IPAddress) {
        let words = stride(from: 0, to: address.bytes.count, by: 4).map { start in
            address.bytes[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for (position, word) in words.enumerated() {
            load(BPF_W, at: Self.destination + UInt32(4 * position))
            // Two instructions a remaining word, and the accepting one.
            skipUnless(BPF_JEQ, word, count: UInt8(2 * (words.count - 1 - position) + 1))
        }
        accept()
    }

    private mutating func load(_ size: CInt, at offset: UInt32) { append(BPF_LD | BPF_ABS | size, offset) }
    private mutating func skipUnless(_ test: CInt, _ value: UInt32, count: UInt8) {
        append(BPF_JMP | BPF_K | test, value, else: count)
    }
    private mutating func skipIf(_ test: CInt, _ value: UInt32, count: UInt8) {
        append(BPF_JMP | BPF_K | test, value, then: count)
    }
    private mutating func jump(over count: UInt32) { append(BPF_JMP | BPF_JA, count) }
    private mutating func accept() { append(BPF_RET | BPF_K, .max) }
    private mutating func drop() { append(BPF_RET | BPF_K, 0) }

    private mutating func append(_ code: CInt, _ value: UInt32, then: UInt8 = 0, else other: UInt8 = 0) {
        program.append(sock_filter(code: UInt16(code), jt: then, jf: other, k: value))
    }
}
