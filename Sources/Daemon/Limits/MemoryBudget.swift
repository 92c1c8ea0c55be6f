// SPDX-License-Identifier: Apache-2.0

/// How much memory stands between this process and one of the limits it is under.
struct MemoryUse: Hashable {
    /// What the limit is, for a person: a file of a control group, or a limit of setrlimit(2).
    let name: String
    /// In bytes.
    let limit: UInt64
    /// What counts against it and the kernel could not take back, in bytes.
    let used: UInt64

    /// What is kept for the connections that there are: a quarter, since connections that are dialled
    /// again at once after an outage take more than when they rest; never less than a hundred handshakes of TLS take,
    /// and never more than a thousand of them do.
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
/// What was admitted counts as used, by what it takes at most, until a reading of the kernel's figures shows it. That
/// is the next one for what is taken at once. A connection is dialled later, and takes its most in the handshake: it
/// counts for ``landing`` at least. Its events come later still: it counts for what it comes to with them
/// (``whole(given:)``), until what is in use has grown by that.
struct MemoryBudget {
    /// What is to be admitted.
    enum Work {
        /// A client of the socket, that has not asked for anything.
        case client
        /// A stream of messages to one.
        case subscription
        /// A connection, with or without TLS, that a client described in so many bytes.
        case connection(isSecured: Bool, given: Int)
        /// Something that a client leaves with a connection, of so many bytes.
        case text(bytes: Int)
        /// The next so many bytes of a long answer.
        case answer(bytes: Int)

        /// What it takes at most, in bytes, as a kernel of 64 bits counts it: a socket and its place among the clients;
        /// a stream that nobody reads (the kernel's doubled `SO_SNDBUF`); a connection with its socket, and with what
        /// OpenSSL holds in a handshake.
        var bytes: UInt64 {
            switch self {
            case .client: 4 << 10
            case .subscription: 64 << 10
            case .connection(isSecured: false, let given): MemoryBudget.whole(given: given)
            case .connection(isSecured: true, let given): (96 << 10) + Self.kept(given)
            case .text(let bytes): Self.kept(bytes)
            // An array that grows is copied into one of twice its length.
            case .answer(let bytes): 3 * UInt64(clamping: min(bytes, 1 << 30))
            }
        }

        /// Whether it stays, so that what other work has not taken yet must be left to that.
        var stays: Bool {
            switch self {
            case .client, .answer: false
            case .subscription, .connection, .text: true
            }
        }

        /// Whether it is in use as soon as it was admitted.
        var isTakenAtOnce: Bool {
            switch self {
            case .client, .text, .answer: true
            case .subscription, .connection: false
            }
        }

        /// What a client said is kept as it was said and as it was read, in the state, and there twice while that is
        /// written anew.
        fileprivate static func kept(_ bytes: Int) -> UInt64 { 5 * UInt64(clamping: min(bytes, 1 << 30)) }
    }

    /// How much of the reserve new work leaves: one part in so many. Root may have more than others, and a client may
    /// come where no connection may be opened any more, to see what there is and close some.
    static func parts(_ work: Work, forRoot: Bool) -> UInt64 {
        switch work {
        case .client, .answer: forRoot ? 4 : 2
        case .subscription, .connection, .text: forRoot ? 2 : 1
        }
    }

    /// How long what was admitted counts as about to be used: a handshake over a slow network takes that.
    static let landing = Duration.milliseconds(500)

    /// What was admitted in the present span of ``landing`` and in the one before it.
    private var (current, previous): (UInt64, UInt64) = (0, 0)
    private var spanEnd = Duration.zero
    /// What was admitted since the last reading and is taken at once.
    private var unread: UInt64 = 0

    /// What the connections that there are come to, in bytes.
    private var promised: UInt64 = 0
    /// The least that was in use of each limit.
    private var least: [String: UInt64] = [:]

    /// What a connection comes to with its socket and its newest events, in this process and in the state, in bytes,
    /// where a client described it in so many. Without a state it is two thirds of that.
    static func whole(given: Int) -> UInt64 { (12 << 10) + Work.kept(given) }

    /// There is a connection more, or one less, that a client described in so many bytes.
    mutating func connectionCame(given: Int) { promised += Self.whole(given: given) }
    mutating func connectionWent(given: Int) { promised -= min(promised, Self.whole(given: given)) }

    /// The kernel's figures were read.
    mutating func hasRead(_ use: MemoryUse?) {
        unread = 0
        if let use { least[use.name] = min(use.used, least[use.name] ?? .max) }
    }

    /// What the connections that there are may still take, in bytes.
    private func owed(_ use: MemoryUse) -> UInt64 {
        // Not below the least, which is of this reading at most; of one that was not told of there is no growth.
        let growth = use.used - min(use.used, least[use.name] ?? use.used)
        return promised - min(promised, growth)
    }

    /// What is about to be used, in bytes.
    mutating func pending(at now: Duration) -> UInt64 {
        if now >= spanEnd {
            previous = now < spanEnd + Self.landing ? current : 0
            (current, spanEnd) = (0, now + Self.landing)
        }
        return current + previous + unread
    }

    /// Whether there is room for more.
    mutating func admits(_ work: Work, forRoot: Bool, _ use: MemoryUse, at now: Duration) -> Bool {
        let needed = about(work, owed(use), at: now) + work.bytes
        guard use.room(leaving: Self.parts(work, forRoot: forRoot)) >= Int64(clamping: needed) else { return false }
        if work.isTakenAtOnce { unread += work.bytes } else { current += work.bytes }
        return true
    }

    /// How much room is enough for more, whatever is in use, as ``MemoryUse/room(leaving:)`` counts it.
    mutating func enough(for work: Work, at now: Duration) -> Int64 {
        Int64(clamping: about(work, promised, at: now) + work.bytes)
    }

    /// What is in use or about to be, in bytes, as it was counted against more work.
    mutating func used(_ use: MemoryUse, against work: Work, at now: Duration) -> UInt64 {
        use.used + about(work, owed(use), at: now)
    }

    /// What is about to be used, with what the connections are owed where the work stays. The newest of them are in
    /// both.
    private mutating func about(_ work: Work, _ owed: UInt64, at now: Duration) -> UInt64 {
        work.stays ? max(pending(at: now), owed) : pending(at: now)
    }
}
