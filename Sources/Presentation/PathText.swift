// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI

/// Paths in words: the answer first, then what it rests on.
package enum PathText {
    /// `satisfied over wlan0 (wifi) via 192.168.1.1, IPv4 IPv6 DNS`, or `unsatisfied: no carrier`.
    package static func network(_ path: NetworkAPI.Path) -> String {
        var text = status(path.status)
        if path.status == .satisfied {
            text += way(path)
            let supported = [
                path.supportsIPv4 ? "IPv4" : nil, path.supportsIPv6 ? "IPv6" : nil, path.supportsDNS ? "DNS" : nil,
            ].compactMap { $0 }
            if !supported.isEmpty { text += ", " + supported.joined(separator: " ") }
        } else if let reason = path.reason {
            text += ": " + Self.reason(reason, path)
        } else if path.status == .unknown {
            text += ": the kernel cannot be asked"
        }
        if !path.coherent, path.status != .unknown { text += " (being read anew)" }
        return text
    }

    /// A status as people write it.
    static func status(_ status: NetworkAPI.Status) -> String {
        switch status {
        case .satisfied: "available"
        case .unsatisfied: "unavailable"
        case .requiresConnection: "requires a connection"
        case .unknown: "unknown"
        }
    }

    /// The answer to "can it be reached?", as one sentence.
    ///
    /// - Parameters:
    ///   - target: what was asked about, as the user wrote it.
    ///   - interface: the name of an interface that was ignored.
    package static func check(_ path: NetworkAPI.Path, target: String, without interface: String? = nil) -> String {
        let condition = interface.map { " without \($0)" } ?? ""
        switch path.status {
        case .satisfied:
            var text = "Route available\(condition): \(target)"
            if let destination = path.destination, !target.contains(destination) { text += " is \(destination)," }
            if path.isLocalAddress { return text + " on this machine (nothing was sent)." }
            text += way(path)
            if let source = path.source { text += " from \(source)" }
            if path.isDirect { text += ", on the link itself" }
            return text + " (nothing was sent)."
        case .unsatisfied: return "Not reachable\(condition): \(obstacle(path, target: target))."
        case .requiresConnection:
            return "Route available\(condition) once a connection is brought up: \(target)\(way(path))."
        case .unknown:
            return "Unknown: the kernel cannot be asked for the route to \(target). "
                + "Is netlink blocked here (container, seccomp)?"
        }
    }

    /// Why a path to `target`, as the user wrote it, is not satisfied, for the middle of a sentence.
    package static func obstacle(_ path: NetworkAPI.Path, target: String?) -> String {
        if path.status == .requiresConnection { return "a connection is to be brought up first" }
        var named = path
        // Of a name without addresses there is none.
        named.destination = path.destination ?? target
        return path.reason.map { reason($0, named) } ?? "no reason is known"
    }

    /// The same for one reason.
    package static func reason(_ reason: NetworkAPI.Reason, _ path: NetworkAPI.Path) -> String {
        let destination = path.destination.map { " to \($0)" } ?? ""
        let interface = path.interface?.name
        return switch reason {
        case .noRoute: "no route\(destination)"
        case .noCarrier: interface.map { "\($0) has no carrier" } ?? "no interface has a carrier"
        case .noAddress: "no usable source address\(interface.map { " on \($0)" } ?? "")"
        case .gatewayUnreachable: "the gateway \(path.gateway.map { "\($0) " } ?? "")does not answer"
        case .prohibited: "a rule or route prohibits packets\(destination)"
        case .blackhole: "a rule or route swallows packets\(destination)"
        case .unreachable: "a route declares \(path.destination ?? "it") unreachable"
        case .nameUnresolved: "the name is not found, or no name server answers"
        }
    }

    /// `over wlan0 (wifi, expensive) via 192.168.1.1`, with a blank before.
    static func way(_ path: NetworkAPI.Path) -> String {
        guard let interface = path.interface else { return "" }
        var about = [interface.kind == .other ? nil : interface.kind.rawValue]
        if path.expensive { about.append("expensive") }
        if path.constrained { about.append("constrained") }
        let kind = about.compactMap { $0 }.joined(separator: ", ")
        let gateway = path.gateway.map { " via \($0)" } ?? ""
        return " over \(interface.name)\(kind.isEmpty ? "" : " (\(kind))")\(gateway)"
    }

    /// `the way to chat.example is over wwan0 (cellular) from 10.0.1.2 now, no longer over wlan0 (wifi) via 192.168.1.1
    /// from 192.168.1.7; shut down: 1 connection`.
    ///
    /// - Parameters:
    ///   - target: the host as the user wrote it.
    ///   - consequence: what was done with how many connections.
    package static func rerouted(
        from old: NetworkAPI.Path, to new: NetworkAPI.Path, target: String, _ consequence: String, of count: Int
    ) -> String {
        let ways = [new, old].map { way($0) + ($0.source.map { " from \($0)" } ?? "") }
        let connections = count == 1 ? "1 connection" : "\(count) connections"
        return "the way to \(target) is\(ways[0]) now, no longer\(ways[1]); \(consequence): \(connections)"
    }

    /// The tone of a status.
    static func tone(_ path: NetworkAPI.Path) -> Style.Tone {
        switch path.status {
        case .satisfied: .good
        case .requiresConnection, .unknown: .warning
        case .unsatisfied: .bad
        }
    }
}
