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
    /// the unit's 8,192 is room for 256 with TLS and a client each.
    static let keptShare = 8
    /// Two thirds of 7,168 are 4,778: one user alone has all four descriptors (three of a flow with TLS, and one of its
    /// client's process) of each of the 1,024 connections that a user may have kept.
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

    /// Takes places, or returns false where there are not so many for the holder.
    package mutating func take(_ count: Int = 1, for holder: Holder) -> Bool {
        guard used + count <= limit else { return false }
        if case .user(let user) = holder {
            let free = min(limit - limit / Self.keptShare - usersTotal, limit - used) - (count - 1)
            guard users[user, default: 0] + count - 1 < Self.share * free else { return false }
        }
        used += count
        claim(count, for: holder)
        return true
    }

    /// Places that an earlier process left are this holder's.
    package mutating func claim(_ count: Int = 1, for holder: Holder) {
        guard case .user(let user) = holder else { return }
        users[user, default: 0] += count
        usersTotal += count
    }

    /// Gives places back; those of nobody where nobody claimed them.
    package mutating func giveBack(_ count: Int = 1, for holder: Holder?) {
        used -= count
        guard case .user(let user) = holder, let held = users[user] else { return }
        users[user] = held > count ? held - count : nil
        usersTotal -= count
    }
}
