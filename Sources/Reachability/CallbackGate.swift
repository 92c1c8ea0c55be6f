// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Dispatch
internal import Glibc

/// Delivers values to a user's queue until it is shut, and not one after.
///
/// Values are delivered one at a time and in order whatever the queue, since what lies in it is not the value but the
/// word that the next one is due. A queue of its own in between would do as much, and cost every callback a second hop.
///
/// ``shut()`` may be called from any thread. When it returns, no callback is running and none will start: it waits for
/// one that runs on another thread, and it may be called from within the callback itself, where there is nothing to
/// wait for. That promise needs a lock held across the callback, and a recursive one; a flag alone leaves the moment
/// between the look at the flag and the call.
final class CallbackGate<Value: Sendable>: @unchecked Sendable {
    private struct Waiting {
        /// The one to be delivered next; the word for it is in the queue. Once at a time: with many observers each has
        /// its turn, and a slow one on a concurrent queue holds a single thread. Hardly ever are there more, since the
        /// queue is faster than the network, and this one takes no memory of its own: what one thread allocates and the
        /// other frees has them wait for each other.
        var next: Value?
        var later: [Value] = []
    }

    private let queue: DispatchQueue
    private let handler: @Sendable (Value) -> Void
    private let waiting = Lock(Waiting())
    // `isShut` and the callbacks themselves are guarded by `mutex`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var isShut = false

    /// A gate before `handler`, which is called on `queue`.
    init(to queue: DispatchQueue, _ handler: @escaping @Sendable (Value) -> Void) {
        self.queue = queue
        self.handler = handler
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

    /// Delivers `value` after those before it, unless the gate is shut by then.
    func deliver(_ value: Value) {
        let isFirst = waiting.withLock { waiting in
            guard waiting.next != nil else {
                waiting.next = value
                return true
            }
            waiting.later.append(value)
            return false
        }
        if isFirst { announce() }
    }

    private func announce() {
        queue.async { [self] in deliverNext() }
    }

    private func deliverNext() {
        pthread_mutex_lock(mutex)
        // It stays in its place meanwhile: what comes now waits behind it.
        if !isShut, let value = waiting.withLock({ $0.next }) { handler(value) }
        pthread_mutex_unlock(mutex)
        let isMore = waiting.withLock { waiting in
            waiting.next = waiting.later.isEmpty ? nil : waiting.later.removeFirst()
            return waiting.next != nil
        }
        if isMore { announce() }
    }

    /// Ends all delivery.
    func shut() {
        pthread_mutex_lock(mutex)
        isShut = true
        pthread_mutex_unlock(mutex)
    }
}
