// SPDX-License-Identifier: Apache-2.0

/// Counts who has how many of the places of the service manager's store. No user leaves another without one, and what a
/// file names, or root has, finds one after all users took theirs.
///
/// A user may take a place while the user's own are fewer than ``share`` times those that are free for users. So one
/// user alone gets two thirds of them, two users two fifths each, and the next one finds some: a fixed share would
/// either be too small for the one user of a gateway, or let a few users fill the store.
package struct StorePlaces {
    /// Whose a place is.
    package enum Holder: Hashable {
        /// Root's, or of what a file names: root's word either way.
        case root
        /// A user's own.
        case user(UInt32)
    }

    /// How many places are kept for ``Holder/root``: one in so many. Files name tens of connections, and an eighth of
    /// the unit's 4,096 is room for 256 with a client each.
    static let keptShare = 8
    /// Two thirds of 3,584 are 2,389: one user alone has both descriptors, the socket and its client's process, of each
    /// of the 1,024 connections that a user may have kept.
    static let share = 2

    private let limit: Int
    private var used: Int
    private var users: [UInt32: Int] = [:]
    private var usersTotal = 0

    /// Places.
    ///
    /// - Parameters:
    ///   - limit: how many there are.
    ///   - left: how many an earlier process left, whose holders are not known before ``claim(for:)``.
    init(limit: Int, left: Int = 0) {
        self.limit = limit
        used = left
    }

    /// Takes a place, or returns false where there is none for the holder.
    package mutating func take(for holder: Holder) -> Bool {
        guard used < limit else { return false }
        if case .user(let user) = holder {
            let free = min(limit - limit / Self.keptShare - usersTotal, limit - used)
            guard users[user, default: 0] < Self.share * free else { return false }
        }
        used += 1
        claim(for: holder)
        return true
    }

    /// A place that an earlier process left is this holder's.
    package mutating func claim(for holder: Holder) {
        guard case .user(let user) = holder else { return }
        users[user, default: 0] += 1
        usersTotal += 1
    }

    /// Gives a place back; that of nobody where nobody claimed it.
    package mutating func giveBack(for holder: Holder?) {
        used -= 1
        guard case .user(let user) = holder, let count = users[user] else { return }
        users[user] = count > 1 ? count - 1 : nil
        usersTotal -= 1
    }
}
