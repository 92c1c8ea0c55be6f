// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// Has the kernel ask again for gateways that did not answer.
///
/// A neighbour entry in `FAILED` stays so until a packet for it makes the kernel resolve it anew. But nobody sends
/// packets over a path that is reported dead, so its gateway's return would never be noticed. It matters to somebody
/// who wants to know; while nobody does, nothing is asked.
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
        /// When it is asked for next.
        var due: Duration
        /// `nil` while nobody wants to know.
        var timer: Timers.Timer?
    }

    private var probes: [NetworkSnapshot.Neighbour: Probe] = [:]
    /// The waits before the gateways that were given the benefit of the doubt, in case it was wrong.
    private var doubted: [NetworkSnapshot.Neighbour: Duration] = [:]
    private let solicit: @AgentQueue (NetworkSnapshot.Neighbour) -> Bool
    private let hasAsked: @AgentQueue (NetworkSnapshot.Neighbour) -> Void
    private let giveBenefitOfDoubt: @AgentQueue (NetworkSnapshot.Neighbour) -> Void

    /// A prober.
    ///
    /// - Parameters:
    ///   - solicit: has the kernel ask for a neighbour, and returns whether that is allowed. Where it is not, a packet
    ///     is sent.
    ///   - hasAsked: is called when the kernel was made to ask, in either way. On a link without address resolution
    ///     there is nobody to wait for.
    ///   - giveBenefitOfDoubt: is called at the time of a probe for a gateway that cannot be probed, because a
    ///     firewall on this machine drops the packet. Its return would never be noticed; so it counts as answering
    ///     until it fails again, and whoever dials over it is the probe.
    init(
        solicit: @escaping @AgentQueue (NetworkSnapshot.Neighbour) -> Bool,
        hasAsked: @escaping @AgentQueue (NetworkSnapshot.Neighbour) -> Void,
        giveBenefitOfDoubt: @escaping @AgentQueue (NetworkSnapshot.Neighbour) -> Void
    ) {
        self.solicit = solicit
        self.hasAsked = hasAsked
        self.giveBenefitOfDoubt = giveBenefitOfDoubt
    }

    /// Probes exactly `gateways` from now on, while somebody wants to know.
    ///
    /// - Returns: those whose probe became due while nobody did. They are asked for at once; what was known of them is
    ///   old.
    func probe(
        _ gateways: Set<NetworkSnapshot.Neighbour>, isWanted: Bool
    ) -> Set<NetworkSnapshot.Neighbour> {
        guard !(gateways.isEmpty && probes.isEmpty) else { return [] }
        for gateway in probes.keys where !gateways.contains(gateway) {
            probes.removeValue(forKey: gateway)?.timer?.cancel()
        }
        let now = BootClock.now()
        for gateway in gateways where probes[gateway] == nil {
            let delay = doubted.removeValue(forKey: gateway) ?? Self.firstDelay
            probes[gateway] = Probe(since: now, delay: delay, due: now + delay)
        }
        var overdue: Set<NetworkSnapshot.Neighbour> = []
        for (gateway, probe) in probes where isWanted != (probe.timer != nil) {
            probe.timer?.cancel()
            probes[gateway]?.timer = isWanted ? schedule(gateway, at: probe.due) : nil
            if isWanted, probe.due < now { overdue.insert(gateway) }
        }
        return overdue
    }

    /// Those that are probed.
    var gateways: Set<NetworkSnapshot.Neighbour> { Set(probes.keys.filter { probes[$0]?.timer != nil }) }

    /// How long `gateway` has been silent; `nil` for one that is not known to be.
    func silence(of gateway: NetworkSnapshot.Neighbour) -> Duration? {
        probes[gateway].map { BootClock.now() - $0.since }
    }

    /// Probes `gateway` at once: the kernel forgot what it knew of it, and may go by it again. Where nobody wants to
    /// know, the next who does waits for that.
    func probeNow(_ gateway: NetworkSnapshot.Neighbour, isWanted: Bool) {
        guard isWanted else {
            probes[gateway]?.due = .zero
            return
        }
        // Of one that is probed anyway, the next probe gives up.
        if !isSent(to: gateway), probes[gateway] == nil { giveBenefitOfDoubt(gateway) }
    }

    private func schedule(_ gateway: NetworkSnapshot.Neighbour, at due: Duration) -> Timers.Timer {
        Timers.shared.schedule(at: due) { [weak self] in
            guard let self, let probe = probes[gateway] else { return }
            let next = min(probe.delay * 2, Self.longestDelay)
            if isSent(to: gateway) {
                let due = BootClock.now() + next
                probes[gateway] = Probe(
                    since: probe.since, delay: next, due: due, timer: schedule(gateway, at: due))
                return
            }
            probes[gateway] = nil
            // At most the gateways that ever failed here; and those of networks long left are not worth keeping.
            if doubted.count >= Self.mostDoubted { doubted = [:] }
            doubted[gateway] = next
            giveBenefitOfDoubt(gateway)
        }
    }

    /// A machine has one or two gateways, and few places where both they fail and a firewall forbids to ask.
    private static let mostDoubted = 16

    private func isSent(to gateway: NetworkSnapshot.Neighbour) -> Bool {
        guard solicit(gateway) || Self.sendPacket(to: gateway) else { return false }
        hasAsked(gateway)
        return true
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
