// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// What a name server answered: the records of a DNS message (RFC 1035, section 4.1) that count for it.
///
/// c-ares' own parsers drop the authority section, which says how long "there is no such name" holds, and take every
/// record in a message for the asked name's. A message with a record of a type that counts here and is not what its
/// type demands is none: what else is wrong in it nobody knows.
struct DNSMessage {
    /// How many aliases are followed. They may form a loop, and each step looks at all records: thousands fit into a
    /// message over TCP. BIND followed 16 until 9.18.29, and 11 from then on (`max-query-restarts`).
    static let longestChain = 16

    /// How many records of a section are read. A message over TCP has room for 5,000, and each costs microseconds.
    /// Those that are kept (``RecordType/mostKept``) and the aliases that lead there are 80, with as many signatures.
    static let mostRecords = 256

    /// A domain name in its wire form, uncompressed, in lower case: equal names have equal bytes.
    typealias Name = [UInt8]

    /// What a record says.
    enum Content {
        case address(IPAddress)
        case alias(Name)
        /// The start of a zone's authority, with the last of its figures.
        case authority(minimum: UInt32)
        case service(ServiceLocation)
        case rule(NamingRule)
    }

    struct Record {
        var owner: Name
        var type: RecordType
        /// In seconds, as it stands there.
        var timeToLive: UInt32
        var content: Content
    }

    private let question: Name
    private let answers: [Record]
    private let authorities: [Record]

    /// The message in `bytes`; `nil` where they are none.
    init?(_ bytes: [UInt8]) {
        var reader = DNSReader(bytes)
        do throws(DNSReader.Malformed) {
            // The identifier and the flags, then four counts; the additional section is of no use here.
            _ = try reader.take(4)
            let questions = try reader.number(UInt16.self)
            let (answerCount, authorityCount): (UInt16, UInt16) = (try reader.number(), try reader.number())
            _ = try reader.take(2)
            guard questions == 1 else { return nil }
            question = try reader.name()
            _ = try reader.take(4)
            answers = try reader.records(min(answerCount, UInt16(Self.mostRecords)))
            // Behind answers that were not read it cannot be found, nor is it needed.
            authorities =
                answerCount > Self.mostRecords
                ? [] : try reader.records(min(authorityCount, UInt16(Self.mostRecords)))
        } catch {
            return nil
        }
    }

    /// What the records of a type say that the asked name has, through the aliases that lead to them, and for how many
    /// seconds they may be used: the shortest time to live on the way. Empty where the way ends without any.
    func records(of type: RecordType) -> (contents: [Content], timeToLive: UInt32) {
        let (end, aliasLimit) = endOfAliases()
        let records = answers.filter { $0.type == type && $0.owner == end }
        return (records.map(\.content), records.map(\.usableTime).reduce(aliasLimit, min))
    }

    /// For how many seconds it holds that the asked name is none, or has no such record (RFC 2308, section 5): the
    /// smaller of the time to live and the minimum of the zone's authority, and no longer than the aliases on the way.
    /// `nil` where no authority stands by it: such an answer is not to be kept.
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
        for _ in 0..<Self.longestChain {
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
