// SPDX-License-Identifier: Apache-2.0

import Glibc
import NetworkPath
import Platform
import Testing

struct SocketAddressTests {
    private static let loopback4 = IPAddress(v4: 0x7F00_0001)
    private static let loopback6 = IPAddress(v6: 1)
    private static let linkLocal = IPAddress(v6: 0xFE80 << 112 | 7)
    private static let hasIPv6 = (try? bound(to: loopback6)) != nil

    @Test func anIPv4AddressComesBackFromTheKernel() throws {
        try expectRoundTrip(of: Self.loopback4)
    }

    @Test(.enabled(if: hasIPv6, "this kernel has no IPv6 loopback"))
    func anIPv6AddressComesBackFromTheKernel() throws {
        try expectRoundTrip(of: Self.loopback6)
    }

    @Test(arguments: [
        (loopback4, MemoryLayout<sockaddr_in>.size, AF_INET),
        (loopback6, MemoryLayout<sockaddr_in6>.size, AF_INET6),
    ])
    func theKernelsFormIsThatOfItsFamily(address: IPAddress, size: Int, family: CInt) {
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

    @Test(arguments: [(linkLocal, UInt32(9)), (loopback6, UInt32(0))])
    func onlyALinkLocalAddressNamesItsLink(address: IPAddress, scope: UInt32) {
        SocketAddress(address, port: 1, interfaceIndex: 9).withPointer { pointer, length in
            let bytes = UnsafeRawBufferPointer(start: pointer, count: Int(length))
            #expect(bytes.loadUnaligned(as: sockaddr_in6.self).sin6_scope_id == scope)
        }
    }

    @Test func anotherFamilyHasNoAddress() throws {
        let pair = try SocketPair()
        #expect(SocketAddress(localOf: pair.near.number) == nil)
    }

    @Test func whatIsNoSocketHasNoAddress() {
        #expect(SocketAddress(localOf: -1) == nil)
    }

    /// Binds, asks where, and connects to the answer.
    private func expectRoundTrip(of address: IPAddress) throws {
        let listener = try Self.bound(to: address)
        try retryingInterrupts("listening") { listen(listener.number, 1) }
        let local = try #require(SocketAddress(localOf: listener.number))
        #expect(local.address == address)
        #expect(local.port != 0)
        let same = SocketAddress(address, port: local.port)
        #expect(bytes(of: local) == bytes(of: same))
        let client = try Self.socket(for: address)
        let result = local.withPointer { connect(client.number, $0, $1) }
        #expect(result == 0, "\(SystemError.last("connecting"))")
    }

    private func bytes(of address: SocketAddress) -> [UInt8] {
        address.withPointer { Array(UnsafeRawBufferPointer(start: $0, count: Int($1))) }
    }

    private static func socket(for address: IPAddress) throws -> OwnedDescriptor {
        let family = address.family == .v4 ? AF_INET : AF_INET6
        return OwnedDescriptor(
            try retryingInterrupts("opening a socket") {
                Glibc.socket(family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            })
    }

    private static func bound(to address: IPAddress) throws -> OwnedDescriptor {
        let descriptor = try socket(for: address)
        let any = SocketAddress(address, port: 0)
        try retryingInterrupts("binding") { any.withPointer { bind(descriptor.number, $0, $1) } }
        return descriptor
    }
}
