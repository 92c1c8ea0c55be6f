// SPDX-License-Identifier: Apache-2.0

/// How often each user connects. Pure: the time is told.
struct ConnectPace {
    /// The most connects of one user in a second.
    let limit: Int
    private var counts: [UInt32: Int] = [:]
    private var end = Duration.zero

    init(limit: Int) {
        self.limit = limit
    }

    /// Counts a connect of `user`, and says whether it is one that is served.
    mutating func admits(_ user: UInt32, now: Duration) -> Bool {
        if now >= end { (counts, end) = ([:], now + .seconds(1)) }
        let count = counts[user, default: 0]
        if count < limit { counts[user] = count + 1 }
        return count < limit
    }
}
