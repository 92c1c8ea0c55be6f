// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

struct SocketAddressTests {
    private static let linkLocal = IPAddress(v6: 0xFE80 << 112 | 7)

    @Test(.enabled(if: hasLoopback(IPAddress.loopback), "the loopback is down here"))
    func `an IPv4 address comes back from the kernel`() throws {
        try expectRoundTrip(of: IPAddress.loopback)
    }

    @Test(.enabled(if: hasLoopback(IPAddress.loopbackV6), "no IPv6 in this kernel, or the loopback is down here"))
    func `an IPv6 address comes back from the kernel`() throws {
        try expectRoundTrip(of: IPAddress.loopbackV6)
    }

    @Test(arguments: [Int.min, -1, Int(UInt32.max) + 1, Int.max])
    func `an index that no kernel gives ends nothing`(index: Int) {
        #expect(SocketAddress(Self.linkLocal, port: 9, interfaceIndex: index).address == Self.linkLocal)
    }

    @Test(arguments: [
        (IPAddress.loopback, MemoryLayout<sockaddr_in>.size, AF_INET),
        (IPAddress.loopbackV6, MemoryLayout<sockaddr_in6>.size, AF_INET6),
    ])
    func `the kernel's form is that of its family`(address: IPAddress, size: Int, family: CInt) {
        let socketAddress = SocketAddress(address, port: 0x1234)
        #expect(socketAddress.address == address)
        #expect(socketAddress.port == 0x1234)
        socketAddress.withPointer { pointer, length in
            #expect(Int(length) == size)
            #expect(CInt(pointer.pointee.sa_family) == family)
            let bytes = UnsafeRawBufferPointer(start: pointer, count: size)
            #expect(Array(bytes[2..<4]) == [0x12, 0x34], "in network order")
        }
    }

    @Test(arguments: [(linkLocal, UInt32(9)), (IPAddress.loopbackV6, UInt32(0))])
    func `only a link local address names its link`(address: IPAddress, scope: UInt32) {
        SocketAddress(address, port: 1, interfaceIndex: 9).withPointer { pointer, length in
            let bytes = UnsafeRawBufferPointer(start: pointer, count: Int(length))
            #expect(bytes.loadUnaligned(as: sockaddr_in6.self).sin6_scope_id == scope)
        }
    }

    @Test func `another family has no address`() throws {
        let pair = try SocketPair()
        #expect(SocketAddress(localOf: pair.near.number) == nil)
    }

    @Test func `what is no socket has no address`() {
        #expect(SocketAddress(localOf: -1) == nil)
    }

    /// Binds, asks where, and connects to the answer.
    private func expectRoundTrip(of address: IPAddress) throws {
        let listener = try Self.listener(on: address)
        let local = try #require(SocketAddress(localOf: listener.number))
        #expect(local.address == address)
        #expect(local.port != 0)
        #expect(bytes(of: local) == bytes(of: SocketAddress(address, port: local.port)))
        try Self.connect(to: local)
    }

    private func bytes(of address: SocketAddress) -> [UInt8] {
        address.withPointer { Array(UnsafeRawBufferPointer(start: $0, count: Int($1))) }
    }

    /// Whether packets to `address` come back: a datagram socket says so without sending one.
    private static func hasLoopback(_ address: IPAddress) -> Bool {
        (try? connect(to: SocketAddress(address, port: 9), type: SOCK_DGRAM)) != nil
    }

    private static func connect(to address: SocketAddress, type: __socket_type = SOCK_STREAM) throws {
        let client = try socket(address.address?.family ?? .v4, type)
        try retryingInterrupts("connecting") { address.withPointer { Glibc.connect(client.number, $0, $1) } }
    }

    private static func listener(on address: IPAddress) throws -> OwnedDescriptor {
        let descriptor = try socket(address.family, SOCK_STREAM)
        let any = SocketAddress(address, port: 0)
        try retryingInterrupts("binding") { any.withPointer { bind(descriptor.number, $0, $1) } }
        try retryingInterrupts("listening") { listen(descriptor.number, 1) }
        return descriptor
    }

    private static func socket(_ family: IPAddress.Family, _ type: __socket_type) throws -> OwnedDescriptor {
        let type = CInt(type.rawValue | SOCK_CLOEXEC.rawValue)
        return OwnedDescriptor(
            try retryingInterrupts("opening a socket") {
                Glibc.socket(family == .v4 ? AF_INET : AF_INET6, type, 0)
            })
    }
}
