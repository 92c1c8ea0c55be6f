// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// What a name server answered about addresses: the records of a DNS message (RFC 1035, section 4.1) that count for it.
///
/// c-ares' own parsers drop the authority section, which says how long "there is no such name" holds, and take every
/// address in a message for the asked name's. The bytes come from the network: each read is checked against their end.
struct DNSMessage {
    /// A domain name in its wire form, uncompressed, in lower case: equal names have equal bytes.
    typealias Name = [UInt8]

    struct Record {
        enum Content {
            case address(IPAddress)
            case alias(Name)
            /// The start of a zone's authority, with the last of its figures.
            case authority(minimum: UInt32)
        }

        var owner: Name
        /// In seconds, as it stands there.
        var timeToLive: UInt32
        var content: Content
    }

    private(set) var question: Name = []
    private(set) var answers: [Record] = []
    private(set) var authorities: [Record] = []

    /// The message in `bytes`; `nil` where they are none.
    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes[...])
        // The header's identifier, flags and four counts; the additional section is of no use here.
        guard bytes.count >= 12 else { return nil }
        reader.position = 4
        guard let questions = reader.number16(), let answerCount = reader.number16(),
            let authorityCount = reader.number16(), reader.number16() != nil, questions == 1,
            let name = reader.name(), reader.skip(4)
        else { return nil }
        question = name
        guard let answers = reader.records(answerCount), let authorities = reader.records(authorityCount) else {
            return nil
        }
        self.answers = answers
        self.authorities = authorities
    }

    /// The addresses of the asked name, through the aliases that lead to them, and for how many seconds they may be
    /// used: the shortest time to live on the way. Empty where the way ends without any.
    func addresses(_ family: IPAddress.Family) -> (addresses: [IPAddress], timeToLive: UInt32) {
        let (end, aliasLimit) = endOfAliases()
        var addresses: [IPAddress] = []
        var limit = aliasLimit
        for record in answers where record.owner == end {
            guard case .address(let address) = record.content, address.family == family else { continue }
            addresses.append(address)
            limit = min(limit, record.usableTime)
        }
        return (addresses, limit)
    }

    /// For how many seconds it holds that the asked name is none, or has no address (RFC 2308, section 5): the smaller
    /// of the time to live and the minimum of the zone's authority, and no longer than the aliases on the way. `nil`
    /// where no authority stands by it: such an answer is not to be kept.
    var negativeTimeToLive: UInt32? {
        for record in authorities {
            guard case .authority(let minimum) = record.content else { continue }
            return min(record.usableTime, DNSMessage.usable(minimum), endOfAliases().timeToLive)
        }
        return nil
    }

    /// The name that the aliases of the asked one end at, and the shortest time to live among them.
    private func endOfAliases() -> (name: Name, timeToLive: UInt32) {
        var name = question
        var limit = UInt32.max
        // A loop of aliases would be as long as there are records, and longer.
        for _ in answers {
            var next: Name?
            for record in answers where record.owner == name {
                guard case .alias(let target) = record.content else { continue }
                limit = min(limit, record.usableTime)
                next = target
            }
            guard let next else { break }
            name = next
        }
        return (name, limit)
    }

    /// RFC 2181, section 8: a time to live with the top bit set counts as zero.
    fileprivate static func usable(_ timeToLive: UInt32) -> UInt32 { timeToLive > UInt32(Int32.max) ? 0 : timeToLive }
}

extension DNSMessage.Record {
    fileprivate var usableTime: UInt32 { DNSMessage.usable(timeToLive) }
}

/// Reads a message from its front; `nil` for what goes beyond its end or is none.
private struct Reader {
    /// A name has 255 octets at most (RFC 1035, section 3.1).
    private static let longestName = 255

    let bytes: ArraySlice<UInt8>
    var position = 0

    init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    mutating func number8() -> Int? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return Int(bytes[position])
    }

    mutating func number16() -> Int? {
        guard let high = number8(), let low = number8() else { return nil }
        return high << 8 | low
    }

    mutating func number32() -> UInt32? {
        guard let high = number16(), let low = number16() else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }

    mutating func skip(_ count: Int) -> Bool {
        guard count <= bytes.count - position else { return false }
        position += count
        return true
    }

    /// A name, with pointers to what stood before followed (RFC 1035, section 4.1.4).
    mutating func name() -> DNSMessage.Name? {
        var name: DNSMessage.Name = []
        var end: Int?
        // Each pointer leads further to the front than the one before, so there is a last.
        var earliest = position
        while true {
            guard let length = number8() else { return nil }
            switch length >> 6 {
            case 0b00:
                name.append(UInt8(length))
                if length == 0 {
                    position = end ?? position
                    return name
                }
                guard length <= bytes.count - position, name.count + length < Self.longestName else { return nil }
                name += bytes[position..<position + length].map { $0.lowercased }
                position += length
            case 0b11:
                guard let low = number8() else { return nil }
                let target = (length & 0x3F) << 8 | low
                guard target < earliest else { return nil }
                end = end ?? position
                earliest = target
                position = target
            default:
                return nil
            }
        }
    }

    /// The next `count` records, without those that mean nothing here.
    mutating func records(_ count: Int) -> [DNSMessage.Record]? {
        var records: [DNSMessage.Record] = []
        for _ in 0..<count {
            guard let owner = name(), let type = number16(), let klass = number16(), let timeToLive = number32(),
                let length = number16(), length <= bytes.count - position
            else { return nil }
            let end = position + length
            if klass == 1, let content = content(type, until: end) {
                records.append(.init(owner: owner, timeToLive: timeToLive, content: content))
            }
            position = end
        }
        return records
    }

    /// What a record of the Internet's class says; `nil` for types that are not asked about, and for nonsense.
    private mutating func content(_ type: Int, until end: Int) -> DNSMessage.Record.Content? {
        switch DNSMessage.RecordType(rawValue: type) {
        case .a, .aaaa:
            return IPAddress(bytes: bytes[position..<end]).map { .address($0) }
        case .cname:
            return name().map { .alias($0) }
        case .soa:
            // Two names, then serial, refresh, retry and expire before the minimum (RFC 1035, section 3.3.13).
            guard name() != nil, name() != nil, skip(16), let minimum = number32(), position == end else { return nil }
            return .authority(minimum: minimum)
        case nil:
            return nil
        }
    }
}

extension DNSMessage {
    /// The record types that count here, by their numbers (RFC 1035, section 3.2.2; RFC 3596 for AAAA).
    enum RecordType: Int {
        case a = 1
        case cname = 5
        case soa = 6
        case aaaa = 28
    }
}

extension UInt8 {
    /// DNS compares names without regard to the case of ASCII's letters, and of no others (RFC 4343).
    var lowercased: UInt8 { self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") ? self + 32 : self }
}
