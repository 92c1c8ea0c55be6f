// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Dispatch
internal import Glibc

/// Readiness of many descriptors behind one Dispatch source.
///
/// A Dispatch source per socket has two costs that this agent cannot pay: its descriptor may be closed only after an
/// asynchronous cancel handler ran, while "its address is gone" means close *now*; and it reports neither hang-up
/// without readability nor edges. So the sockets stand in an epoll set of our own, and the set's descriptor (readable
/// when a member is ready) is the one Dispatch source.
@AgentQueue
public final class Poller {
    /// The agent's descriptors.
    public static let shared = Poller()

    /// What a descriptor is watched for and what came; the bits of `epoll_ctl(2)`.
    public struct Readiness: OptionSet, Sendable {
        /// The bits, as `epoll_event.events` has them.
        public let rawValue: UInt32

        /// The bits of an `epoll_event.events`.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Bytes, an end of stream or a connection to accept (`EPOLLIN`).
        public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        /// Room to write, or the outcome of a `connect` (`EPOLLOUT`).
        public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// The peer sent its end of stream, even with unread bytes before it (`EPOLLRDHUP`).
        public static let peerClosed = Readiness(rawValue: EPOLLRDHUP.rawValue)
        /// Both directions are shut (`EPOLLHUP`); always reported, need not be asked for.
        public static let hangUp = Readiness(rawValue: EPOLLHUP.rawValue)
        /// The socket has an error pending in `SO_ERROR` (`EPOLLERR`); always reported, need not be asked for.
        public static let error = Readiness(rawValue: EPOLLERR.rawValue)
        /// Report a state when it is entered, not as long as it lasts (`EPOLLET`).
        public static let edgeTriggered = Readiness(rawValue: EPOLLET.rawValue)
    }

    /// One watched descriptor. Its handler runs on the agent's queue until ``cancel()``.
    @AgentQueue
    public final class Registration {
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
        public func update(_ interest: Readiness) {
            guard handler != nil, interest != self.interest else { return }
            self.interest = interest
            Poller.shared.modify(self)
        }

        /// Ends the watch. No call of the handler follows, and the descriptor may be closed at once.
        public func cancel() {
            guard handler != nil else { return }
            handler = nil
            Poller.shared.remove(self)
        }
    }

    /// Events taken from the kernel in one call. More than this wait for the next turn of the queue, so that a burst
    /// on a thousand sockets does not starve a netlink event behind it.
    private static let eventsPerTurn = 64

    private let descriptor: OwnedDescriptor
    private let source: any DispatchSourceRead
    private var registrations: [UInt64: Registration] = [:]
    private var nextToken: UInt64 = 0

    private init() {
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        // Without it the agent cannot watch a single socket; ENFILE at the first line of a process is not survivable.
        precondition(number >= 0, "\(SystemError.last("creating the agent's epoll set"))")
        descriptor = OwnedDescriptor(number)
        source = DispatchSource.makeReadSource(fileDescriptor: number, queue: AgentQueue.queue)
        source.setEventHandler { AgentQueue.assumeIsolated { Poller.shared.dispatch() } }
        source.activate()
    }

    /// Watches `descriptor` and calls `handler` with what came. The caller keeps the descriptor open until it cancels
    /// the registration.
    ///
    /// - Throws: the kernel's refusal of `epoll_ctl`: `EPERM` for a file that cannot be polled, `ENOSPC` at the user's
    ///   limit in `/proc/sys/fs/epoll/max_user_watches`.
    public func register(
        _ descriptor: CInt, _ interest: Readiness, _ handler: @escaping @AgentQueue (Readiness) -> Void
    ) throws(SystemError) -> Registration {
        // Tokens, not descriptor numbers, name the registrations: a number is reused the moment it is closed, and an
        // event that was already fetched for its former owner must not reach the new one.
        let token = nextToken
        nextToken += 1
        var event = epoll_event(events: interest.rawValue, data: epoll_data_t(u64: token))
        if epoll_ctl(self.descriptor.number, EPOLL_CTL_ADD, descriptor, &event) != 0 {
            throw .last("watching descriptor \(descriptor)")
        }
        let registration = Registration(descriptor: descriptor, token: token, interest: interest, handler: handler)
        registrations[token] = registration
        return registration
    }

    private func modify(_ registration: Registration) {
        var event = epoll_event(events: registration.interest.rawValue, data: epoll_data_t(u64: registration.token))
        let result = epoll_ctl(descriptor.number, EPOLL_CTL_MOD, registration.descriptor, &event)
        // The descriptor is in the set and open (register's contract), so a refusal is a bug of the caller.
        precondition(result == 0, "\(SystemError.last("changing the watch of descriptor \(registration.descriptor)"))")
    }

    private func remove(_ registration: Registration) {
        registrations[registration.token] = nil
        let result = epoll_ctl(descriptor.number, EPOLL_CTL_DEL, registration.descriptor, nil)
        precondition(result == 0, "\(SystemError.last("ending the watch of descriptor \(registration.descriptor)"))")
    }

    private func dispatch() {
        withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.eventsPerTurn) { events in
            let count = epoll_wait(descriptor.number, events.baseAddress, CInt(events.count), 0)
            guard count > 0 else { return }
            for event in events.prefix(Int(count)) {
                registrations[event.data.u64]?.handler?(Readiness(rawValue: event.events))
            }
        }
    }
}
