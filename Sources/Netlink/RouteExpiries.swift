// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// Tells when IPv6 routes come to the end of their lifetime, and when one may be back whose lifetime had ended.
///
/// The kernel passes over a route that a router's advertisement brought, or that was made to expire, from the moment
/// its lifetime ends (`fib6_check_expired` in include/net/ip6_fib.h). It removes the route, with a message, when it
/// next sweeps the table, which may be half a minute later (`net.ipv6.route.gc_interval`). So the moment is taken from
/// the message that told of the route. Of routes that were there before, the one of a chosen packet is asked for at the
/// start and after messages were lost.
///
/// Until the sweep, the router's next advertisement prolongs the route without a message (`ndisc_router_discovery` in
/// net/ipv6/ndisc.c), whether its lifetime has ended or not. Its options do make messages, in groups of their
/// own: prefixes, and name servers. After the end of a lifetime each of these is a reason to look again. An
/// advertisement without such options makes none, so a few looks go by the clock.
@AgentQueue
final class RouteExpiries {
    /// For more than a few the timers are not worth it; what is left out comes to light at the sweep.
    private static let mostAwaited = 64

    /// The lifetime is told in whole ticks, and the kernel looks at a clock of its own whose ticks may be as long. By
    /// then both are over.
    private static let margin = Duration.milliseconds(30)

    /// When to look for a route whose lifetime has ended, each counted from the look before. The last comes after the
    /// kernel's next sweep, unless its interval is longer than the 30 s that it has by default.
    private static let looks: [Duration] = [.seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(16)]

    /// The groups that tell of an advertisement's options; joined while there is a route to be prolonged.
    private static let options = [RTNLGRP_IPV6_PREFIX, RTNLGRP_ND_USEROPT]

    /// Is called with where the routes lead that have come to their end, or may be back.
    var onChange: (@AgentQueue (Set<IPPrefix>) -> Void)?

    private let notices: NetlinkSocket
    private let requests: NetlinkSocket
    private var chosen: RouteQuery?
    /// For each route the end of its lifetime, or the next look after it.
    private var timers: [ExpiringRoute: Timers.Timer] = [:]
    /// The routes whose lifetime has ended, and of which neither a removal nor a new lifetime is known.
    private var ended: Set<ExpiringRoute> = [] {
        didSet { if ended.isEmpty != oldValue.isEmpty { hearOptions(!ended.isEmpty) } }
    }
    private var isAdvertised = false

    init(notices: NetlinkSocket, requests: NetlinkSocket) {
        self.notices = notices
        self.requests = requests
    }

    /// Takes note of a route that expires or is removed, and of what an advertisement's options brought.
    func note(_ message: NetlinkMessage) {
        switch message.type {
        case RTM_NEWROUTE, RTM_DELROUTE:
            guard let route = ExpiringRoute(message) else { return }
            forget(route)
            if let lifetime = message.lifetime { awaitEnd(of: route, in: lifetime) }
        case RTM_NEWPREFIX, RTM_NEWNDUSEROPT: isAdvertised = !ended.isEmpty
        default: break
        }
    }

    /// Where the routes lead that may be back by what was noted since the last call.
    func takeReturns() -> Set<IPPrefix> {
        guard isAdvertised else { return [] }
        isAdvertised = false
        return lookAtEnded()
    }

    /// Follows the route of `query` also where no message tells of it.
    func follow(_ query: RouteQuery) {
        chosen = query
        ask()
    }

    /// Asks for what messages may have told that were lost.
    func ask() {
        // One whose lifetime ended before may stand in its table still, and be prolonged.
        if let chosen, ask(chosen) == nil { ended.insert(ExpiringRoute(unknownTo: chosen.destination)) }
        _ = lookAtEnded()
    }

    /// Awaits nothing any more.
    func stop() {
        for timer in timers.values { timer.cancel() }
        timers = [:]
        ended = []
        chosen = nil
        onChange = nil
    }

    private func forget(_ route: ExpiringRoute) {
        timers.removeValue(forKey: route)?.cancel()
        if ended.contains(route) { ended.remove(route) }
    }

