// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The record types that count here, by their numbers (IANA's registry of DNS parameters).
enum RecordType: UInt16 {
    /// An IPv4 address (RFC 1035).
    case a = 1
    /// An alias (RFC 1035).
    case cname = 5
    /// The start of a zone's authority (RFC 1035).
    case soa = 6
    /// An IPv6 address (RFC 3596).
    case aaaa = 28
    /// The location of a service (RFC 2782).
    case srv = 33
    /// A rule that leads to another name (RFC 3403).
    case naptr = 35

    /// How many records of this type are kept of an answer, the first ones; what rests on them is computed for each
    /// again and again. 64 KiB over TCP hold 4,000 addresses. A dial tries eight addresses in all (`Race.limit`), of
    /// four hosts of a service. A server that has more hands them out in turn (RFC 1794), and the first of an answer
    /// are as good as any; only hosts behind the 64th of a service are not found by their priority.
    var mostKept: Int {
        switch self {
        case .a, .aaaa: 8
        case .cname, .soa, .srv, .naptr: 64
        }
    }

    /// The type that holds the addresses of a family.
    init(_ family: IPAddress.Family) {
        self = family == .v4 ? .a : .aaaa
    }

    /// The family of the addresses that it holds; `nil` for a type that holds none.
    var family: IPAddress.Family? {
        switch self {
        case .a: .v4
        case .aaaa: .v6
        case .cname, .soa, .srv, .naptr: nil
        }
    }
}

/// What a name has of the type that was asked for.
struct RecordSet {
    /// What the records say, in the order of the answer; never empty.
    var contents: [DNSMessage.Content]
    /// Until when they may be used again, on `BootClock`: see ``Resolution/expires``.
    var expires: Duration?
    /// Where they came from.
    var source: Resolution.Source

    /// As much of it as is kept of an answer for this type.
    func cut(for type: RecordType) -> RecordSet {
        var kept = self
        kept.contents.removeLast(max(contents.count - type.mostKept, 0))
        return kept
    }

    /// The addresses among them.
    var addresses: [IPAddress] {
        contents.compactMap { if case .address(let address) = $0 { address } else { nil } }
    }

    /// The hosts of a service among them.
    var services: [ServiceLocation] {
        contents.compactMap { if case .service(let location) = $0 { location } else { nil } }
    }

    /// The rules among them.
    var rules: [NamingRule] {
        contents.compactMap { if case .rule(let rule) = $0 { rule } else { nil } }
    }
}

extension RecordSet {
    /// What is known without a name server, and so holds until its file is changed.
    init(_ addresses: [IPAddress], from source: Resolution.Source) {
        self.init(contents: addresses.map { .address($0) }, expires: nil, source: source)
    }
}

extension Resolution {
    init(_ records: RecordSet) {
        self.init(addresses: records.addresses, expires: records.expires, source: records.source)
    }
}

extension Result<RecordSet, ResolutionError> {
    /// One answer from the answers for several types: all the records, or the error that leaves more hope.
    static func merging(_ answers: [Self]) -> Self {
        let found = answers.compactMap { try? $0.get() }
        if let first = found.first {
            return .success(
                RecordSet(
                    contents: found.flatMap(\.contents), expires: found.compactMap(\.expires).min(),
                    source: first.source))
        }
        let errors = answers.compactMap { answer -> ResolutionError? in
            if case .failure(let error) = answer { error } else { nil }
        }
        return .failure(.mostHopeful(of: errors) ?? ResolutionError(.noRecord, "nothing was asked for"))
    }
}
