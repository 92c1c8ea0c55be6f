// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
internal import DialtonePlatform
internal import Glibc

/// A connection to the D-Bus system bus, sd-bus(3), that stands in the agent's ``Poller``.
///
/// Nothing waits: calls are answered by callback, and where there is no bus, inotify tells when there is one
/// (sd_bus_set_watch_bind(3)). A bus that went is connected to again. With nothing happening there is no system call.
@AgentQueue
final class SystemBus {
    /// Where the bus is, unless somebody says otherwise (D-Bus specification, "Well-known Message Bus Instances").
    nonisolated private static let standardAddress = "unix:path=/run/dbus/system_bus_socket"

    /// Where the bus is for this process.
    nonisolated static var address: String {
        getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? standardAddress
    }

    /// The waits before a new connection after one was lost. A bus that restarts is back at once; one that takes
    /// connections and drops them must not be asked in a loop.
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(60)

    private let address: String
    private let connected: @AgentQueue () -> Void
    private let lost: @AgentQueue () -> Void
    private let unreachable: (@AgentQueue (SystemError) -> Void)?
    private var bus: OpaquePointer?
    private var isConnected = false
    private var watch: Watch?
    private var timer: Timers.Timer?
    private var delay = firstDelay
    /// What the callbacks of this connection lead to; sd-bus holds their addresses.
    private var handlers: [ObjectIdentifier: Handler] = [:]

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
    ///   - lost: is called when it went, and all subscriptions with it.
    ///   - unreachable: where this is given, no bus is waited for: it is called, with what the kernel says, when there
    ///     is none to connect to.
    init(
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
    /// connection stands.
    func subscribe(_ rule: String, _ handler: @escaping @AgentQueue (BusMessage) -> Void) {
        guard let bus else { return }
        // No callback for the subscription itself: where the bus refuses one, it ends the connection.
        sd_bus_add_match_async(bus, nil, rule, busMessageArrived, nil, keep(Handler(isOnce: false, handler)))
        update()
    }

    /// A subscription that ends with this value.
    @AgentQueue
    final class Subscription {
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
    func follow(_ rule: String, _ handler: @escaping @AgentQueue (BusMessage) -> Void) -> Subscription? {
        guard let bus else { return nil }
        let handler = Handler(isOnce: false, handler)
        var slot: OpaquePointer?
        let result = sd_bus_add_match_async(bus, &slot, rule, busMessageArrived, nil, keep(handler))
        update()
        guard result >= 0, let slot else { return nil }
        return Subscription(slot, handler)
    }

    fileprivate func forget(_ handler: Handler) {
        handlers[ObjectIdentifier(handler)] = nil
        update()
    }

    /// Calls `handler` each time that `service` is started or ends, with whether it is there.
    func followOwner(of service: String, _ handler: @escaping @AgentQueue (Bool) -> Void) {
        subscribe(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                + "arg0='\(service)'"
        ) { message in
            guard message.string() != nil, message.string() != nil, let owner = message.string() else { return }
            handler(!owner.isEmpty)
        }
    }

    /// Calls a method of `service` and `handler` with its answer, which may be an error: always once, unless the
    /// connection is lost before. A service that does not run is not started for it.
    ///
    /// - Parameter fill: writes the arguments that are no strings.
    func call(
        _ service: String, _ path: String, _ interface: String, _ method: String, _ arguments: [String] = [],
        filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        _ handler: @escaping @AgentQueue (BusMessage) -> Void
    ) {
        guard let bus else { return }
        var message: OpaquePointer?
        guard sd_bus_message_new_method_call(bus, &message, service, path, interface, method) >= 0, let message else {
            return
        }
        defer { sd_bus_message_unref(message) }
        sd_bus_message_set_auto_start(message, 0)
        let writer = BusArguments(message)
        for argument in arguments { writer.string(argument) }
        fill(writer)
        sd_bus_call_async(bus, nil, message, busMessageArrived, keep(Handler(isOnce: true, handler)), 0)
        update()
    }

    /// Where what is called for one subscription or call is found again.
    fileprivate final class Handler {
        let call: @AgentQueue (BusMessage) -> Void
        let isOnce: Bool
        weak var owner: SystemBus?

        init(isOnce: Bool, _ call: @escaping @AgentQueue (BusMessage) -> Void) {
            self.isOnce = isOnce
            self.call = call
        }
    }

    private func keep(_ handler: Handler) -> UnsafeMutableRawPointer {
        handler.owner = self
        handlers[ObjectIdentifier(handler)] = handler
        return Unmanaged.passUnretained(handler).toOpaque()
    }

    fileprivate func take(_ message: OpaquePointer, for handler: Handler) {
        // sd-bus answers open calls itself ("Connection terminated") once the bus is gone: `lost` tells that.
        guard sd_bus_is_open(bus) > 0 else { return }
        if handler.isOnce { handlers[ObjectIdentifier(handler)] = nil }
        handler.call(BusMessage(message))
    }

    // MARK: Connection

    private func connect() {
        timer = nil
        guard sd_bus_new(&bus) >= 0, sd_bus_set_watch_bind(bus, unreachable == nil ? 1 : 0) >= 0,
            sd_bus_set_bus_client(bus, 1) >= 0, sd_bus_set_address(bus, address) >= 0
        else { return drop() }
        let result = sd_bus_start(bus)
        if result >= 0 { return update() }
        guard let unreachable else { return drop() }
        disconnect()
        unreachable(SystemError("connecting to \(address)", code: -result))
    }

    private func process() {
        while let bus {
            let result = sd_bus_process(bus, nil)
            if result < 0 { return drop() }
            if !isConnected, sd_bus_is_ready(bus) > 0 {
                isConnected = true
                delay = Self.firstDelay
                connected()
            }
            if result == 0 { break }
        }
        update()
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
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let wait = Duration.microseconds(Int64(clamping: due)) - .seconds(now.tv_sec) - .nanoseconds(now.tv_nsec)
        timer = Timers.shared.schedule(after: wait) { [weak self] in self?.process() }
    }

    /// The connection is lost, or there is none to be had: tries again later.
    private func drop() {
        let wasConnected = isConnected
        disconnect()
        timer = Timers.shared.schedule(after: delay) { [weak self] in self?.connect() }
        delay = min(delay * 2, Self.longestDelay)
        if wasConnected { lost() }
    }

    private func disconnect() {
        unwatch()
        timer?.cancel()
        isConnected = false
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
        let handler = Unmanaged<SystemBus.Handler>.fromOpaque(context).takeUnretainedValue()
        handler.owner?.take(borrowed, for: handler)
    }
    return 0
}
