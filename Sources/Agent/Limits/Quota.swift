// SPDX-License-Identifier: Apache-2.0

/// Counts what each user has of something, up to a limit. Root has no limit: it could take everything anyway.
struct Quota {
    /// The most that one user may have.
    var limit: Int
    private var used: [UInt32: Int] = [:]

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether `user` may take one.
    func hasRoom(for user: UInt32) -> Bool { user == 0 || used[user, default: 0] < limit }

    /// Takes one for `user`, or returns false at the limit.
    mutating func take(for user: UInt32) -> Bool {
        guard hasRoom(for: user) else { return false }
        used[user, default: 0] += 1
        return true
    }

    /// Takes one that `user` had already, whatever the limit is now.
    mutating func takeAgain(for user: UInt32) { used[user, default: 0] += 1 }

    /// Gives back one of `user`'s.
    mutating func giveBack(for user: UInt32) {
        guard let count = used[user] else { return }
        used[user] = count > 1 ? count - 1 : nil
    }
}
