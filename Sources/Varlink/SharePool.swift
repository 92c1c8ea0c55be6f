// SPDX-License-Identifier: Apache-2.0

/// What users take of something that there is only so much of.
///
/// A user gets one more up to ``perUser``, and when all is taken, from the user who has most. So whatever others have,
/// a user gets as much as they, however late (longest queue drop: Wei, Coyle and Hsiao, "An optimal queue management
/// policy for high-performance packet switching", 1991).
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

    /// Who is to give back some of what they have, for `user` to keep what they have and one more: the user who has
    /// most, who may be the same; `nil` where nobody has to.
    func whoGivesWay(to user: UInt32) -> UInt32? {
        if held(by: user) >= perUser { return user }
        return used >= total ? whoHasMore(than: user) ?? user : nil
    }

    /// Who has most, and more than `user` would have with one more; `nil` where nobody has.
    func whoHasMore(than user: UInt32) -> UInt32? {
        guard let (greediest, most) = users.max(by: { $0.value < $1.value }) else { return nil }
        return most > held(by: user) + 1 ? greediest : nil
    }

    /// Notes that `user` has so much more, or less; what that makes too much is for the caller to undo.
    mutating func add(_ amount: Int, for user: UInt32) {
        let held = held(by: user) + amount
        used += amount
        users[user] = held == 0 ? nil : held
    }
}
