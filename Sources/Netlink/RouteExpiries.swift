// SPDX-License-Identifier: Apache-2.0

internal import CNetlink
internal import Glibc
internal import NetworkPath
internal import Platform

/// Tells when IPv6 routes come to the end of their lifetime.
///
/// A route that a router's advertisement brought, or that was made to expire, is passed over from the moment when its
/// lifetime ends (`fib6_check_expired` in include/net/ip6_fib.h). It is removed, with a message, when the kernel next
/// sweeps the table, which may be half a minute later (`net.ipv6.route.gc_interval`). So the moment is taken from the
/// message that told of the route. Those that were there before are not known, but one: the route of a chosen packet,
/// whose lifetime is asked for at the start, after messages were lost, and when a lifetime has ended, since a router's
/// next advertisement prolongs it without a message.
@AgentQueue
final class RouteExpiries {
    /// For more than a few the timers are not worth it; what is left out comes to light at the sweep.
    private static let mostAwaited = 64

    /// The lifetime is told in whole ticks, and the kernel looks at a clock of its own whose ticks may be as long. By
    /// then both are over.
    private static let margin = Duration.milliseconds(30)

    private let requests: NetlinkSocket
    /// Is called with where a route led that has come to its end.
    var onEnd: (@AgentQueue (IPPrefix) -> Void)?

    private var timers: [UInt64: Timers.Timer] = [:]
    private var nextKey: UInt64 = 0
    private var chosen: (request: NetlinkRequest, timer: Timers.Timer?)?

    init(requests: NetlinkSocket) {
        self.requests = requests
    }

    /// Takes note of the route in `message`, if it is one that expires.
    func note(_ message: NetlinkMessage) {
        guard timers.count < Self.mostAwaited, let end = RouteEnd(message) else { return }
        let key = nextKey
        nextKey += 1
        timers[key] = schedule(end) { [weak self] in self?.timers[key] = nil }
    }

    /// Follows the route of `query` also where no message tells of it.
    func follow(_ query: RouteQuery) {
        chosen?.timer?.cancel()
        chosen = (NetlinkRequest(query, entry: true), nil)
        ask()
    }

    /// Asks for the lifetime of the followed route.
    func ask() {
        guard let request = chosen?.request else { return }
        chosen?.timer?.cancel()
        // Where the kernel cannot be asked, the sweep tells.
        let end = (try? requests.ask(request) { RouteEnd($0) }) ?? nil
        chosen?.timer = end.map { schedule($0) {} }
    }

    /// Awaits nothing any more.
    func stop() {
        for timer in timers.values { timer.cancel() }
        timers = [:]
        chosen?.timer?.cancel()
        chosen = nil
        onEnd = nil
    }

    private func schedule(_ end: RouteEnd, _ finish: @escaping @AgentQueue () -> Void) -> Timers.Timer {
        Timers.shared.schedule(after: end.lifetime + Self.margin) { [weak self] in
            finish()
            self?.ask()
            self?.onEnd?(end.prefix)
        }
    }
}

/// Where a route leads that expires, and in which time.
private struct RouteEnd {
    let prefix: IPPrefix
    let lifetime: Duration

    /// Those of the IPv6 route in an `RTM_NEWROUTE`; `nil` for one without an end.
    init?(_ message: NetlinkMessage) {
        guard message.type == RTM_NEWROUTE, let prefix = message.routePrefix, prefix.address.family == .v6,
            let information = message.attributes(after: rtmsg.self)
                .first(where: { $0.type == Int(RTA_CACHEINFO.rawValue) })?.bytes,
            information.count >= MemoryLayout<rta_cacheinfo>.size
        else { return nil }
        let ticks = information.loadUnaligned(as: rta_cacheinfo.self).rta_expires
        guard ticks > 0 else { return nil }
        self.prefix = prefix
        lifetime = .kernelTicks(Int64(ticks))
    }
}
