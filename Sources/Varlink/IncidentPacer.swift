// SPDX-License-Identifier: Apache-2.0

/// Which incidents an operator is told of: of one kind and one user the first, and then one a minute with the number of
/// those that were left out. A client that is turned away a hundred thousand times a second fills no journal.
struct IncidentPacer {
    /// How long the next one of the same kind and user is only counted.
    static let pause = Duration.seconds(60)
    /// The most pairs of kind and user remembered. Beyond it those whose pause is over are forgotten, and where that is
    /// none nothing new is told: a thousand users in one minute are told of already.
    static let mostRemembered = 1024

    private struct Key: Hashable {
        let kind: Int
        let user: UInt32?
    }

    private struct Record {
        var told: Duration
        var leftOut = 0
    }

    private var records: [Key: Record] = [:]

    /// Whether an incident is told of now: with how many like it were not since the last; `nil` where it is not.
    mutating func admit(kind: Int, user: UInt32?, now: Duration) -> Int? {
        let key = Key(kind: kind, user: user)
        if let record = records[key] {
            if now - record.told < Self.pause {
                records[key]?.leftOut += 1
                return nil
            }
            records[key] = Record(told: now)
            return record.leftOut
        }
        if records.count >= Self.mostRemembered { records = records.filter { now - $0.value.told < Self.pause } }
        guard records.count < Self.mostRemembered else { return nil }
        records[key] = Record(told: now)
        return 0
    }
}
