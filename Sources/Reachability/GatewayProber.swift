// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NetworkPath
internal import Platform

/// Has the kernel ask again for gateways that did not answer.
///
/// A neighbour entry in `FAILED` stays so until a packet for it makes the kernel resolve it anew. But nobody sends
/// packets over a path that is reported dead, so its gateway's return would never be noticed. An empty datagram to the
/// gateway's discard port (RFC 863) is the smallest packet that any user may send; what counts is the neighbour
/// solicitation before it, which is all that leaves as long as the gateway is silent.
@AgentQueue
final class GatewayProber {
    /// A gateway that reboots is back in seconds to minutes.
    private static let firstDelay = Duration.seconds(1)
    /// Two packets a minute for as long as a gateway is dead and a path wants it.
    private static let longestDelay = Duration.seconds(30)

    private struct Probe {
        /// When the gateway was found silent, on `BootClock`.
        let since: Duration
        var delay: Duration
        var timer: Timers.Timer
    }

    private var probes: [NetworkSnapshot.Neighbour: Probe] = [:]

    /// Probes exactly `gateways` from now on.
    func probe(_ gateways: Set<NetworkSnapshot.Neighbour>) {
        for (gateway, probe) in probes where !gateways.contains(gateway) {
            probe.timer.cancel()
            probes[gateway] = nil
        }
        for gateway in gateways where probes[gateway] == nil {
            schedule(gateway, after: Self.firstDelay, since: BootClock.now())
        }
    }

    /// How long `gateway` has been silent; `nil` for one that is not probed.
    func silence(of gateway: NetworkSnapshot.Neighbour) -> Duration? {
        probes[gateway].map { BootClock.now() - $0.since }
    }

    private func schedule(_ gateway: NetworkSnapshot.Neighbour, after delay: Duration, since: Duration) {
        let timer = Timers.shared.schedule(after: delay) { [weak self] in
            guard let self, let probe = probes[gateway] else { return }
            Self.send(to: gateway)
            schedule(gateway, after: min(probe.delay * 2, Self.longestDelay), since: since)
        }
        probes[gateway] = Probe(since: since, delay: delay, timer: timer)
    }

    /// Sends the datagram. A refusal needs no answer: the next probe comes anyway.
    private static func send(to gateway: NetworkSnapshot.Neighbour) {
        let family = gateway.address.family == .v4 ? AF_INET : AF_INET6
        let number = socket(family, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        let descriptor = OwnedDescriptor(number)
        // Two uplinks may have gateways of one address, as home routers do. Without the link, the route's choice of one
        // would be asked, and the other never. The option takes no privilege, and the index in network order (ip(7)).
        let (level, option) = family == AF_INET ? (IPPROTO_IP, IP_UNICAST_IF) : (IPPROTO_IPV6, IPV6_UNICAST_IF)
        var index = UInt32(gateway.interfaceIndex).bigEndian
        _ = setsockopt(descriptor.number, CInt(level), option, &index, socklen_t(MemoryLayout.size(ofValue: index)))
        let address = SocketAddress(gateway.address, port: 9, interfaceIndex: gateway.interfaceIndex)
        address.withPointer { pointer, length in
            _ = sendto(descriptor.number, nil, 0, CInt(MSG_DONTWAIT), pointer, length)
        }
    }
}
