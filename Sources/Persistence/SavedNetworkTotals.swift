// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneNetworkPath
package import DialtonePlatform
package import DialtoneVarlink

/// How often the path to the network as such changed, as the state has it.
package struct SavedNetworkTotals: Hashable {
    /// When the counting began.
    package let since: Timestamp
    /// How often, by the name of the change.
    package private(set) var changes: [PathChange: Int] = [:]

    private enum Field {
        static let (since, change) = (1, 2)
    }

    /// Nothing was counted yet.
    package init(since: Timestamp) { self.since = since }

    /// The path changed.
    package mutating func heard(_ changes: [PathChange]) {
        for change in changes { self.changes[change, default: 0] += 1 }
    }

    /// What clients are told.
    package var wire: [ConnectionsAPI.ChangeCount] {
        changes.map { .init(change: $0.rawValue, count: $1) }.sorted { $0.change < $1.change }
    }

    /// Writes it in numbered fields.
    package func write(_ fields: inout FieldWriter) {
        fields.put(Field.since, signed: since.milliseconds)
        for count in wire { fields.put(Field.change, KeptFieldWriter.bytes(of: count)) }
    }

    /// What was written. A change that this version does not know, it does not count on.
    package init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, since) = (fields, Timestamp?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.since: since = Timestamp(milliseconds: try value.signed())
            case Field.change:
                let count: ConnectionsAPI.ChangeCount = try KeptFieldReader.object(value.bytes())
                let number = try count.count.counted()
                if let change = PathChange(rawValue: count.change) { changes[change] = number }
            default: break
            }
        }
        guard let since else { throw DamagedState() }
        self.since = since
    }
}
