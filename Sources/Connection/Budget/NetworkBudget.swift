// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// What each user may cause on the network, and what users together may do to one server, which they share evenly:
/// questions to the name servers, and dials, each of which is a SYN. No clock: the moments are parameters.
///
/// The budgets belong to the user and to the destination. They are the same before and after a connection is closed,
/// opened or redialled, and accounts that are not limited (``Account/isLimited``) neither wait nor count.
///
/// A connection whose user's budgets are used up waits for its turn (``nextTurn(of:now:)``) and is then dialled. A dial
/// that has begun is finished: what it takes beyond the budget is owed, up to an ``Allowance/overdraft``, and the next
/// turns come later by as much. So in the long run no more goes out than the refill allows, however many connections a
/// user has and whatever the records say that they lead to.
package struct NetworkBudget: Sendable {
    /// A budget's figures.
    struct Allowance {
        let burst: Int
        let refill: Duration
        /// How much a dial that has begun may take beyond it.
        let overdraft: Int

        func bucket(now: Duration) -> TokenBucket { TokenBucket(burst: burst, refill: refill, now: now) }

        /// Whether a dial that has begun may go on.
        func bears(_ bucket: TokenBucket, now: Duration) -> Bool { bucket.earliest <= now + refill * overdraft }
    }

    /// Questions of one user to the name servers. When the network returns, each connection asks for its name by two
    /// questions for its path and up to ten for its dial (NAPTR, SRV, four hosts): 1,024 let eighty of the longest, or
    /// 250 ordinary ones, return at once. Twenty a second are four names a second for ever, and nothing to a resolver.
    static let questions = Allowance(burst: 1024, refill: .milliseconds(50), overdraft: 256)

    /// Dials of one user. 512 connections, far more than a desktop has, return at once; the thousands of a gateway are
    /// the configuration's, which is not limited. Twenty SYNs a second are no storm, and make a poor port scanner.
    static let dials = Allowance(burst: 512, refill: .milliseconds(50), overdraft: 128)

    /// Dials of all limited users together to one address and port: a server meets one machine's users as one. 256 at
    /// once is what a default listen queue holds a part of (`somaxconn` is 4096); fifty a second fill it in no time
    /// that matters, and are no attack. Users who dial it at the same time share this (``Server``).
    static let dialsToOneServer = Allowance(burst: 256, refill: .milliseconds(20), overdraft: 0)

    /// How far ahead a turn is given. One beyond that is asked for again then: who opens and closes in a loop would
    /// else push the user's own connections off for hours.
    static let horizon = Duration.seconds(60)

    /// So many servers are counted at a time. A user's burst and overdraft reach 640, and one that was dialled once is
    /// forgotten in 20 ms: this takes six users who do nothing else. Those beyond it are not counted; their users are.
    static let mostServers = 4096

    /// So many users are counted at one server. Those beyond it are not, but for their own dials.
    static let mostSharers = 256

    private struct User {
        var questions: TokenBucket
        var dials: TokenBucket

        init(now: Duration) {
            questions = NetworkBudget.questions.bucket(now: now)
            dials = NetworkBudget.dials.bucket(now: now)
        }

        /// From when on a dial may begin, which takes at least one of each.
        var earliest: Duration { max(questions.earliest, dials.earliest) }

        func isFull(now: Duration) -> Bool { questions.isFull(now: now) && dials.isFull(now: now) }
    }

    /// One server, and the users who dialled it lately.
    ///
    /// A user's dial takes as many tokens as there are such users: each of three gets a third of the burst, and of what
    /// comes back. Nobody waits for what others took, and a user who has not dialled this server lately dials it at
    /// once.
    private struct Server {
        /// When each user's tokens are all back.
        private var fullAt: [UInt32: Duration] = [:]

        var sharers: Int { fullAt.count }

        func isFull(now: Duration) -> Bool { fullAt.values.allSatisfy { $0 <= now } }

        mutating func take(for user: UInt32, now: Duration) -> Bool {
            fullAt = fullAt.filter { $0.value > now }
            let allowance = NetworkBudget.dialsToOneServer
            guard let owedUntil = fullAt[user] else {
                if fullAt.count < NetworkBudget.mostSharers {
                    fullAt[user] = now + allowance.refill * (fullAt.count + 1)
                }
                return true
            }
            let owing = owedUntil + allowance.refill * fullAt.count
            guard owing <= now + allowance.refill * allowance.burst else { return false }
            fullAt[user] = owing
            return true
        }
    }

    private var users: [UInt32: User] = [:]
    private var servers: [Endpoint: Server] = [:]
    /// When the tables are next looked through for what is full, and so forgotten.
    private var nextSweep = Duration.zero

    /// Nothing was caused yet.
    package init() {}

    /// How many users and servers are counted now.
    var size: (users: Int, servers: Int) { (users.count, servers.count) }

    /// How many users are counted at a server; tests look at it.
    func sharers(of server: Endpoint) -> Int { servers[server]?.sharers ?? 0 }

    // MARK: - Dials

    /// A turn that a connection waits for: when it comes, and whether a dial is paid for with it. No two connections of
    /// a user get the same, so that each wakes once.
    package struct WaitingTurn: Hashable, Sendable {
        /// When it comes.
        package let at: Duration
        /// Whether it is certain; if not, another one is asked for then.
        package let isPaid: Bool
    }

    /// The next turn of `account`; in the past where a dial may begin now.
    package func nextTurn(of account: Account, now: Duration) -> WaitingTurn {
        guard account.isLimited, let user = users[account.user] else { return WaitingTurn(at: .zero, isPaid: true) }
        guard user.earliest <= now + Self.horizon else { return WaitingTurn(at: now + Self.horizon, isPaid: false) }
        return WaitingTurn(at: user.earliest, isPaid: true)
    }

    /// A connection waits for this turn, and no other gets it.
    package mutating func take(_ turn: WaitingTurn, for account: Account, now: Duration) {
        guard account.isLimited, turn.isPaid else { return }
        users[account.user, default: User(now: now)].dials.spend(now: now)
        users[account.user]?.questions.spend(now: now)
    }

    /// A dial of `account` that has begun is about to try `server`.
    ///
    /// - Parameter isPaid: whether it waited for its turn, and this is its first attempt.
    /// - Returns: why it must not; `nil` where it may, and is counted.
    package mutating func attempt(
        at server: Endpoint, for account: Account, isPaid: Bool, now: Duration
    ) -> HeldBack? {
        guard account.isLimited else { return nil }
        sweep(now)
        var user = users[account.user] ?? User(now: now)
        guard isPaid || Self.dials.bears(user.dials, now: now) else { return .byUser }
        if servers[server] != nil || servers.count < Self.mostServers {
            guard servers[server, default: Server()].take(for: account.user, now: now) else { return .byServer }
        }
        if !isPaid { user.dials.spend(now: now) }
        users[account.user] = user
        return nil
    }

    // MARK: - Questions

    /// A question for `account` is about to go to the name servers.
    ///
    /// - Parameter isPartOfDial: whether it belongs to a dial that has begun.
    /// - Returns: whether it may, and is counted.
    package mutating func ask(for account: Account, isPartOfDial: Bool, now: Duration) -> Bool {
        guard account.isLimited else { return true }
        sweep(now)
        var user = users[account.user] ?? User(now: now)
        let mayAsk =
            isPartOfDial ? Self.questions.bears(user.questions, now: now) : user.questions.earliest <= now
        guard mayAsk else { return false }
        user.questions.spend(now: now)
        users[account.user] = user
        return true
    }

    // MARK: - Tables

    /// Forgets who has caused nothing for a while; once a second at most, since a user can make many servers counted.
    private mutating func sweep(_ now: Duration) {
        guard now >= nextSweep else { return }
        nextSweep = now + .seconds(1)
        users = users.filter { !$0.value.isFull(now: now) }
        servers = servers.filter { !$0.value.isFull(now: now) }
    }
}

/// Which budget of a user something must wait for.
package enum HeldBack: Hashable, Sendable {
    /// That for all dials.
    case byUser
    /// The user's share of the dials to one server.
    case byServer
}
