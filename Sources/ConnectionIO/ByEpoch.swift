// SPDX-License-Identifier: Apache-2.0

/// Something for each flow of one connection, by the flow's number: mostly for one, never for more than a race has
/// attempts. A dictionary would hold room for three of the first, and a table beside them.
struct ByEpoch<Value> {
    private var pairs: [(epoch: UInt64, value: Value)] = []

    /// The numbers, in the order in which they came.
    var epochs: [UInt64] { pairs.map(\.epoch) }
    /// What there is, in that order.
    var values: [Value] { pairs.map(\.value) }

    subscript(epoch: UInt64) -> Value? {
        get { pairs.first { $0.epoch == epoch }?.value }
        set {
            let index = pairs.firstIndex { $0.epoch == epoch }
            switch (index, newValue) {
            case (let index?, let value?): pairs[index].value = value
            case (let index?, nil):
                pairs.remove(at: index)
                // The room of what was, too.
                if pairs.isEmpty { pairs = [] }
            case (nil, let value?): pairs.append((epoch, value))
            case (nil, nil): break
            }
        }
    }

    subscript(epoch: UInt64, default value: @autoclosure () -> Value) -> Value {
        get { self[epoch] ?? value() }
        set { self[epoch] = newValue }
    }

    /// Takes one out.
    mutating func remove(_ epoch: UInt64) -> Value? {
        defer { self[epoch] = nil }
        return self[epoch]
    }
}
