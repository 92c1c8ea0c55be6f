// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtonePlatform

/// Follows what NetworkManager says of the cost of each interface, its devices' `Metered` property.
///
/// Everything is told by signals: nothing is asked again but when NetworkManager or the bus was started. Where there is
/// neither, that costs a descriptor. Its other news (the strength of a radio signal, the bytes that went by) is
/// filtered by the bus and wakes nobody.
@AgentQueue
package final class NetworkManagerWatch {
    /// NetworkManager's `NMMetered` (its D-Bus API, "Types").
    package enum Metered: UInt32, Sendable {
        /// The connection's profile says that it is metered.
        case yes = 1
        /// The profile says that it is not.
        case no = 2
        /// It seems to be: a modem, a phone with `ANDROID_METERED` in its DHCP answer, a network that says so.
        case guessYes = 3
        /// It seems not to be.
        case guessNo = 4
    }

    private static let service = "org.freedesktop.NetworkManager"
    private static let root = "/org/freedesktop/NetworkManager"
    private static let deviceInterface = "org.freedesktop.NetworkManager.Device"
    private static let properties = "org.freedesktop.DBus.Properties"

    private struct Device {
        /// The interface that packets leave by; a modem's control port has another name.
        var dataInterface = ""
        var interface = ""
        /// `nil` for a device that is not connected.
        var metered: Metered?
    }

    private let handler: @AgentQueue ([String: Metered]) -> Void
    private var bus: BusConnection?
    private var devices: [String: Device] = [:]
    private var told: [String: Metered] = [:]
    /// Questions without an answer yet. Nobody is told before all are known: a start is one change, not one a device.
    private var unanswered = 0
    /// Counts the starts, to tell late answers of an earlier one.
    private var generation = 0

    /// Calls `handler` with what is said of each interface, by name, whenever that differs; at first it is taken for
    /// nothing.
    ///
    /// - Parameter address: where the system bus is, in D-Bus's form; `nil` for `$DBUS_SYSTEM_BUS_ADDRESS`, else the
    ///   usual place.
    package init(address: String? = nil, _ handler: @escaping @AgentQueue ([String: Metered]) -> Void) {
        self.handler = handler
        bus = BusConnection(address: address ?? BusConnection.systemAddress) { [weak self] in
            self?.subscribe()
        } lost: { [weak self] in
            self?.forgetAll()
        }
    }

    private func subscribe() {
        let from = "type='signal',sender='\(Self.service)'"
        bus?.followOwner(of: Self.service) { [weak self] owner in
            self?.forgetAll()
            if owner != nil { self?.askForAll() }
        }
        bus?.subscribe(
            "\(from),interface='\(Self.properties)',member='PropertiesChanged',path_namespace='\(Self.root)/Devices',"
                + "arg0='\(Self.deviceInterface)'"
        ) { [weak self] message in
            guard let path = message.path, message.string() != nil else { return }
            self?.update(path, from: message)
        }
        bus?.subscribe("\(from),interface='\(Self.service)',member='DeviceAdded'") { [weak self] message in
            if let path = message.string() { self?.ask(for: path) }
        }
        bus?.subscribe("\(from),interface='\(Self.service)',member='DeviceRemoved'") { [weak self] message in
            guard let self, let path = message.string() else { return }
            devices[path] = nil
            tell()
        }
        askForAll()
    }

    private func forgetAll() {
        generation += 1
        unanswered = 0
        devices = [:]
        tell()
    }

    private func askForAll() {
        call(Self.root, Self.service, "GetDevices") { watch, message in
            message.forEach(in: "o") {
                guard let path = message.string() else { return false }
                watch.ask(for: path)
                return true
            }
        }
    }

    private func ask(for path: String) {
        call(path, Self.properties, "GetAll", [Self.deviceInterface]) { watch, message in
            watch.devices[path] = Device()
            watch.update(path, from: message)
        }
    }

    /// Calls a method of NetworkManager, and `body` with a good answer.
    private func call(
        _ path: String, _ interface: String, _ method: String, _ arguments: [String] = [],
        _ body: @escaping @AgentQueue (NetworkManagerWatch, BusMessage) -> Void
    ) {
        unanswered += 1
        let generation = generation
        bus?.call(Self.service, path, interface, method, arguments) { [weak self] answer in
            guard let self, generation == self.generation else { return }
            if case .success(let message) = answer { body(self, message) }
            unanswered -= 1
            tell()
        }
    }

    /// Takes the properties in `message`, which stands before an `a{sv}`.
    private func update(_ path: String, from message: BusMessage) {
        // A change of one that is not known yet: its properties are on their way.
        guard var device = devices[path] else { return }
        message.forEachProperty(["Metered": "u", "Interface": "s", "IpInterface": "s"]) { name in
            switch name {
            case "Metered": device.metered = message.uint32().flatMap { Metered(rawValue: $0) }
            case "Interface": device.interface = message.string() ?? ""
            case "IpInterface": device.dataInterface = message.string() ?? ""
            default: break
            }
        }
        devices[path] = device
        tell()
    }

    private func tell() {
        guard unanswered == 0 else { return }
        var present: [String: Metered] = [:]
        for device in devices.values {
            let name = device.dataInterface.isEmpty ? device.interface : device.dataInterface
            if !name.isEmpty { present[name] = device.metered }
        }
        guard present != told else { return }
        told = present
        handler(present)
    }
}
