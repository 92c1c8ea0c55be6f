// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor

/// What a store is to do, in memory.
extension StoredState {
    /// The state after these changes.
    package mutating func apply(_ changes: [StoreChange]) {
        for change in changes { apply(change) }
    }

    private mutating func apply(_ change: StoreChange) {
        switch change {
        case .server(let name): server = name
        case .memory(let name, let bytes): memories[name] = bytes.isEmpty ? nil : bytes
        case .registration(let new): Self.put(new, into: &registrations) { $0.number == new.number }
        case .registrationRemoved(let number): registrations.removeAll { $0.number == number }
        case .message(let new): Self.put(new, into: &messages) { $0.number == new.number }
        case .messageRemoved(let number): messages.removeAll { $0.number == number }
        case .settled(let new): Self.put(new, into: &settled) { $0.number == new.number }
        case .settledRemoved(let last): settled.removeAll { $0.number <= last }
        case .ending(let new): Self.put(new, into: &endings) { $0.server == new.server && $0.id == new.id }
        case .endingRemoved(let name, let id): endings.removeAll { $0.server == name && $0.id == id }
        }
    }

    private static func put<Value>(_ new: Value, into values: inout [Value], _ isSame: (Value) -> Bool) {
        if let index = values.firstIndex(where: isSame) { values[index] = new } else { values.append(new) }
    }
}
