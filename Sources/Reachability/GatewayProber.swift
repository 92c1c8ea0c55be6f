// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NetworkPath
internal import Platform

/// Has the kernel ask again for gateways that did not answer.
///
/// A neighbour entry in `FAILED` stays so until a packet for it makes the kernel resolve it anew. But nobody sends
/// packets over a path that is reported dead, so its gateway's return would never be noticed.
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
    /// The waits before the gateways that were given the benefit of the doubt, in case it was wrong.
    private var doubted: [NetworkSnapshot.Neighbour: Duration] = [:]
    private let solicit: @AgentQueue (NetworkSnapshot.Neighbour) -> Bool
    private let giveBenefitOfDoubt: @AgentQueue (NetworkSnapshot.Neighbour) -> Void

    /// A prober.
    ///
    /// - Parameters:
    ///   - solicit: has the kernel ask for a neighbour, and returns whether that is allowed. Where it is not, a packet
    ///     is sent.
    ///   - giveBenefitOfDoubt: is called at the time of a probe for a gateway that cannot be probed, because a
    ///     firewall on this machine drops the packet. Its return would never be noticed; so it counts as answering
    ///     until it fails again, and whoever dials over it is the probe.
    init(
        solicit: @escaping @AgentQueue (NetworkSnapshot.Neighbour) -> Bool,
        giveBenefitOfDoubt: @escaping @AgentQueue (NetworkSnapshot.Neighbour) -> Void
    ) {
        self.solicit = solicit
        self.giveBenefitOfDoubt = giveBenefitOfDoubt
    }

    /// Probes exactly `gateways` from now on.
    func probe(_ gateways: Set<NetworkSnapshot.Neighbour>) {
        guard !(gateways.isEmpty && probes.isEmpty) else { return }
        for (gateway, probe) in probes where !gateways.contains(gateway) {
            probe.timer.cancel()
            probes[gateway] = nil
        }
        for gateway in gateways where probes[gateway] == nil {
            schedule(gateway, after: doubted.removeValue(forKey: gateway) ?? Self.firstDelay, since: BootClock.now())
        }
    }

    /// Those that are probed.
    var gateways: Set<NetworkSnapshot.Neighbour> { Set(probes.keys) }

    /// How long `gateway` has been silent; `nil` for one that is not probed.
    func silence(of gateway: NetworkSnapshot.Neighbour) -> Duration? {
        probes[gateway].map { BootClock.now() - $0.since }
    }

    /// Probes `gateway` at once: the kernel forgot what it knew of it, and may go by it again.
    func probeNow(_ gateway: NetworkSnapshot.Neighbour) {
        // Of one that is probed anyway, the next probe gives up.
        if !isSent(to: gateway), probes[gateway] == nil { giveBenefitOfDoubt(gateway) }
    }

    private func schedule(_ gateway: NetworkSnapshot.Neighbour, after delay: Duration, since: Duration) {
        let timer = Timers.shared.schedule(after: delay) { [weak self] in
            guard let self, let probe = probes[gateway] else { return }
            let next = min(probe.delay * 2, Self.longestDelay)
            if isSent(to: gateway) { return schedule(gateway, after: next, since: since) }
            probes[gateway] = nil
            // At most the gateways that ever failed here; and those of networks long left are not worth keeping.
            if doubted.count >= Self.mostDoubted { doubted = [:] }
            doubted[gateway] = next
            giveBenefitOfDoubt(gateway)
        }
        probes[gateway] = Probe(since: since, delay: delay, timer: timer)
    }

    /// A machine has one or two gateways, and few places where both they fail and a firewall forbids to ask.
    private static let mostDoubted = 16

    private func isSent(to gateway: NetworkSnapshot.Neighbour) -> Bool {
        solicit(gateway) || Self.sendPacket(to: gateway)
    }

    /// Sends an empty datagram to the gateway's discard port (RFC 863), the smallest packet that any user may send.
    /// What counts is the neighbour solicitation before it, which is all that leaves as long as the gateway is silent.
    ///
    /// - Returns: whether the next time may fare better: false where this machine refuses to let it out (`EPERM` from a
    ///   packet filter).
    private static func sendPacket(to gateway: NetworkSnapshot.Neighbour) -> Bool {
        let family = gateway.address.family == .v4 ? AF_INET : AF_INET6
        let number = socket(family, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return true }
        let descriptor = OwnedDescriptor(number)
        // Two uplinks may have gateways of one address, as home routers do. Without the link, the route's choice of one
        // would be asked, and the other never. The option takes no privilege, and the index in network order (ip(7)).
        let (level, option) = family == AF_INET ? (IPPROTO_IP, IP_UNICAST_IF) : (IPPROTO_IPV6, IPV6_UNICAST_IF)
        var index = UInt32(truncatingIfNeeded: gateway.interfaceIndex).bigEndian
        _ = setsockopt(descriptor.number, CInt(level), option, &index, socklen_t(MemoryLayout.size(ofValue: index)))
        let address = SocketAddress(gateway.address, port: 9, interfaceIndex: gateway.interfaceIndex)
        let result = address.withPointer { pointer, length in
            sendto(descriptor.number, nil, 0, CInt(MSG_DONTWAIT), pointer, length)
        }
        return result >= 0 || (errno != EPERM && errno != EACCES)
    }
}
