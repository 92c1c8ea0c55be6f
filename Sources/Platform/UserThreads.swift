// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DequeModule
internal import Dispatch
internal import Glibc

/// Threads for the system calls that users can make wait: one for each user who has caused some, and only as long as
/// there are any.
///
/// Who has a file can make its close wait (``OwnedDescriptor``). Who has a TCP socket can make every call on it wait,
/// even for ever: the user sends a page of a file, and the user's own file system does not deliver the page. Meanwhile
/// the kernel keeps the socket locked (`lock_sock` in net/core/sock.c), and SIGKILL does not end the wait. A user who
/// does that holds up the calls for the same user. Not Dispatch's threads, which are few, and of which the agent's
/// queue needs one.
package enum UserThreads {
    /// How many there are at most: 256 users who hold one each for hours cost a few megabytes. What others have to be
    /// closed then stays open until one of these goes on.
    private static let most = 256
    /// How many calls for one user wait at most before there are to be no more sockets (``isFull(for:)``): a thousand
    /// connections may all end at once, with two calls each, and so may a thousand clients.
    static let mostOfUser = 4096
    /// A system call, and no more.
    private static let stackSize = 128 * 1024
    /// How long a thread waits for its user's next call: to start another one takes longer than most calls do.
    private static let idleTime = DispatchTimeInterval.seconds(1)
    /// How long the agent's queue waits for an answer: so many times so many milliseconds, so that a machine that was
    /// stopped as a whole counts as one of them. A call takes microseconds.
    private static let patience = (times: 10, each: DispatchTimeInterval.milliseconds(10))
    /// For how long no answer is waited for after one that did not come: what one user can take of everybody's time
    /// is 0.1 s in so long.
    private static let distrust = Duration.seconds(30)

    private enum Work {
        case close(CInt, completion: (@Sendable @AgentQueue () -> Void)?)
        case call(@Sendable () -> Void)
    }

    /// A thread without work. Its fields change under the lock of ``state``.
    private final class Rest: @unchecked Sendable {
        let end = DispatchSemaphore(value: 0)
        /// Whether it was for its user that the rest ended.
        var isForItsUser = false
    }

    /// What a thread does next.
    private enum Next {
        case serve(user: UInt32, first: Work)
        case rest(Rest)
        case end
    }

    /// What is to be done for work to be done.
    private enum Need {
        case nothing
        case thread
        case end(Rest)
    }

    private struct State {
        /// What is to be done, by user; the first of those whom a thread serves is in its hands.
        var waiting: [UInt32: Deque<Work>] = [:]
        /// Whom no thread serves yet, the first one first.
        var unserved: Deque<UInt32> = []
        var threads = 0
        /// How many of them have not looked for a user yet.
        var starting = 0
        /// The threads without work, by the user whom they served.
        var resting: [UInt32: Rest] = [:]
        /// Until when no answer is waited for.
        var distrusted: [UInt32: Duration] = [:]

        mutating func add(_ work: Work, for user: UInt32) -> Need {
            guard waiting[user] == nil else {
                waiting[user]?.append(work)
                return need
            }
            waiting[user] = [work]
            if let rest = resting.removeValue(forKey: user) {
                rest.isForItsUser = true
                return .end(rest)
            }
            unserved.append(user)
            return need
        }

        private var need: Need {
            mutating get {
                guard unserved.count > starting else { return .nothing }
                if threads < UserThreads.most {
                    threads += 1
                    starting += 1
                    return .thread
                }
                guard let (user, rest) = resting.first else { return .nothing }
                resting[user] = nil
                return .end(rest)
            }
        }

        /// For a thread that has no user.
        mutating func next() -> Next {
            guard let user = unserved.popFirst(), let first = waiting[user]?.first else {
                threads -= 1
                return .end
            }
            return .serve(user: user, first: first)
        }

        /// For a thread that has done the first of a user's.
        mutating func next(after user: UInt32) -> Next {
            waiting[user]?.removeFirst()
            if let first = waiting[user]?.first { return .serve(user: user, first: first) }
            waiting[user] = nil
            guard unserved.isEmpty else { return next() }
            let rest = Rest()
            resting[user] = rest
            return .rest(rest)
        }

        /// For a thread whose rest has ended, or was long enough.
        mutating func next(after rest: Rest, of user: UInt32) -> Next {
            if resting[user] === rest { resting[user] = nil }
            if rest.isForItsUser, let first = waiting[user]?.first { return .serve(user: user, first: first) }
            return next()
        }
    }

    private static let state = Lock(State())

    /// How many calls for `user` are not done yet.
    static func waiting(for user: UInt32) -> Int { state.withLock { $0.waiting[user]?.count ?? 0 } }

    /// Whether so many calls for `user` wait that the user is to be given no more to cause them with.
    package static func isFull(for user: UInt32) -> Bool { waiting(for: user) >= mostOfUser }

    /// What a user has had and makes wait to be closed stays open here: there is to be no end of it.
    ///
    /// - Throws: `EBUSY` where ``isFull(for:)``.
    package static func checkRoom(for user: UInt32) throws(SystemError) {
        if isFull(for: user) { throw SystemError("closing what this user had before", code: EBUSY) }
    }

    /// Closes a descriptor, and calls `completion` when it is closed, however long that takes.
    static func close(
        _ number: CInt, for user: UInt32, _ completion: (@Sendable @AgentQueue () -> Void)? = nil
    ) {
        add(.close(number, completion: completion), for: user)
    }

    /// Does `work` on a file that `user` has, before whatever is asked of here later for the same user. Nobody waits.
    package static func begin(for user: UInt32, _ work: @escaping @Sendable () -> Void) {
        if isTrusted(user) { return work() }
        add(.call(work), for: user)
    }

    /// Does `work` on a file that `user` has, and returns what comes of it; `otherwise` where that does not come soon,
    /// and for a while from then on.
    ///
    /// The descriptor that `work` uses is to be closed by ``close(_:for:_:)``: that is after the work, however late.
    @AgentQueue
    package static func answer<T: Sendable>(
        for user: UInt32, otherwise: T, _ work: @escaping @Sendable () -> T
    ) -> T {
        if isTrusted(user) { return work() }
        guard state.withLock({ $0.distrusted[user] ?? .zero }) <= BootClock.now() else { return otherwise }
        let answer = Answer<T>()
        add(.call { answer.come(of: work) }, for: user)
        for _ in 0..<patience.times where answer.isThere.wait(timeout: .now() + patience.each) == .success { break }
        if let value = answer.take() { return value }
        let now = BootClock.now()
        state.withLock { state in
            state.distrusted = state.distrusted.filter { $0.value > now }
            state.distrusted[user] = now + distrust
        }
        return otherwise
    }

    /// Waits until all that was asked for is done, but no longer than for an answer.
    @AgentQueue
    package static func awaitAll() {
        for _ in 0..<patience.times where !state.withLock({ $0.waiting.isEmpty }) {
            _ = DispatchSemaphore(value: 0).wait(timeout: .now() + patience.each)
        }
    }

    /// An answer on its way from one thread to another.
    private final class Answer<T: Sendable>: Sendable {
        let isThere = DispatchSemaphore(value: 0)
        private let place = Lock<(value: T?, isAwaited: Bool)>((nil, true))

        /// What came, if it has; it is awaited no longer.
        func take() -> T? {
            place.withLock { place in
                place.isAwaited = false
                return place.value
            }
        }

        /// Lets it come, unless nobody awaits it any more: what is asked may change the socket as well.
        func come(of work: () -> T) {
            guard place.withLock({ $0.isAwaited }) else { return }
            let value = work()
            place.withLock { $0.value = value }
            isThere.signal()
        }
    }

    /// Who could stop this process anyway.
    private static func isTrusted(_ user: UInt32) -> Bool { user == 0 || user == geteuid() }

    private static func add(_ work: Work, for user: UInt32) {
        switch state.withLock({ $0.add(work, for: user) }) {
        case .nothing: break
        case .end(let rest): rest.end.signal()
        case .thread: start()
        }
    }

    private static func start() {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        // Where there can be no other thread, the work waits until the next one starts.
        if pthread_create(&thread, &attributes, { _ in UserThreads.run() }, nil) != 0 {
            state.withLock {
                $0.threads -= 1
                $0.starting -= 1
            }
        }
    }

    private static func run() -> UnsafeMutableRawPointer? {
        pthread_setname_np(pthread_self(), "dialtone-user")
        var (next, latest) = (Next.end, UInt32(0))
        next = state.withLock {
            $0.starting -= 1
            return $0.next()
        }
        while true {
            switch next {
            case .serve(let user, let first):
                latest = user
                finish(first)
                next = state.withLock { $0.next(after: user) }
            case .rest(let rest):
                _ = rest.end.wait(timeout: .now() + idleTime)
                next = state.withLock { [latest] in $0.next(after: rest, of: latest) }
            case .end: return nil
            }
        }
    }

    private static func finish(_ work: Work) {
        switch work {
        case .call(let call): call()
        case .close(let number, let completion):
            endLingering(number)
            // Nothing to retry where it reports EINTR or EIO (OwnedDescriptor).
            _ = Glibc.close(number)
            if let completion { AgentQueue.async(completion) }
        }
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
