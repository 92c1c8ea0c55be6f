// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
package import DialtonePlatform
internal import Glibc

/// A connection to a D-Bus bus, sd-bus(3), that stands in the agent's ``Poller``: the machine's or the user's.
///
/// Nothing waits: calls are answered by callback, and where there is no bus, inotify tells when there is one
/// (sd_bus_set_watch_bind(3)). A bus that went is connected to again, and what is served and owned there is so again.
/// With nothing happening there is no system call.
@AgentQueue
package final class BusConnection {
    /// Where the machine's bus is, unless somebody says otherwise (D-Bus specification, "Well-known Message Bus
    /// Instances").
    nonisolated private static let standardAddress = "unix:path=/run/dbus/system_bus_socket"

    /// Where the machine's bus is for this process.
    package nonisolated static var systemAddress: String {
        getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? standardAddress
    }

    /// Where the bus of the user's session is, on which the user's own service manager is:
    /// `$DBUS_SESSION_BUS_ADDRESS`, else the socket in `$XDG_RUNTIME_DIR`; `nil` where there is neither.
    package nonisolated static var sessionAddress: String? {
        if let address = getenv("DBUS_SESSION_BUS_ADDRESS") { return String(cString: address) }
        return getenv("XDG_RUNTIME_DIR").map { "unix:path=\(String(cString: $0))/bus" }
    }

    /// The waits before a new connection after one was lost. A bus that restarts is back at once; one that takes
    /// connections and drops them must not be asked in a loop.
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(60)

    /// So many messages are taken in one turn. The bus lets a program send without an end, and others are to have their
    /// turns.
    nonisolated static let mostInTurn = 64

    private let address: String
    private let connected: @AgentQueue () -> Void
    private let lost: @AgentQueue () -> Void
    private let unreachable: (@AgentQueue (SystemError) -> Void)?
    private(set) var bus: OpaquePointer?
    /// Whether the bus has let this connection in.
    package private(set) var isConnected = false
    /// Counts the connections, to tell what came by an earlier one.
    private(set) var generation = 0
    private var watch: Watch?
    private var timer: Timers.Timer?
    private var delay = firstDelay
    /// What the callbacks of this connection lead to, by when they were made; sd-bus holds their addresses.
    private var handlers: [UInt64: Handler] = [:]
    private var nextHandler: UInt64 = 0
    private var objects: [BusObject] = []
    var names: [OwnedName] = []

    /// The descriptor that the poller watches. A duplicate, since sd-bus closes its own when it likes (the one of
    /// inotify, once there is a bus to connect to), and the poller's must be open until it is no more watched.
    private struct Watch {
        let descriptor: DescriptorBox
        let registration: Poller.Registration
        let isOfConnection: Bool
    }

    private final class DescriptorBox {
        let descriptor: OwnedDescriptor
        init(_ number: CInt) { descriptor = OwnedDescriptor(number) }
    }

    /// Connects as soon as there is a bus.
    ///
    /// - Parameters:
    ///   - address: where it is, in D-Bus's form.
    ///   - connected: is called at each new connection, to subscribe and to ask.
    ///   - lost: is called when it went, and all subscriptions with it; before the calls without an answer fail.
    ///   - unreachable: where this is given, no bus is waited for: it is called, with what the kernel says, when there
    ///     is none to connect to.
    package init(
        address: String, connected: @escaping @AgentQueue () -> Void, lost: @escaping @AgentQueue () -> Void,
        unreachable: (@AgentQueue (SystemError) -> Void)? = nil
    ) {
        self.address = address
        self.connected = connected
        self.lost = lost
        self.unreachable = unreachable
        connect()
    }

    isolated deinit { disconnect() }

    // MARK: Use

    /// Calls `handler` with each signal that matches `rule` (D-Bus specification, "Match Rules") for as long as the
    /// connection stands. Without one it does nothing: to be called when it is there.
    package func subscribe(_ rule: String, _ handler: @escaping @AgentQueue (BusMessage) -> Void) {
        guard let bus else { return }
        // No callback for the subscription itself: where the bus refuses one, it ends the connection.
        sd_bus_add_match_async(bus, nil, rule, busMessageArrived, nil, keep(.signal(handler)))
        update()
    }

    /// A subscription that ends with this value.
    @AgentQueue
    package final class Subscription {
        // sd-bus's own, used on the agent's queue like all of it.
        private let slot: OpaquePointer
        private let handler: Handler

        fileprivate init(_ slot: OpaquePointer, _ handler: Handler) { (self.slot, self.handler) = (slot, handler) }

        isolated deinit {
            sd_bus_slot_unref(slot)
            handler.owner?.forget(handler)
        }
    }

    /// As ``subscribe(_:_:)``, until the end of what is returned; `nil` without a connection.
    package func follow(
        _ rule: String, _ handler: @escaping @AgentQueue (BusMessage) -> Void
    ) -> Subscription? {
        guard let bus else { return nil }
        let context = keep(.signal(handler))
        var slot: OpaquePointer?
        let result = sd_bus_add_match_async(bus, &slot, rule, busMessageArrived, nil, context)
        update()
        guard result >= 0, let slot else { return nil }
        return Subscription(slot, Unmanaged<Handler>.fromOpaque(context).takeUnretainedValue())
    }

    /// Calls a method of `service` and `handler` with its answer, later and once, unless this connection is let go of
    /// before. Where the connection is lost, or there is none, that is the answer.
    ///
    /// - Parameters:
    ///   - isStarting: whether the bus is to start a service that does not run.
    ///   - limit: how long the answer may take, the machine's sleep not counted; `nil` for sd-bus's 25 seconds. The
    ///     start of a service counts.
    ///   - fill: writes the arguments that are no strings.
    package func call(
        _ service: String, _ path: String, _ interface: String, _ method: String, _ arguments: [String] = [],
        isStarting: Bool = false, limit: Duration? = nil, filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        _ handler: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        func refuse(_ failure: BusFailure) { AgentQueue.async { handler(.failure(failure)) } }
        guard isConnected, let bus else { return refuse(.disconnected) }
        let unwritten = BusFailure.refusedByBus(name: BusFailure.Name.invalidArguments, text: "it cannot be written")
        var message: OpaquePointer?
        guard sd_bus_message_new_method_call(bus, &message, service, path, interface, method) >= 0, let message else {
            return refuse(unwritten)
        }
        defer { sd_bus_message_unref(message) }
        sd_bus_message_set_auto_start(message, isStarting ? 1 : 0)
        let writer = BusArguments(message)
        for argument in arguments { writer.string(argument) }
        fill(writer)
        guard !writer.isBroken else { return refuse(unwritten) }
        let limit = limit ?? .seconds(25)
        let context = keep(.answer(handler, due: monotonicTime() + limit))
        let microseconds = max(limit.milliseconds, 1).multipliedReportingOverflow(by: 1000)
        let result = sd_bus_call_async(
            bus, nil, message, busMessageArrived, context,
            microseconds.overflow ? .max : UInt64(microseconds.partialValue))
        if result < 0 {
            forget(Unmanaged<Handler>.fromOpaque(context).takeUnretainedValue())
            let text = SystemError("sending to the bus", code: -result).description
            refuse(.refusedByBus(name: BusFailure.Name.limitsExceeded, text: text))
        }
        update()
    }

    /// The name that the bus gave this connection, which no other has on it; `nil` without one.
    package var uniqueName: String? {
        var name: UnsafePointer<CChar>?
        guard isConnected, sd_bus_get_unique_name(bus, &name) >= 0 else { return nil }
        return name.map { String(cString: $0) }
    }

    /// Serves an object at this path, on this connection and on each that follows it.
    package func serve(_ path: String, _ interfaces: [BusInterface]) {
        let object = BusObject(path, interfaces, on: self)
        objects.append(object)
        if let bus { add(object, to: bus) }
    }

    private func add(_ object: BusObject, to bus: OpaquePointer) {
        sd_bus_add_object(bus, nil, object.path, busCallArrived, Unmanaged.passUnretained(object).toOpaque())
    }

    /// Sends a message that stays the caller's.
    func send(_ message: OpaquePointer) {
        guard let bus else { return }
        sd_bus_send(bus, message, nil)
        update()
    }

    // MARK: Handlers

    /// Where what is called for one subscription or call is found again.
    fileprivate final class Handler {
        enum Kind {
            case signal(@AgentQueue (BusMessage) -> Void)
            /// By when the answer is due, on the clock that sd-bus counts by.
            case answer(@AgentQueue (Result<BusMessage, BusFailure>) -> Void, due: Duration)
        }

        let kind: Kind
        let number: UInt64
        weak var owner: BusConnection?

        init(_ kind: Kind, _ number: UInt64, _ owner: BusConnection) {
            self.kind = kind
            self.number = number
            self.owner = owner
        }
    }

    private func keep(_ kind: Handler.Kind) -> UnsafeMutableRawPointer {
        let handler = Handler(kind, nextHandler, self)
        nextHandler += 1
        handlers[handler.number] = handler
        return Unmanaged.passUnretained(handler).toOpaque()
    }

    private func forget(_ handler: Handler) {
        handlers[handler.number] = nil
        update()
    }

    fileprivate func take(_ message: OpaquePointer, for handler: Handler) {
        // sd-bus answers open calls itself ("Connection terminated") once the bus is gone: `drop` tells that.
        guard sd_bus_is_open(bus) > 0 else { return }
        switch handler.kind {
        case .signal(let call): call(BusMessage(message))
        case .answer(let call, let due):
            handlers[handler.number] = nil
            let message = BusMessage(message)
            call(message.isError ? .failure(failure(message, due: due)) : .success(message))
        }
    }

    private func failure(_ message: BusMessage, due: Duration) -> BusFailure {
        let (name, text) = message.error
        // What sd-bus says itself has the bus for its sender, too, or none.
        guard message.sender == nil || message.sender == Self.driver else { return .error(name: name, text: text) }
        switch name {
        case BusFailure.Name.noReply: return monotonicTime() >= due ? .timedOut : .serviceEnded
        case BusFailure.Name.serviceUnknown: return .unknownService(text)
        default: return .refusedByBus(name: name, text: text)
        }
    }

    // MARK: Connection

    private func connect() {
        timer = nil
        guard sd_bus_new(&bus) >= 0, sd_bus_set_watch_bind(bus, unreachable == nil ? 1 : 0) >= 0,
            sd_bus_set_bus_client(bus, 1) >= 0, sd_bus_set_address(bus, address) >= 0
        else { return drop() }
        if let bus { for object in objects { add(object, to: bus) } }
        let result = sd_bus_start(bus)
        if result >= 0 { return update() }
        guard let unreachable else { return drop() }
        disconnect()
        unreachable(SystemError("connecting to \(address)", code: -result))
    }

    private func process() {
        let generation = generation
        for _ in 0..<Self.mostInTurn {
            guard let bus else { return }
            let result = sd_bus_process(bus, nil)
            if result < 0 { return drop() }
            if !isConnected, sd_bus_is_ready(bus) > 0 {
                isConnected = true
                delay = Self.firstDelay
                for name in names { request(name) }
                connected()
            }
            if result == 0 { return update() }
        }
        AgentQueue.async { [weak self] in
            if self?.generation == generation { self?.process() }
        }
    }

    /// Has the poller and the timer wait for what the connection waits for.
    private func update() {
        guard let bus else { return }
        let (number, events) = (sd_bus_get_fd(bus), sd_bus_get_events(bus))
        guard number >= 0, events >= 0 else { return drop() }
        let interest = Poller.Readiness(rawValue: UInt32(events))
        if let watch, watch.isOfConnection {
            watch.registration.update(interest)
        } else {
            // Until it is connected, what there is to wait for may be another descriptor each time.
            unwatch()
            do throws(SystemError) {
                let copy = try retryingInterrupts("watching the bus") { fcntl(number, F_DUPFD_CLOEXEC, 0) }
                let box = DescriptorBox(copy)
                watch = Watch(
                    descriptor: box,
                    registration: try Poller.shared.register(copy, interest) { [weak self] _ in self?.process() },
                    isOfConnection: isConnected)
            } catch {
                // The limit of descriptors: it may be another day's.
                return drop()
            }
        }
        arm(bus)
    }

    private func unwatch() {
        watch?.registration.cancel()
        watch = nil
    }

    /// Sets the timer to when sd-bus wants to be called in any case: an answer that is overdue.
    private func arm(_ bus: OpaquePointer) {
        timer?.cancel()
        timer = nil
        var due: UInt64 = 0
        guard sd_bus_get_timeout(bus, &due) >= 0, due != .max else { return }
        let wait = Duration.microseconds(Int64(clamping: due)) - monotonicTime()
        timer = Timers.shared.schedule(after: wait) { [weak self] in self?.process() }
    }

    /// The connection is lost, or there is none to be had: tries again later.
    private func drop() {
        let wasConnected = isConnected
        let unanswered = handlers.values.sorted { $0.number < $1.number }
        disconnect()
        timer = Timers.shared.schedule(after: delay) { [weak self] in self?.connect() }
        delay = min(delay * 2, Self.longestDelay)
        if wasConnected { lost() }
        for handler in unanswered {
            if case .answer(let call, _) = handler.kind { call(.failure(.disconnected)) }
        }
    }

    private func disconnect() {
        unwatch()
        timer?.cancel()
        isConnected = false
        generation += 1
        // Not flushed: that would wait for the bus to read.
        if let bus { sd_bus_close(bus) }
        sd_bus_unref(bus)
        bus = nil
        handlers = [:]
    }
}

/// Called by sd-bus within `sd_bus_process`, so on the agent's queue.
private func busMessageArrived(
    _ message: OpaquePointer?, _ handler: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let handler else { return 0 }
    // Both are used in this call alone, on the queue that it is made on.
    nonisolated(unsafe) let (borrowed, context) = (message, handler)
    AgentQueue.assumeIsolated {
        let handler = Unmanaged<BusConnection.Handler>.fromOpaque(context).takeUnretainedValue()
        handler.owner?.take(borrowed, for: handler)
    }
    return 0
}

/// The time that sd-bus counts by, without the machine's sleep.
private func monotonicTime() -> Duration {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
}
