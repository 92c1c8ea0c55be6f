// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform

/// Asks the service manager for something, by a ``ManagerBus``.
@AgentQueue
protocol ManagerClient: AnyObject {
    /// Whether it waits for something that takes the bus.
    var isWaiting: Bool { get }
    /// The bus is there: what waits can be asked.
    func busConnected()
    /// The bus is not there, or went: what waits gets no answer.
    func busLost(_ reason: String)
    /// A job of a unit ended (org.freedesktop.systemd1(5), `JobRemoved`).
    func jobEnded(_ job: String, of unit: String, _ result: String)
}

/// The service manager on its bus, for as long as its client has something to ask.
@AgentQueue
final class ManagerBus {
    private static let service = "org.freedesktop.systemd1"
    /// The manager's object; those of units are below it.
    static let root = "/org/freedesktop/systemd1"
    private static let manager = "org.freedesktop.systemd1.Manager"
    private static let properties = "org.freedesktop.DBus.Properties"

    private let address: String
    private var bus: BusConnection?
    private(set) var isConnected = false
    weak var client: (any ManagerClient)?

    /// - Parameter address: where the bus is, in D-Bus's form; `nil` for the system's.
    init(address: String?) { self.address = address ?? BusConnection.systemAddress }

    /// Connects, unless it is connected or about to be. The client is told when it is, or why it cannot be.
    func connect() {
        guard bus == nil else { return }
        bus = BusConnection(address: address) { [weak self] in
            guard let self else { return }
            isConnected = true
            followJobs()
            client?.busConnected()
        } lost: { [weak self] in
            self?.lost("the bus is gone")
        } unreachable: { [weak self] in
            self?.lost("there is no bus: \($0)")
        }
    }

    private func lost(_ reason: String) {
        isConnected = false
        client?.busLost(reason)
        // Not from within its own call.
        AgentQueue.async { [weak self] in
            guard let self, !isConnected else { return }
            bus = nil
            if client?.isWaiting == true { connect() }
        }
    }

    /// Lets go of the bus, where nothing is wanted of it any more. Not from within a message of its own.
    func release() {
        guard client?.isWaiting != true else { return }
        isConnected = false
        bus = nil
    }

    /// Calls a method of the manager, as ``BusConnection`` does.
    func call(
        _ method: String, _ arguments: [String] = [], filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        _ handler: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        bus?.call(Self.service, Self.root, Self.manager, method, arguments, filling: fill, handler)
    }

    /// Calls a method that begins a job, of whose end the client is told.
    func callForJob(
        _ method: String, _ arguments: [String] = [], filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        _ handler: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        // Without this the manager tells nobody of jobs. It may have started after the bus: so each time.
        call("Subscribe") { _ in }
        call(method, arguments, filling: fill, handler)
    }

    /// Asks for the properties of an object's interface.
    func properties(
        of interface: String, at path: String,
        _ handler: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        bus?.call(Self.service, path, Self.properties, "GetAll", [interface], handler)
    }

    /// Calls `handler` when properties of an object have changed, until the end of what is returned.
    func followProperties(
        at path: String, _ handler: @escaping @AgentQueue (BusMessage) -> Void
    ) -> BusConnection.Subscription? {
        bus?.follow(
            """
            type='signal',sender='\(Self.service)',path='\(path)',interface='\(Self.properties)',\
            member='PropertiesChanged'
            """, handler)
    }

    private func followJobs() {
        bus?.subscribe(
            "type='signal',sender='\(Self.service)',path='\(Self.root)',interface='\(Self.manager)',member='JobRemoved'"
        ) { [weak self] message in
            guard message.uint32() != nil, let job = message.string(), let unit = message.string(),
                let result = message.string()
            else { return }
            self?.client?.jobEnded(job, of: unit, result)
        }
    }
}

/// The job that the manager makes of a request. How it ended may be told before which one it is.
struct ManagerJob {
    private var name: String?
    private var results: [String: String] = [:]

    /// The manager has named it: gives how it ended, if it has.
    mutating func isNamed(_ job: String) -> String? {
        name = job
        return results[job]
    }

    /// A job of the same unit ended: gives how, if it is this one.
    mutating func ended(_ job: String, _ result: String) -> String? {
        if name == nil { results[job] = result }
        return name == job ? result : nil
    }
}
