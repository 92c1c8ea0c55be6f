// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Dispatch
internal import Glibc

/// A thread that lives in a network namespace and runs what it is given there, one job after the other.
///
/// A new namespace has no name and no file: it lasts as long as this thread, a process started by it or a socket opened
/// in it, so that a crashed test run leaves nothing behind. The thread ends with the last reference to this object,
/// and the kernel then kills the processes that it started.
///
/// A thread that is created by this one is in the same namespace, for good. So nothing here touches Dispatch or Swift's
/// concurrency on it, which would take such threads into their pools and run others' work in the wrong network: results
/// leave by way of ``Relay``.
final class NamespaceThread: Sendable {
    /// Which namespace a thread lives in.
    enum Location: Sendable {
        /// One of its own.
        case new
        /// The one that the process was started in.
        case process
    }

    /// The thread's number, by which `ip link … netns NUMBER` finds the namespace.
    let threadID: pid_t

    private let jobs: JobQueue

    private init(threadID: pid_t, jobs: JobQueue) {
        self.threadID = threadID
        self.jobs = jobs
    }

    deinit { jobs.append(nil) }

    /// Starts a thread and moves it to where it is to live.
    ///
    /// - Throws: the kernel's refusal: `EPERM` outside of `scripts/in-lab` for one who is not root.
    static func start(in location: Location) async throws -> NamespaceThread {
        let jobs = JobQueue()
        startThread { while let job = jobs.next() { job() } }
        let threadID = try await run(on: jobs) {
            if location == .new, clab_enter_new_network() != 0 {
                throw SystemError.last("moving a thread into a new network namespace")
            }
            return clab_thread_id()
        }
        return NamespaceThread(threadID: threadID, jobs: jobs)
    }

    /// Runs `body` on the thread and returns what it returns. It may block; the jobs behind it wait meanwhile.
    func run<T: ~Copyable & Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await Self.run(on: jobs, body)
    }

    private static func run<T: ~Copyable & Sendable>(
        on jobs: JobQueue, _ body: @escaping @Sendable () throws -> T
    ) async throws -> T {
        let slot = Slot<T>()
        // Named here, or the first use on a namespace's thread would start it there.
        let relay = Relay.jobs
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            jobs.append {
                let result = Result { try slot.fill(with: body) }
                relay.append { continuation.resume(with: result) }
            }
        }
        return slot.take()
    }
}

/// Where a result waits for its receiver: a continuation cannot carry what cannot be copied.
private final class Slot<T: ~Copyable & Sendable>: Sendable {
    private let value = Lock<T?>(nil)

    func fill(with body: () throws -> T) throws {
        // Under the lock, which nobody else wants before the result is there.
        try value.withLock { $0 = try body() }
    }

    func take() -> T {
        guard let value = value.withLock({ $0.take() }) else { preconditionFailure("taken before it was filled") }
        return value
    }
}

/// A thread in the process's own namespace that resumes those who wait for a namespace's thread.
private enum Relay {
    static let jobs: JobQueue = {
        let jobs = JobQueue()
        startThread { while let job = jobs.next() { job() } }
        return jobs
    }()
}

/// The jobs of one thread, and its wait for them; `nil` is the order to end.
private final class JobQueue: Sendable {
    typealias Job = @Sendable () -> Void

    private let jobs = Lock<[Job?]>([])
    private let available = DispatchSemaphore(value: 0)

    func append(_ job: Job?) {
        jobs.withLock { $0.append(job) }
        available.signal()
    }

    func next() -> Job? {
        available.wait()
        return jobs.withLock { $0.removeFirst() }
    }
}

/// Runs `body` on a new, detached thread.
private func startThread(_ body: @escaping @Sendable () -> Void) {
    let box = Unmanaged.passRetained(ThreadBody(body: body))
    var thread = pthread_t()
    let code = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, box.toOpaque())
    precondition(code == 0, "\(SystemError("starting a thread", code: code))")
    pthread_detach(thread)
}

private final class ThreadBody: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) { self.body = body }
}