    private func awaitEnd(of route: ExpiringRoute, in lifetime: Duration) {
        guard timers.count < Self.mostAwaited else { return }
        timers[route] = Timers.shared.schedule(after: lifetime + Self.margin) { [weak self] in
            self?.look(at: route, number: 0)
        }
    }

    /// Looks whether a route was prolonged whose lifetime has ended. Those it concerns look in any case: at its end,
    /// and later since they may see what this lookup does not, by a rule or with another source.
    private func look(at route: ExpiringRoute, number: Int) {
        timers[route] = nil
        if !isThere(route) {
            ended.insert(route)
            if number < Self.looks.count {
                timers[route] = Timers.shared.schedule(after: Self.looks[number]) { [weak self] in
                    self?.look(at: route, number: number + 1)
                }
            }
        }
        onChange?([route.prefix])
    }

    private func lookAtEnded() -> Set<IPPrefix> {
        let routes = ended
        for route in routes where isThere(route) { ended.remove(route) }
        return Set(routes.map(\.prefix))
    }

    /// Whether a packet takes `route`, or any where it is not known which it was.
    private func isThere(_ route: ExpiringRoute) -> Bool {
        let found = ask(query(for: route))
        return route.link == nil ? found != nil : found == route
    }

    /// A packet that takes the route, bound to its link lest another link's be found.
    private func query(for route: ExpiringRoute) -> RouteQuery {
        var query = RouteQuery(route.prefix.address)
        // A default route leads everywhere but to "::".
        if let chosen, route.prefix.contains(chosen.destination) { query = chosen }
        query.interfaceIndex = route.link
        return query
    }

    /// Asks for the route of `query`, and awaits its end if it has one.
    private func ask(_ query: RouteQuery) -> ExpiringRoute? {
        // Where the kernel cannot be asked, the sweep tells.
        let found = try? requests.ask(NetlinkRequest(query, entry: true)) { message in
            ExpiringRoute(message).map { ($0, message.lifetime) }
        }
        guard let (route, lifetime) = found ?? nil else { return nil }
        forget(route)
        if let lifetime { awaitEnd(of: route, in: lifetime) }
        return route
    }

    private func hearOptions(_ isOn: Bool) {
        // Refused, it leaves the looks by the clock.
        for group in Self.options { if isOn { try? notices.join(group) } else { notices.leave(group) } }
    }
}

/// What tells one IPv6 route from another, as far as its lifetime matters.
private struct ExpiringRoute: Hashable {
    let prefix: IPPrefix
    let link: Int?
    let gateway: IPAddress?

    /// The one by which packets for `destination` went once, whichever it was.
    init(unknownTo destination: IPAddress) {
        prefix = .all(destination.family)
        (link, gateway) = (nil, nil)
    }

    /// The one in an `RTM_NEWROUTE` or `RTM_DELROUTE`; `nil` for one that does not count.
    init?(_ message: NetlinkMessage) {
        guard let prefix = message.routePrefix, prefix.address.family == .v6 else { return nil }
        let attributes = message.attributes(after: rtmsg.self)
        self.prefix = prefix
        link = attributes.first { $0.type == Int(RTA_OIF.rawValue) }?.uint32.map { Int($0) }
        gateway = attributes.first { $0.type == Int(RTA_GATEWAY.rawValue) }.flatMap { IPAddress(bytes: $0.bytes) }
    }
}

extension NetlinkMessage {
    /// What is left of the lifetime of the route in an `RTM_NEWROUTE`; `nil` for one that has no end.
    fileprivate var lifetime: Duration? {
        guard type == RTM_NEWROUTE,
            let information = attributes(after: rtmsg.self)
                .first(where: { $0.type == Int(RTA_CACHEINFO.rawValue) })?.bytes,
            information.count >= MemoryLayout<rta_cacheinfo>.size
        else { return nil }
        let ticks = information.loadUnaligned(as: rta_cacheinfo.self).rta_expires
        return ticks > 0 ? .kernelTicks(Int64(ticks)) : nil
    }
}
