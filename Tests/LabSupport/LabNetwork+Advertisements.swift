// SPDX-License-Identifier: Apache-2.0

// Which C module the compiler takes SOCK_RAW from depends on which it loads first; both are named.
internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// What a router's advertisement may carry besides the lifetime of its default route.
package enum AdvertisedOption: Hashable, Sendable, CaseIterable {
    /// The link's prefix, of which hosts make addresses (RFC 4861, section 4.6.2).
    case prefix
    /// A name server (RFC 8106, section 5.1).
    case nameServer
}

extension LabNetwork {
    /// Has the host take what the router advertises on an uplink, which it does not at the start.
    package func acceptAdvertisements(on uplink: Uplink) async throws {
        try await host.sysctl([("net.ipv6.conf.\(uplink.name).accept_ra", "1")])
    }

    /// Has the router advertise itself once: as a default router for `lifetime` seconds, for none with zero.
    package func advertise(
        lifetime: UInt16, _ options: Set<AdvertisedOption> = [], on uplink: Uplink
    ) async throws {
        try await router.advertise(
            lifetime: lifetime, prefix: options.contains(.prefix) ? uplink.prefixAddress : nil,
            nameServer: options.contains(.nameServer) ? uplink.gateway(.v6) : nil, on: uplink.name)
    }
}

extension Namespace {
    /// Advertises this machine once on a link: as a default router for `lifetime` seconds, for none with zero.
    ///
    /// - Parameters:
    ///   - prefix: the first address of the link's network, of which hosts make addresses.
    ///   - nameServer: the address of a name server.
    package func advertise(
        lifetime: UInt16, prefix: String? = nil, nameServer: String? = nil, on link: String
    ) async throws {
        // Type 134, then code, checksum, hop limit, flags, lifetime, reachable time and retransmission timer.
        var message: [UInt8] = [134, 0, 0, 0, 64, 0] + lifetime.bytes + [UInt8](repeating: 0, count: 8)
        if let prefix {
            // 64 bits, on the link and for addresses; valid for a day, preferred for half of it.
            message += [3, 4, 64, 0xc0] + UInt32(86_400).bytes + UInt32(43_200).bytes + [0, 0, 0, 0]
            message += try bytes(of: prefix)
        }
        if let nameServer {
            message += [25, 3, 0, 0] + UInt32(600).bytes + (try bytes(of: nameServer))
        }
        try await run { [message] in try send(message, toAllNodesOn: link) }
    }
}

/// The kernel fills in the checksum, and the link-local address of the link as the source.
private func send(_ message: [UInt8], toAllNodesOn link: String) throws(SystemError) {
    let operation = "advertising on \(link)"
    let number = try retryingInterrupts(operation) {
        socket(AF_INET6, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), CInt(IPPROTO_ICMPV6))
    }
    let descriptor = OwnedDescriptor(number)
    let index = CInt(bitPattern: if_nametoindex(link))
    // Nobody takes an advertisement that came over a router (RFC 4861, section 6.1.2).
    for (option, value) in [(IPV6_MULTICAST_HOPS, 255), (IPV6_MULTICAST_IF, index)] {
        try retryingInterrupts(operation) {
            setsockopt(descriptor.number, CInt(IPPROTO_IPV6), option, [value], socklen_t(MemoryLayout<CInt>.size))
        }
    }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_scope_id = UInt32(bitPattern: index)
    inet_pton(AF_INET6, "ff02::1", &address.sin6_addr)
    try retryingInterrupts(operation) {
        withUnsafeBytes(of: &address) { bytes in
            sendto(
                descriptor.number, message, message.count, 0, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(bytes.count))
        }
    }
}

private func bytes(of address: String) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 16)
    guard inet_pton(AF_INET6, address, &bytes) == 1 else { throw SystemError("reading \(address)", code: EINVAL) }
    return bytes
}

extension FixedWidthInteger {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }
}
