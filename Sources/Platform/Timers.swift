// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc
internal import HeapModule

/// All timers of the agent behind one kernel timer.
///
/// A thousand connections with a back-off each cost one `timerfd` armed for the earliest of them; with nothing
/// scheduled it is disarmed and the process sleeps. Deadlines are instants of ``BootClock``.
@AgentQueue
package final class Timers {
    /// The agent's timers.
    package static let shared = Timers()

    /// A scheduled callback. Dropping the last reference does not cancel it; ``cancel()`` does, for good.
    @AgentQueue
    package final class Timer {
        /// When it is due, on ``BootClock``.
        package nonisolated let deadline: Duration
        fileprivate nonisolated let serial: UInt64
        fileprivate var handler: (@AgentQueue () -> Void)?
        private unowned let owner: Timers

        fileprivate init(
            deadline: Duration, serial: UInt64, owner: Timers, handler: @escaping @AgentQueue () -> Void
        ) {
            self.deadline = deadline
            self.serial = serial
            self.owner = owner
            self.handler = handler
        }

        /// Takes the callback back. It will not run, even when it was due already and only waited for its turn.
        package func cancel() {
            guard handler != nil else { return }
            handler = nil
            // Counted even if it has left the heap to run in this turn: an overcount only sweeps earlier.
            owner.timerWasCancelled()
        }
    }

    private struct Entry: Comparable {
        let timer: Timer

        static func == (left: Entry, right: Entry) -> Bool { left.timer === right.timer }

        /// Earlier deadlines first; among equals the one scheduled first, so that order is never left to chance.
        static func < (left: Entry, right: Entry) -> Bool {
            (left.timer.deadline, left.timer.serial) < (right.timer.deadline, right.timer.serial)
        }
    }

    /// Cancelled entries may outnumber the live ones by at most this much before the heap is rebuilt without them.
    /// Connections cancel most of their timers (each success cancels a deadline), so the heap would grow otherwise;
    /// 64 keeps rebuilding rare and the waste below a page.
    private static let toleratedCancellations = 64

    /// The kernel's timer, for the life of the process; -1 until it is made. Tests look at whether it is set.
    private(set) var descriptor: CInt = -1
    private var isWaitingForDescriptor = false
    private var heap = Heap<Entry>()
    /// How many of the heap's entries are cancelled ones; or somewhat more.
    private var cancelled = 0
    private var nextSerial: UInt64 = 0
    private var armedFor: Duration?

    /// How many timers are kept, cancelled ones included; tests look at its bound.
    var count: Int { heap.count }

    /// Timers of their own, for tests; the agent has ``shared``.
    init() {}

    /// Makes the kernel's timer. Not when the timers are: a process may be out of descriptors just then.
    private func start() throws(SystemError) {
        guard descriptor < 0 else { return }
        let number = try retryingInterrupts("creating the agent's timer") {
            timerfd_create(CLOCK_BOOTTIME, CInt(TFD_NONBLOCK) | CInt(TFD_CLOEXEC))
        }
        do throws(SystemError) {
            _ = try Poller.shared.register(number, .readable) { _ in self.fire() }
        } catch {
            close(number)
            throw error
        }
        descriptor = number
    }

    /// Tries again to have the kernel's timer, in a second. A thread sleeps until then: that takes no descriptor.
    private func startLater() {
        guard !isWaitingForDescriptor else { return }
        var thread = pthread_t()
        let timers = Unmanaged.passRetained(self).toOpaque()
        // A function and not a closure, which would belong to the agent's queue.
        isWaitingForDescriptor = pthread_create(&thread, nil, sleepingThread, timers) == 0
        // Without a thread either, the next timer that is scheduled is another attempt.
        if isWaitingForDescriptor { pthread_detach(thread) } else { Unmanaged<Timers>.fromOpaque(timers).release() }
    }

    fileprivate func hasSlept() {
        isWaitingForDescriptor = false
        arm()
    }

    /// Calls `handler` on the agent's queue once `deadline` (on ``BootClock``) has passed; at the next turn if it has.
    package func schedule(at deadline: Duration, _ handler: @escaping @AgentQueue () -> Void) -> Timer {
        let timer = Timer(deadline: deadline, serial: nextSerial, owner: self, handler: handler)
        nextSerial += 1
        heap.insert(Entry(timer: timer))
        arm()
        return timer
    }

    /// Calls `handler` on the agent's queue after `delay`.
    package func schedule(after delay: Duration, _ handler: @escaping @AgentQueue () -> Void) -> Timer {
        schedule(at: BootClock.now() + delay, handler)
    }

    private func timerWasCancelled() {
        cancelled += 1
        if cancelled > Self.toleratedCancellations, cancelled > heap.count / 2 {
            heap = Heap(heap.unordered.filter { $0.timer.handler != nil })
            cancelled = 0
        }
        arm()
    }

    private func fire() {
        var expirations: UInt64 = 0
        // Nothing to read: it was set anew after the poller saw it expire, and stands.
        if read(descriptor, &expirations, MemoryLayout.size(ofValue: expirations)) > 0 { armedFor = nil }
        for timer in takeDue(now: BootClock.now()) {
            // One that ran before may have cancelled it.
            guard let handler = timer.handler else { continue }
            timer.handler = nil
            handler()
        }
        arm()
    }

    /// Takes the live timers that are due out of the heap before any of them runs: what their handlers schedule is for
    /// a later turn even when it is due already, so that none can keep the queue by re-scheduling itself for "now".
    private func takeDue(now: Duration) -> [Timer] {
        var due: [Timer] = []
        while let next = heap.min?.timer, next.deadline <= now {
            heap.removeMin()
            if next.handler == nil {
                cancelled -= 1
            } else {
                due.append(next)
            }
        }
        return due
    }

    /// Sets the kernel's timer to the earliest live deadline, and only when that differs from what it is set to.
    private func arm() {
        while let next = heap.min, next.timer.handler == nil {
            heap.removeMin()
            cancelled -= 1
        }
        let deadline = heap.min?.timer.deadline
        guard deadline != armedFor else { return }
        guard (try? start()) != nil else { return startLater() }
        armedFor = deadline
        // An all-zero value disarms, so a deadline at or before the epoch is set one nanosecond after it.
        var setting = itimerspec()
        if let deadline { setting.it_value = max(deadline, .nanoseconds(1)).kernelTime }
        timerfd_settime(descriptor, CInt(TFD_TIMER_ABSTIME), &setting, nil)
    }
}

/// Sleeps a second and wakes the timers that it was given.
private func sleepingThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    sleep(1)
    guard let argument else { return nil }
    let timers = Unmanaged<Timers>.fromOpaque(argument).takeRetainedValue()
    AgentQueue.async { timers.hasSlept() }
    return nil
}
