// SPDX-License-Identifier: Apache-2.0

/// How much memory stands between this process and one of the limits it is under.
struct MemoryUse: Hashable {
    /// What the limit is, for a person: a file of a control group, or a limit of setrlimit(2).
    let name: String
    /// In bytes.
    let limit: UInt64
    /// What counts against it and the kernel could not take back, in bytes.
    let used: UInt64
    /// How much more the process's control group takes than when it started, in bytes, where that was looked at.
    var growth: UInt64 = 0

    /// What is kept for the connections that there are: a quarter, since connections that are dialled
    /// again at once after an outage take more than when they rest; never less than 4 MiB and never more than 64.
    var reserve: UInt64 { min(max(limit / 4, 4 << 20), 64 << 20) }

    /// What new work may still take that leaves one part in `parts` of the reserve; less than nothing where that is
    /// touched.
    func room(leaving parts: UInt64) -> Int64 {
        let (left, isOver) = limit.subtractingReportingOverflow(used)
        // `parts` is a constant, and what is clamped is not below zero: no difference of the two overflows.
        return isOver ? -1 : Int64(clamping: left) - Int64(clamping: reserve / parts)
    }
}

/// Decides whether there is memory for new work. Pure: the time and what is in use are told.
///
/// What stays (connections, clients) is promised what it may come to, since much of it comes later: events, answers
/// that are not read. As much of the promise counts as its group has not grown by. What passes, an answer, counts until
/// a reading of the kernel's figures shows it. What TLS takes is not this process's.
struct MemoryBudget {
    /// What is to be admitted.
    enum Work {
        /// A client of the socket, that has not asked for anything.
        case client
        /// A stream of messages to one.
        case subscription
        /// A connection that a client described in so many bytes.
        case connection(given: Int)
        /// So many bytes more that a client leaves with a connection that there is.
        case text(bytes: Int)
        /// Room for so many bytes more of a long answer.
        case answer(bytes: Int)

        /// Whether it is part of what there is, or small and soon over: for it some of the reserve is there.
        fileprivate var isForWhatThereIs: Bool {
            switch self {
            case .client, .text, .answer: true
            case .subscription, .connection: false
            }
        }
    }

    /// How much of the reserve new work leaves: one part in so many. Root may have more than others, and a client may
    /// come where no connection may be opened any more, to see what there is and close some.
    static func parts(_ work: Work, forRoot: Bool) -> UInt64 {
        switch (work.isForWhatThereIs, forRoot) {
        case (true, true): 4
        case (true, false), (false, true): 2
        case (false, false): 1
        }
    }

    /// What a client may come to, in bytes, before it wants anything that is asked about by itself.
    var client: UInt64 = 20 << 10
    /// What is held for clients of calls and answers that are not over, at most: for one, and for all of them.
    var held: (byOne: UInt64, byAll: UInt64) = (0, 0)
    /// How many clients there are.
    var clients = 0
    /// What the connections that there are may come to, in bytes.
    private var connections: UInt64 = 0
    /// What was admitted since the last reading and is taken at once.
    private var unread: UInt64 = 0

    /// What a connection may come to with its socket and its newest events, in this process and in the state, in
    /// bytes, where a client described it in so many and left nothing with it. Without a state it is two thirds of
    /// that.
    static func whole(given: Int) -> UInt64 { (16 << 10) + kept(given) }

    /// The agent keeps what a client said as it came and as it was read. The state may hold it twice, and a third time
    /// while it is rewritten.
    private static func kept(_ bytes: Int) -> UInt64 { 5 * UInt64(clamping: min(bytes, 1 << 30)) }

    /// There is a connection more, or one less, that a client described in so many bytes.
    mutating func connectionCame(given: Int) { connections += Self.whole(given: given) }
    mutating func connectionWent(given: Int) { connections -= min(connections, Self.whole(given: given)) }

    /// What a client leaves with a connection has so many bytes, after so many.
    mutating func textChanged(from old: Int, to new: Int) {
        connections += Self.kept(new)
        connections -= min(connections, Self.kept(old))
    }

    /// The kernel's figures were read.
    mutating func hasRead() { unread = 0 }

    /// Whether there is room for more.
    mutating func admits(_ work: Work, forRoot: Bool, _ use: MemoryUse) -> Bool {
        let needed = bytes(of: work) + about(use.growth)
        guard use.room(leaving: Self.parts(work, forRoot: forRoot)) >= Int64(clamping: needed) else { return false }
        switch work {
        case .subscription, .answer: unread += bytes(of: work)
        // What these may come to is promised once they are there.
        case .client, .connection, .text: break
        }
        return true
    }

    /// How much room is enough for more, whatever the process has grown by, as ``MemoryUse/room(leaving:)`` counts it.
    func enough(for work: Work) -> Int64 {
        Int64(clamping: bytes(of: work) + about(0))
    }

    /// What is about to be used, in bytes, where the process has grown by so many since it started.
    func about(_ growth: UInt64) -> UInt64 {
        let clients = UInt64(clamping: clients)
        let promised = connections + clients * client + min(clients * held.byOne, held.byAll)
        return promised - min(promised, growth) + unread
    }

    /// What work may come to, in bytes.
    func bytes(of work: Work) -> UInt64 {
        switch work {
        case .client: client
        case .subscription: 4 << 10
        case .connection(let given): Self.whole(given: given)
        case .text(let bytes): Self.kept(bytes)
        // Beside what there is of it, from which it is copied.
        case .answer(let bytes): UInt64(clamping: min(bytes, 1 << 30))
        }
    }
}
