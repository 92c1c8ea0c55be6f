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
/// What was admitted in the last moment is not in use yet: a connection is dialled later, and takes its most in the
/// handshake. It counts as used for ``landing`` at least, by what it takes at most.
struct MemoryBudget {
    /// What is to be admitted.
    enum Work {
        /// A client of the socket, that has not asked for anything.
        case client
        /// A stream of messages to one.
        case subscription
        /// A connection, with or without TLS.
        case connection(isSecured: Bool)

        /// What it takes at most, in bytes, as a kernel of 64 bits counts it: a socket and its place among the clients;
        /// a stream that nobody reads (the kernel's doubled `SO_SNDBUF`); a connection with its socket, and with what
        /// OpenSSL holds in a handshake.
        var bytes: UInt64 {
            switch self {
            case .client: 4 << 10
            case .subscription: 64 << 10
            case .connection(isSecured: false): 12 << 10
            case .connection(isSecured: true): 96 << 10
            }
        }
    }

    /// How much of the reserve new work leaves: one part in so many. Root may have more than others, and a client may
    /// come where no connection may be opened any more, to see what there is and close some.
    static func parts(_ work: Work, forRoot: Bool) -> UInt64 {
        switch work {
        case .client: forRoot ? 4 : 2
        case .subscription, .connection: forRoot ? 2 : 1
        }
    }

    /// How long what was admitted counts as about to be used: a handshake over a slow network takes that.
    static let landing = Duration.milliseconds(500)

    /// What was admitted in the present span of ``landing`` and in the one before it.
    private var (current, previous): (UInt64, UInt64) = (0, 0)
    private var spanEnd = Duration.zero

    /// What is about to be used, in bytes.
    mutating func pending(at now: Duration) -> UInt64 {
        if now >= spanEnd {
            previous = now < spanEnd + Self.landing ? current : 0
            (current, spanEnd) = (0, now + Self.landing)
        }
        return current + previous
    }

    /// Whether there is room for more.
    mutating func admits(_ work: Work, forRoot: Bool, _ use: MemoryUse, at now: Duration) -> Bool {
        guard use.room(leaving: Self.parts(work, forRoot: forRoot)) >= needed(for: work, at: now) else { return false }
        current += work.bytes
        return true
    }

    /// How much room there must be for more, as ``MemoryUse/room(leaving:)`` counts it.
    mutating func needed(for work: Work, at now: Duration) -> Int64 { Int64(clamping: pending(at: now) + work.bytes) }
}
