// SPDX-License-Identifier: Apache-2.0

/// Values by key, in the order in which their keys came. To remove one costs the same however many there are, which it
/// does not in swift-collections' `OrderedDictionary`: that one moves all that came later.
package struct OrderedTable<Key: Hashable, Value> {
    private var places: [Key: Int] = [:]
    /// In order; `nil` where one was removed.
    private var entries: [(key: Key, value: Value)?] = []

    package init() {}

    package var count: Int { places.count }
    package var isEmpty: Bool { places.isEmpty }
    package var keys: [Key] { entries.compactMap { $0?.key } }
    package var values: [Value] { entries.compactMap { $0?.value } }

    /// The value of a key; one that is replaced keeps its place.
    package subscript(key: Key) -> Value? {
        get { places[key].flatMap { entries[$0]?.value } }
        set {
            guard let newValue else { return remove(key) }
            if let place = places[key] {
                entries[place] = (key, newValue)
            } else {
                places[key] = entries.count
                entries.append((key, newValue))
            }
        }
    }

    private mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        entries[place] = nil
        // Moved together once as many were removed as are left: two moves for each that came.
        guard entries.count > 2 * places.count + 16 else { return }
        entries.removeAll { $0 == nil }
        for (place, entry) in entries.enumerated() {
            if let entry { places[entry.key] = place }
        }
    }
}
