// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Glibc

/// Delivers values to a user's queue until it is shut, and not once after.
///
/// ``shut()`` may be called from any thread. When it returns, no callback is running and none will start: it waits for
/// one that runs on another thread, and it may be called from within the callback itself, where there is nothing to
/// wait for. That promise needs a lock held across the callback, and a recursive one; a flag alone leaves the moment
/// between the look at the flag and the call.
final class CallbackGate: @unchecked Sendable {
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

    /// Runs `callback` on `queue`, a serial one, unless the gate is shut by then.
    func deliver(on queue: DispatchQueue, _ callback: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            if !isShut { callback() }
        }
    }

    /// Ends all delivery.
    func shut() {
        pthread_mutex_lock(mutex)
        isShut = true
        pthread_mutex_unlock(mutex)
    }
}
