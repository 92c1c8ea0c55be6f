// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Glibc
internal import Synchronization

/// Delivers values to a user's queue until it is shut, and not once after.
///
/// Callbacks are called one at a time and in order whatever the queue, since what lies in it is not the callback but
/// the word that the next one is due. A queue of its own in between would do as much, and cost every callback a second
/// hop.
///
/// ``shut()`` may be called from any thread. When it returns, no callback is running and none will start: it waits for
/// one that runs on another thread, and it may be called from within the callback itself, where there is nothing to
/// wait for. That promise needs a lock held across the callback, and a recursive one; a flag alone leaves the moment
/// between the look at the flag and the call.
final class CallbackGate: @unchecked Sendable {
    private typealias Callback = @Sendable () -> Void

    private struct Waiting {
        var callbacks: [Callback] = []
        /// Whether the queue has been given the word. One at a time: with many observers each has its turn, and a slow
        /// one on a concurrent queue holds a single thread.
        var isAnnounced = false
    }

    private let waiting = Mutex(Waiting())
    // `isShut` and the callbacks themselves are guarded by `mutex`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var isShut = false

    init() {
        mutex = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_RECURSIVE))
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `callback` on `queue`, after those before it, unless the gate is shut by then.
    func deliver(on queue: DispatchQueue, _ callback: @escaping @Sendable () -> Void) {
        let isAnnounced = waiting.withLock { waiting in
            waiting.callbacks.append(callback)
            defer { waiting.isAnnounced = true }
            return waiting.isAnnounced
        }
        if !isAnnounced { announce(on: queue) }
    }

    private func announce(on queue: DispatchQueue) {
        queue.async { [self] in
            call()
            let isDone = waiting.withLock { waiting in
                waiting.isAnnounced = !waiting.callbacks.isEmpty
                return !waiting.isAnnounced
            }
            if !isDone { announce(on: queue) }
        }
    }

    private func call() {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        // Hardly ever more than one, since the queue is faster than the network.
        let callback = waiting.withLock { $0.callbacks.isEmpty ? nil : $0.callbacks.removeFirst() }
        if !isShut { callback?() }
    }

    /// Ends all delivery.
    func shut() {
        pthread_mutex_lock(mutex)
        isShut = true
        pthread_mutex_unlock(mutex)
    }
}
