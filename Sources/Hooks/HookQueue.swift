// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI

/// The changes that wait for their turn, the oldest first.
///
/// If many wait, a change takes the place of an earlier one of its name and subject. So the last word on the network
/// and on each connection is called in any case, and no more wait than there are names and subjects.
struct HookQueue {
    /// So many changes wait before one takes another's place: a minute of changes for hooks that take a quarter of a
    /// second.
    static let most = 256

    private struct Key: Hashable {
        let name: HookChange.Name
        let owner: Int?
        /// The connection's; `nil` for the network.
        let connection: String?

        init(_ change: HookChange) {
            name = change.name
            switch change.subject {
            case .network: (owner, connection) = (nil, nil)
            case .connection(let one, _): (owner, connection) = (one.owner, one.name)
            }
        }
    }

    /// By number, in the order in which they came.
    private var changes: [Int: HookChange] = [:]
    private var (first, next) = (0, 0)
    /// The number of the newest one of each name and subject.
    private var newest: [Key: Int] = [:]
    /// How many lost their place since the last call of ``takeFirst()``.
    private var leftOut = 0

    /// Puts a change behind the others.
    mutating func append(_ change: HookChange) {
        let key = Key(change)
        if changes.count >= Self.most, let earlier = newest[key] {
            changes[earlier] = nil
            leftOut += 1
        }
        changes[next] = change
        newest[key] = next
        next += 1
    }

    /// Takes the oldest one out, with how many lost their place meanwhile.
    mutating func takeFirst() -> (change: HookChange, leftOut: Int)? {
        while first < next {
            defer { first += 1 }
            guard let change = changes.removeValue(forKey: first) else { continue }
            if newest[Key(change)] == first { newest[Key(change)] = nil }
            defer { leftOut = 0 }
            return (change, leftOut)
        }
        return nil
    }
}
