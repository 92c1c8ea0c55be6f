// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Dispatch
internal import Glibc

/// Readiness of all the agent's descriptors: one epoll set, and one thread that waits on it.
///
/// Not Dispatch sources, for three reasons. A source's descriptor may be closed only after an asynchronous cancel
/// handler ran, while "its address is gone" means close *now*. A source reports neither hang-up without readability nor
/// edges. And a source's event crosses two threads before its handler runs (Dispatch's manager, then a worker), each a
/// wake-up of tens of microseconds. Here the thread that the kernel woke enters the queue by `sync`, which runs on the
/// calling thread: the handlers are on ``AgentQueue`` like everything else, with no thread switched since the event.
@AgentQueue
package final class Poller {
    /// The agent's descriptors.
    package static let shared = Poller()

    /// What a descriptor is watched for and what came; the bits of `epoll_ctl(2)`.
    package struct Readiness: OptionSet, Sendable {
        /// The bits, as `epoll_event.events` has them.
        package let rawValue: UInt32

        /// The bits of an `epoll_event.events`.
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Bytes, an end of stream or a connection to accept (`EPOLLIN`).
        package static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        /// Room to write, or the outcome of a `connect` (`EPOLLOUT`).
        package static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// Something out of the ordinary; of a file of PSI, the pressure that was asked for (`EPOLLPRI`).
        package static let urgent = Readiness(rawValue: EPOLLPRI.rawValue)
        /// The peer sent its end of stream, even with unread bytes before it (`EPOLLRDHUP`).
        package static let peerClosed = Readiness(rawValue: EPOLLRDHUP.rawValue)
        /// Both directions are shut (`EPOLLHUP`); always reported, need not be asked for.
        package static let hangUp = Readiness(rawValue: EPOLLHUP.rawValue)
        /// The socket has an error pending in `SO_ERROR` (`EPOLLERR`); always reported, need not be asked for.
        package static let error = Readiness(rawValue: EPOLLERR.rawValue)
        /// What the kernel reports whether asked for or not.
        fileprivate static let unasked: Readiness = [.hangUp, .error]
        /// Report a state when it is entered, not as long as it lasts (`EPOLLET`).
        package static let edgeTriggered = Readiness(rawValue: EPOLLET.rawValue)
    }

    /// One watched descriptor. Its handler runs on the agent's queue until ``cancel()``.
    @AgentQueue
    package final class Registration {
        fileprivate let descriptor: CInt
        fileprivate let token: UInt64
        fileprivate var interest: Readiness
        fileprivate var handler: (@AgentQueue (Readiness) -> Void)?

        fileprivate init(
            descriptor: CInt, token: UInt64, interest: Readiness, handler: @escaping @AgentQueue (Readiness) -> Void
        ) {
            self.descriptor = descriptor
            self.token = token
            self.interest = interest
            self.handler = handler
        }

        /// Watches for something else from now on.
        package func update(_ interest: Readiness) {
            guard handler != nil, interest != self.interest else { return }
            self.interest = interest
            Poller.shared.modify(self)
        }

        /// Ends the watch. No call of the handler follows, and the descriptor may be closed at once.
        package func cancel() {
            guard handler != nil else { return }
            handler = nil
            Poller.shared.remove(self)
        }
    }

    /// Events taken from the kernel in one call. More than this wait for the next turn of the queue, so that a burst
    /// on a thousand sockets does not starve what else is queued.
    private nonisolated static let eventsPerTurn = 64

    /// The thread's stack. Handlers run on it, so it has what a Dispatch worker has; only touched pages take memory.
    private static let stackSize = 512 * 1024

    /// Called at each wake-up, before its events are handled; see ``ResumeWatch``.
    var beforeEvents: (@AgentQueue () -> Void)?

    /// What is to be done after the events at hand; `nil` while there are none.
    private var afterEvents: [@AgentQueue () -> Void]?

    /// The epoll set, for the life of the process; -1 until it is made.
    private var set: CInt = -1
    private var registrations: [UInt64: Registration] = [:]
    private var nextToken: UInt64 = 0

    private init() {}

    /// Makes the set and starts the thread, once. Not when the poller is: a process that is out of descriptors for a
    /// moment is told so, and may try again.
    private func start() throws(SystemError) {
        guard set < 0 else { return }
        let number = try retryingInterrupts("creating the agent's epoll set") { epoll_create1(CInt(EPOLL_CLOEXEC)) }
        do throws(SystemError) {
            try startThread(on: number)
        } catch {
            close(number)
            throw error
        }
        set = number
    }

    /// Starts the thread, which lives as long as the process.
    private func startThread(on set: CInt) throws(SystemError) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackSize)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        // A function and not a closure: one written here would belong to the agent's queue, and trap on the new thread.
        let argument = UnsafeMutableRawPointer(bitPattern: Int(set))
        let result = pthread_create(&thread, &attributes, pollerThread, argument)
        if result != 0 { throw SystemError("starting the agent's thread", code: result) }
    }

    /// The thread's life: sleep until something is ready, then have it handled on the queue.
    fileprivate nonisolated static func wait(on set: CInt) -> Never {
        pthread_setname_np(pthread_self(), "dialtone-poller")
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: eventsPerTurn)
        while true {
            let count = epoll_wait(set, events.baseAddress, CInt(events.count), -1)
            // EINTR: a signal that nobody handles here.
            guard count > 0 else { continue }
            let ready = UnsafeMutableBufferPointer(rebasing: events[..<Int(count)])
            nonisolated(unsafe) let borrowed = ready
            // Between the wait and this turn others may have run, and cancelled what is reported here: their tokens are
            // not registered any more.
            AgentQueue.queue.sync { AgentQueue.assumeIsolated { Poller.shared.dispatch(borrowed) } }
        }
    }

    /// Watches `descriptor` and calls `handler` with what came. The caller keeps the descriptor open until it cancels
    /// the registration.
    ///
    /// - Throws: the kernel's refusal of `epoll_ctl`: `EPERM` for a file that cannot be polled, `ENOSPC` at the user's
    ///   limit in `/proc/sys/fs/epoll/max_user_watches`. The first time also that of the set itself: `EMFILE` or
    ///   `ENFILE` where descriptors have run out.
    package func register(
        _ descriptor: CInt, _ interest: Readiness, _ handler: @escaping @AgentQueue (Readiness) -> Void
    ) throws(SystemError) -> Registration {
        try start()
        // Tokens, not descriptor numbers, name the registrations: a number is reused the moment it is closed, and an
        // event that was already fetched for its former owner must not reach the new one.
        let token = nextToken
        nextToken += 1
        var event = epoll_event(events: interest.rawValue, data: epoll_data_t(u64: token))
        if epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) != 0 {
            throw .last("watching descriptor \(descriptor)")
        }
        let registration = Registration(descriptor: descriptor, token: token, interest: interest, handler: handler)
        registrations[token] = registration
        return registration
    }

    private func modify(_ registration: Registration) {
        var event = epoll_event(events: registration.interest.rawValue, data: epoll_data_t(u64: registration.token))
        let result = epoll_ctl(set, EPOLL_CTL_MOD, registration.descriptor, &event)
        // The descriptor is in the set and open (register's contract), so a refusal is a bug of the caller.
        precondition(result == 0, "\(SystemError.last("changing the watch of descriptor \(registration.descriptor)"))")
    }

    private func remove(_ registration: Registration) {
        registrations[registration.token] = nil
        let result = epoll_ctl(set, EPOLL_CTL_DEL, registration.descriptor, nil)
        // Likewise: it is closed after this.
        precondition(result == 0, "\(SystemError.last("ending the watch of descriptor \(registration.descriptor)"))")
    }

    /// Runs `operation` when the events at hand were handled, in the same turn of the queue; where there are none, in a
    /// turn of its own.
    package func afterEvents(_ operation: @escaping @Sendable @AgentQueue () -> Void) {
        if afterEvents == nil { AgentQueue.async(operation) } else { afterEvents?.append(operation) }
    }

    private func dispatch(_ events: UnsafeMutableBufferPointer<epoll_event>) {
        afterEvents = []
        defer {
            let operations = afterEvents ?? []
            afterEvents = nil
            for operation in operations { operation() }
        }
        beforeEvents?()
        for event in events {
            guard let registration = registrations[event.data.u64] else { continue }
            // Since the wait its interest may have changed, too.
            let ready = Readiness(rawValue: event.events).intersection(registration.interest.union(.unasked))
            if !ready.isEmpty { registration.handler?(ready) }
        }
    }
}

private func pollerThread(_ set: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    Poller.wait(on: CInt(Int(bitPattern: set)))
}
