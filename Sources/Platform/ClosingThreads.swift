// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
internal import Synchronization

/// Closes what users can make wait, without waiting for it: one thread for each user who has something to be closed,
/// and only as long as there is.
///
/// A user who makes a close wait holds up the close of what the same user had. Not Dispatch's threads, which are few,
/// and of which the agent's queue needs one.
public enum ClosingThreads {
    /// How many there are at most: 256 users who hold one each for hours cost a few megabytes. What others have to be
    /// closed then stays open until one of these goes on.
    private static let most = 256
    /// How many descriptors of one user wait at most before there are to be no more (``isFull(for:)``): twice what a
    /// user's connections have, which may all be closed at once.
    static let mostOfUser = 2048
    /// A close, and no more.
    private static let stackSize = 128 * 1024

    private struct Waiting {
        let number: CInt
        let completion: (@Sendable @AgentQueue () -> Void)?
    }

    private struct State {
        /// What is to be closed, by user; the first of those whom a thread serves is in its hands.
        var waiting: [UInt32: [Waiting]] = [:]
        /// Whom no thread serves yet, the first one first.
        var unserved: [UInt32] = []
        var threads = 0

        /// Whether a thread is to be started for it.
        mutating func add(_ new: Waiting, for user: UInt32) -> Bool {
            if waiting[user] == nil { unserved.append(user) }
            waiting[user, default: []].append(new)
            guard !unserved.isEmpty, threads < most else { return false }
            threads += 1
            return true
        }

        /// The next user for a thread that has served one; `nil` for its end.
        mutating func nextUser() -> (user: UInt32, first: Waiting)? {
            guard let user = unserved.first, let first = waiting[user]?.first else {
                threads -= 1
                return nil
            }
            unserved.removeFirst()
            return (user, first)
        }

        /// What is next for a user whose first one is closed; `nil` where there is nothing, and no thread any more.
        mutating func next(for user: UInt32) -> Waiting? {
            waiting[user]?.removeFirst()
            if let next = waiting[user]?.first { return next }
            waiting[user] = nil
            return nil
        }
    }

    private static let state = Mutex(State())

    /// How many descriptors of `user`'s are not closed yet.
    static func waiting(for user: UInt32) -> Int { state.withLock { $0.waiting[user]?.count ?? 0 } }

    /// Whether so many descriptors of `user`'s wait that the user is to be given no more.
    public static func isFull(for user: UInt32) -> Bool { waiting(for: user) >= mostOfUser }

    /// Closes a descriptor, and calls `completion` when it is closed, however long that takes.
    static func close(
        _ number: CInt, for user: UInt32, _ completion: (@Sendable @AgentQueue () -> Void)? = nil
    ) {
        guard state.withLock({ $0.add(Waiting(number: number, completion: completion), for: user) }) else { return }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        // Where there can be no other thread, it stays open until the next one starts.
        if pthread_create(&thread, &attributes, { _ in ClosingThreads.run() }, nil) != 0 {
            state.withLock { $0.threads -= 1 }
        }
    }

    private static func run() -> UnsafeMutableRawPointer? {
        pthread_setname_np(pthread_self(), "dialtone-close")
        while let (user, first) = state.withLock({ $0.nextUser() }) {
            var next: Waiting? = first
            while let one = next {
                endLingering(one.number)
                // Nothing to retry where it reports EINTR or EIO (OwnedDescriptor).
                _ = Glibc.close(one.number)
                if let completion = one.completion { AgentQueue.async(completion) }
                next = state.withLock { $0.next(for: user) }
            }
        }
        return nil
    }

    /// Makes closing a socket wait for nothing, where nobody puts that back. A close that resets (zero seconds) waits
    /// for nothing as it is.
    private static func endLingering(_ number: CInt) {
        var value = linger()
        var length = socklen_t(MemoryLayout.size(ofValue: value))
        guard getsockopt(number, SOL_SOCKET, SO_LINGER, &value, &length) == 0, value.l_onoff != 0, value.l_linger != 0
        else { return }
        value.l_onoff = 0
        setsockopt(number, SOL_SOCKET, SO_LINGER, &value, length)
    }
}
