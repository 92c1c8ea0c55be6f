// SPDX-License-Identifier: Apache-2.0

/// One host that offers a service, from an SRV record (RFC 2782).
package struct ServiceRecord: Hashable, Sendable {
    /// Hosts with a lower number are tried first.
    package var priority: UInt16
    /// Among hosts of one priority, the share of clients that this one wants to be first for.
    package var weight: UInt16
    /// The TCP port.
    package var port: UInt16
    /// The host's name, without a trailing dot; empty where the record says that the service is not offered.
    package var target: String

    /// A record.
    package init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }

    /// The hosts of a service in the order in which to try them: by priority, and within one by lot, each as probable
    /// to be next as its weight says. Every client draws anew on every dial, which is what spreads them.
    ///
    /// - Parameter limit: how many are wanted at most. An answer can hold thousands, and each costs a look at the rest.
    /// - Returns: no host where the only record's target is the root: "the service is decidedly not available".
    package static func ordered(
        _ records: [ServiceRecord], limit: Int = .max, using random: inout some RandomNumberGenerator
    ) -> [ServiceRecord] {
        let offered = records.filter { !$0.target.isEmpty }
        var ordered: [ServiceRecord] = []
        for priority in Set(offered.map(\.priority)).sorted() where ordered.count < limit {
            ordered += drawn(offered.filter { $0.priority == priority }, limit - ordered.count, using: &random)
        }
        return ordered
    }

    /// The selection of RFC 2782: those of weight zero stand first in the row, so that they have a small chance only.
    private static func drawn(
        _ records: [ServiceRecord], _ limit: Int, using random: inout some RandomNumberGenerator
    ) -> [ServiceRecord] {
        var row = records.filter { $0.weight == 0 } + records.filter { $0.weight > 0 }
        var drawn: [ServiceRecord] = []
        while !row.isEmpty, drawn.count < limit {
            let sum = row.reduce(0) { $0 + UInt64($1.weight) }
            // From 0 to the sum, both included. By hand and not by `random(in:)`, whose way of drawing may change: a
            // seed must replay on every toolchain.
            let lot = random.next() % (sum + 1)
            var running: UInt64 = 0
            let position =
                row.firstIndex { record in
                    running += UInt64(record.weight)
                    return running >= lot
                } ?? 0
            drawn.append(row.remove(at: position))
        }
        return drawn
    }
}

/// A rewriting rule of the DDDS (RFC 3403), of which SIP needs those that lead to SRV records (RFC 3263, section 4.1).
package struct NamingAuthorityPointer: Hashable, Sendable {
    /// Rules with a lower number are processed first.
    package var order: UInt16
    /// Among rules of one order, those with a lower number are preferred.
    package var preference: UInt16
    /// What follows: `s` for an SRV record. Upper or lower case.
    package var flags: String
    /// What it leads to, as `SIP+D2T` for SIP over TCP. Upper or lower case.
    package var service: String
    /// The name to ask for next, without a trailing dot.
    package var replacement: String

    /// A rule.
    package init(order: UInt16, preference: UInt16, flags: String, service: String, replacement: String) {
        self.order = order
        self.preference = preference
        self.flags = flags
        self.service = service
        self.replacement = replacement
    }

    /// The names of the SRV records to ask for, the preferred first, for a protocol that a domain's rules may offer.
    /// Empty where they offer it not at all; the caller then asks for the SRV record by its usual name.
    package static func serviceNames(in rules: [NamingAuthorityPointer], offering service: String) -> [String] {
        rules
            .filter { $0.flags.lowercased() == "s" && $0.service.lowercased() == service.lowercased() }
            .filter { !$0.replacement.isEmpty }
            .sorted { ($0.order, $0.preference) < ($1.order, $1.preference) }
            .map(\.replacement)
    }
}

extension Remote.Scheme {
    /// The first two labels of the name of the SRV record that lists the hosts of this service; `nil` for those that
    /// have none. Sources: RFC 3263 for SIP, RFC 6120, section 3.2.1, and XEP-0368 for XMPP, and for MQTT the service
    /// names in IANA's registry.
    package var serviceLabels: String? {
        switch self {
        case .sip: "_sip._tcp"
        case .sips: "_sips._tcp"
        case .xmpp: "_xmpp-client._tcp"
        case .xmpps: "_xmpps-client._tcp"
        case .mqtt: "_mqtt._tcp"
        case .mqtts: "_secure-mqtt._tcp"
        case .tcp, .tls, .ws, .wss: nil
        }
    }

    /// What a domain's NAPTR records call this service (RFC 3263, section 4.1); `nil` for those that use none.
    package var namingService: String? {
        switch self {
        case .sip: "SIP+D2T"
        case .sips: "SIPS+D2T"
        case .tcp, .tls, .xmpp, .xmpps, .mqtt, .mqtts, .ws, .wss: nil
        }
    }
}
