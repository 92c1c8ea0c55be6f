// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import HeapModule

/// Whose turn is next: users share the time evenly, and a user's takers take their turns in the order they came.
///
/// Start-time fair queueing (Goyal, Vin and Cheng, 1996) with one flow per user, where a turn's length is what it took:
/// the user who has spent least goes first. A user who had nothing to do meanwhile has no credit for that: who comes
/// back stands level with the user who is served now. So a user who seldom asks is served after the turn that runs,
/// however many others wait, and a turn that takes long is paid for by the user for whom it was taken.
package struct TurnOrder<Taker> {
    /// Nobody waits.
    package init() {}

    private struct Account {
        /// What the user has spent, on the clock that all share.
        var spent: Duration
        var takers: Deque<Taker> = []
    }

    private struct Place: Comparable {
        let spent: Duration
        /// Of two who are level, the one who had a turn just now comes second.
        let hadTurn: Bool
        let serial: UInt64
        let user: UInt32

        static func < (left: Place, right: Place) -> Bool {
            (left.spent, left.hadTurn ? 1 : 0, left.serial) < (right.spent, right.hadTurn ? 1 : 0, right.serial)
        }
    }

    /// More users than this who wait for nothing are looked through for those whose debt is over.
    private static var toleratedIdlers: Int { 64 }

    private var accounts: [UInt32: Account] = [:]
    /// Each user with takers once, but for the one whose turn runs.
    private var places = Heap<Place>()
    private var nextSerial: UInt64 = 0
    /// Where the user who was served last stood.
    private var level = Duration.zero
    /// Whose turn runs.
    private var current: UInt32?

    /// Whether nobody waits.
    package var isEmpty: Bool { places.isEmpty && current.flatMap { accounts[$0]?.takers.isEmpty } ?? true }

    /// How many users are remembered; tests look at it.
    var accountCount: Int { accounts.count }

    /// Lets `taker` wait for a turn on account of `user`: after the user's others, or before them.
    package mutating func add(_ taker: Taker, for user: UInt32, first: Bool = false) {
        var account = accounts[user] ?? Account(spent: level)
        if first { account.takers.prepend(taker) } else { account.takers.append(taker) }
        let isFirst = account.takers.count == 1 && user != current
        if isFirst { account.spent = max(account.spent, level) }
        accounts[user] = account
        if isFirst { place(user, account.spent, hadTurn: false) }
    }

    /// Whose turn it is; ``end(after:)`` ends it.
    package mutating func next() -> Taker? {
        // The server ends each turn before it begins another, whatever the clients send.
        precondition(current == nil, "one turn at a time")
        guard let place = places.popMin(), let taker = accounts[place.user]?.takers.popFirst() else { return nil }
        level = place.spent
        current = place.user
        return taker
    }

    /// Ends the turn, which took this long.
    package mutating func end(after time: Duration) {
        guard let user = current, var account = accounts[user] else { return }
        current = nil
        account.spent += max(time, .zero)
        accounts[user] = account
        if !account.takers.isEmpty { place(user, account.spent, hadTurn: true) }
        forgetIdlers()
    }

    private mutating func place(_ user: UInt32, _ spent: Duration, hadTurn: Bool) {
        places.insert(Place(spent: spent, hadTurn: hadTurn, serial: nextSerial, user: user))
        nextSerial += 1
    }

    /// Without anybody who waits there is nothing to be fair about; and a debt is over when the others have caught up.
    private mutating func forgetIdlers() {
        if places.isEmpty {
            accounts = [:]
            level = .zero
        } else if accounts.count > 2 * places.count + Self.toleratedIdlers {
            accounts = accounts.filter { !$0.value.takers.isEmpty || $0.value.spent > level }
        }
    }
}
