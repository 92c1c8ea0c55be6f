// SPDX-License-Identifier: Apache-2.0

/// What users take of something that there is only so much of.
///
/// A user gets one more as long as what that user has is less than what is left for everybody, and less than
/// ``perUser``. So one greedy user leaves half, ten leave an eleventh, and there is always some left for the next (the
/// dynamic threshold of Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998,
/// with a factor of one).
struct SharePool {
    /// How much there is.
    let total: Int
    /// The most that one user gets, however much is left.
    let perUser: Int
    private(set) var used = 0
    private var users: [UInt32: Int] = [:]

    init(total: Int, perUser: Int) {
        self.total = total
        self.perUser = perUser
    }

    /// How much `user` has.
    func held(by user: UInt32) -> Int { users[user, default: 0] }

    /// Whether `user` gets one more.
    func hasRoom(for user: UInt32) -> Bool { held(by: user) < share(of: user) }

    /// How much `user` may have now.
    func share(of user: UInt32) -> Int { min(perUser, total - used) }

    /// Notes that `user` has so much more, or less; what that makes too much is for the caller to undo.
    mutating func add(_ amount: Int, for user: UInt32) {
        let held = held(by: user) + amount
        used += amount
        users[user] = held == 0 ? nil : held
    }
}
