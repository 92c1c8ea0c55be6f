// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// State that threads share. `mutex` guards it: one thread at a time has it.
///
/// Swift's `Mutex` with a lock of the C library's, which ThreadSanitizer sees. It does not see that a `Mutex` locks,
/// and writing down what it takes for a race holds a thread up for longer than ``UserThreads`` waits for an answer.
package final class Lock<State: ~Copyable>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var state: State

    /// Nobody has the state yet.
    package init(_ state: consuming sending State) {
        self.state = state
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Calls `body` with the state, on the caller's thread. Meanwhile others wait; `body` itself is not to come here.
    package func withLock<Result: ~Copyable, Failure>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state)
    }
}
