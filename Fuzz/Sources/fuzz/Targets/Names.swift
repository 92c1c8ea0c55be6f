// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneConnection
@testable internal import DialtoneNetworkPath
@testable internal import DialtoneResolver

extension FuzzTarget {
    /// What a name server answers.
    static let names = FuzzTarget(name: "names") { bytes in
        let type = [RecordType.a, .aaaa, .cname, .soa, .srv, .naptr][Int(bytes.first ?? 0) % 6]
        let message = Array(bytes.dropFirst())
        for status in [CInt(0), 1, 4] {
            _ = Query.Answer(status: status, message: message, type: type, wasRejected: false, now: .seconds(1))
        }
        guard let answer = DNSMessage(message) else { return }
        _ = answer.negativeTimeToLive
    }

    /// The texts that say how this machine asks for names.
    static let resolver = FuzzTarget(name: "resolver") { bytes in
        let text = Array(bytes.dropFirst())
        switch bytes.first.map({ $0 % 3 }) {
        case 0: _ = nameServers(inConfiguration: text.text)
        case 1: _ = NameOrder(inConfiguration: text.text)
        default:
            let hosts = HostsFile(text)
            for name in ["localhost", "a", "sip.example.com"] { _ = hosts.addresses(of: name) }
        }
    }

    /// SRV and NAPTR records, put into the order in which they are tried.
    static let services = FuzzTarget(name: "services") { bytes in
        var draw = Draw(bytes)
        let records = draw.several(40) { draw in
            ServiceRecord(
                priority: UInt16(truncatingIfNeeded: draw.number()), weight: UInt16(truncatingIfNeeded: draw.number()),
                port: UInt16(truncatingIfNeeded: draw.number()), target: draw.chance() ? "a" : draw.text())
        }
        let limit = draw.chance() ? draw.below(40) : .max
        precondition(ServiceRecord.ordered(records, limit: limit, using: &draw).count <= limit)
        let rules = draw.several(20) { draw in
            NamingAuthorityPointer(
                order: UInt16(truncatingIfNeeded: draw.number()),
                preference: UInt16(truncatingIfNeeded: draw.number()), flags: draw.chance() ? "s" : draw.text(),
                service: draw.chance() ? "SIP+D2T" : draw.text(), replacement: draw.text())
        }
        _ = NamingAuthorityPointer.serviceNames(in: rules, offering: "SIP+D2T")
    }

    /// Texts that users write: remotes, targets, addresses, durations, escapes, traffic classes, pins, times.
    static let texts = FuzzTarget(name: "texts") { bytes in
        let text = Array(bytes.dropFirst()).text
        readText(text, as: Int(bytes.first ?? 0) % 9)
    }
}
