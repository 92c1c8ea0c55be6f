// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Glibc
import Testing

@testable import DialtoneNetlink

struct NeighbourFilterTests {
    private static let gateway4 = IPAddress(v4: 0xC000_0201)
    private static let gateway6 = IPAddress(v6: 0xFE80 << 112 | 0xDEAD_BEEF)
    private static let states = [
        NUD_NONE, NUD_INCOMPLETE, NUD_REACHABLE, NUD_STALE, NUD_DELAY, NUD_PROBE, NUD_FAILED, NUD_NOARP, NUD_PERMANENT,
    ]

    @Test(arguments: [0, 1, 2, 5, NeighbourFilter.mostAddresses / 2], Awaited.allCases)
    func `only what matters of the watched gateways passes`(count: Int, which: Awaited) throws {
        let gateways = gateways(count)
        let awaited = which.of(gateways)
        let machine = SocketFilterMachine(program: NeighbourFilter(for: Set(gateways), awaited: awaited).program)
        for message in messages(of: gateways, state: Self.states) {
            let matters = message.matters(isAwaited: awaited.contains(message.address))
            #expect(try machine.accepts(message.bytes) == matters, "\(message)")
        }
        for message in messages(of: strangers(to: gateways), state: Self.states) {
            #expect(try !machine.accepts(message.bytes), "\(message)")
        }
    }

    /// Beyond what the kernel may hold, the state alone decides.
    @Test(arguments: Awaited.allCases)
    func `of too many gateways the state alone decides`(which: Awaited) throws {
        let gateways = gateways(NeighbourFilter.mostAddresses / 2 + 1)
        let awaited = which.of(gateways)
        let filter = NeighbourFilter(for: Set(gateways), awaited: awaited)
        #expect(filter.program.count < 16)
        let machine = SocketFilterMachine(program: filter.program)
        for message in messages(of: [gateways[0], gateways[1]] + strangers(to: gateways), state: Self.states) {
            let matters = message.matters(isAwaited: !awaited.isEmpty)
            #expect(try machine.accepts(message.bytes) == matters, "\(message)")
        }
    }

    @Test func `a message cut short is dropped`() throws {
        let machine = SocketFilterMachine(
            program: NeighbourFilter(for: [Self.gateway4], awaited: [Self.gateway4]).program)
        let whole = neighbourMessage(Self.gateway4, state: NUD_FAILED)
        for length in 0..<36 { #expect(try !machine.accepts(Array(whole[..<length]))) }
        #expect(try machine.accepts(Array(whole[..<36])))
    }

    /// The kernel takes the largest filter, and takes another in its place while the first still stands: both count
    /// against what it allows a socket (`net.core.optmem_max`). And it comes to the interpreter's verdicts.
    @Test(arguments: Awaited.allCases)
    func `the kernel takes the largest filter and agrees`(which: Awaited) throws {
        let count = NeighbourFilter.mostAddresses
        let gateways = (0..<UInt32(count)).map { IPAddress(v6: 0xFE80 << 112 | UInt128($0) << 32 | 1) }
        let program = NeighbourFilter(for: Set(gateways), awaited: which.of(gateways)).program
        #expect(program.count > 9 * count)
        let machine = SocketFilterMachine(program: program)
        let kernel = try FilteredSocket()
        try kernel.attach(NeighbourFilter(for: Set(gateways), awaited: []).program)
        try kernel.attach(program)
        let some = [gateways[0], gateways[1], gateways[count - 1], Self.gateway4, Self.gateway6]
        for message in messages(of: some, state: Self.states) {
            #expect(try kernel.accepts(message.bytes) == machine.accepts(message.bytes), "\(message)")
        }
    }

    /// Which of the gateways are awaited.
    enum Awaited: CaseIterable {
        case none
        case everySecond
        case all

        func of(_ gateways: [IPAddress]) -> Set<IPAddress> {
            switch self {
            case .none: []
            case .everySecond: Set(gateways.enumerated().filter { $0.offset % 2 == 0 }.map(\.element))
            case .all: Set(gateways)
            }
        }
    }

    /// Older kernels allow 20 KiB (sysctl net.core.optmem_max), and both filters have to fit while one replaces the
    /// other. 500 bytes is what an IPv6 address was measured to take there, translated.
    @Test func `two of the largest filters fit where little is allowed`() {
        #expect(2 * 500 * NeighbourFilter.mostAddresses <= 20_480)
    }

    /// Half of them IPv4, half IPv6, which differ in single words.
    private func gateways(_ count: Int) -> [IPAddress] {
        (0..<UInt32(count)).flatMap { number -> [IPAddress] in
            // The number stands in any of the four words.
            let varied = UInt128(number) << UInt128(number % 4 * 32)
            let base: UInt128 = 0xFE80 << 112 | 0x1_0000_0001
            return [IPAddress(v4: 0xC000_0201 + number << 8), IPAddress(v6: base ^ varied)]
        }
    }

    /// Addresses that differ from each gateway in one word, and some that share the others.
    private func strangers(to gateways: [IPAddress]) -> [IPAddress] {
        let near = gateways.flatMap { gateway in
            stride(from: 0, to: gateway.bytes.count, by: 4).compactMap { word in
                var bytes = gateway.bytes
                bytes[word + 3] ^= 0x80
                return IPAddress(bytes: bytes)
            }
        }
        return (near + [Self.gateway4, Self.gateway6]).filter { !gateways.contains($0) }
    }

    private func messages(of addresses: [IPAddress], state states: [CInt]) -> [Notice] {
        addresses.flatMap { address in
            states.flatMap { state in
                [RTM_NEWNEIGH, RTM_DELNEIGH].map { Notice(type: $0, address: address, state: state) }
            }
        }
    }

    /// One of the kernel's notices about a neighbour.
    private struct Notice {
        let type: Int
        let address: IPAddress
        let state: CInt

        var bytes: [UInt8] { neighbourMessage(address, type: type, state: state) }

        /// A failure and a removal always do; of a gateway that is awaited, so does its recovery.
        func matters(isAwaited: Bool) -> Bool {
            let isAlive = ![NUD_NONE, NUD_INCOMPLETE, NUD_FAILED].contains(state)
            return state == NUD_FAILED || type == RTM_DELNEIGH || isAwaited && isAlive
        }
    }
}

/// A socket pair whose near end the kernel filters, as it does a netlink socket.
private final class FilteredSocket {
    private let near: OwnedDescriptor
    private let far: OwnedDescriptor

    init() throws {
        var ends: [CInt] = [0, 0]
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try retryingInterrupts("making a socket pair") { socketpair(AF_UNIX, type, 0, &ends) }
        near = OwnedDescriptor(ends[0])
        far = OwnedDescriptor(ends[1])
    }

    func attach(_ program: [sock_filter]) throws {
        var instructions = program
        let result = instructions.withUnsafeMutableBufferPointer { instructions in
            var program = sock_fprog(len: UInt16(instructions.count), filter: instructions.baseAddress)
            return setsockopt(
                near.number, SOL_SOCKET, SO_ATTACH_FILTER, &program, socklen_t(MemoryLayout<sock_fprog>.size))
        }
        if result != 0 { throw SystemError.last("attaching a filter of \(program.count) instructions") }
    }

    func accepts(_ packet: [UInt8]) throws -> Bool {
        // A dropped packet is refused to its sender with EPERM (unix_dgram_sendmsg), or lost in silence.
        guard send(far.number, packet, packet.count, 0) >= 0 else { return false }
        var room = [UInt8](repeating: 0, count: 256)
        return recv(near.number, &room, room.count, 0) >= 0
    }
}
