// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform

/// Follows UPower's word on the machine's battery. Everything is told by signals; where there is no UPower, the machine
/// is taken to be at the mains.
@AgentQueue
final class PowerWatch {
    /// How the machine is powered.
    struct Power: Hashable {
        /// Whether it runs on its battery.
        var isOnBattery = false
        /// How full the battery is that it runs on, in percent.
        var level: Int?
    }

    private static let service = "org.freedesktop.UPower"
    private static let root = "/org/freedesktop/UPower"
    private static let battery = "/org/freedesktop/UPower/devices/DisplayDevice"
    private static let device = "org.freedesktop.UPower.Device"
    private static let properties = "org.freedesktop.DBus.Properties"
    /// UPower's `UP_DEVICE_KIND_BATTERY`: without one, its display device is of another kind and has 0 %.
    private static let batteryKind: UInt32 = 2

    private let handler: @AgentQueue (Power) -> Void
    private var bus: BusConnection?
    /// Follows how full the battery is, while that counts: UPower tells it every minute or two.
    private var level: BusConnection.Subscription?
    /// Whether it is about to be known, at the beginning of that.
    private var isAsking = false
    private var power = Power()
    private var isBattery = false
    private var percentage: Double?

    /// Calls `handler` whenever the power differs; at first it is taken for the mains.
    init(address: String = BusConnection.systemAddress, _ handler: @escaping @AgentQueue (Power) -> Void) {
        self.handler = handler
        bus = BusConnection(address: address) { [weak self] in
            self?.subscribe()
        } lost: { [weak self] in
            self?.forget()
        }
    }

    private func subscribe() {
        bus?.followOwner(of: Self.service) { [weak self] owner in
            if owner == nil { self?.forget() } else { self?.ask() }
        }
        bus?.subscribe(Self.changes(of: Self.root, Self.service)) { [weak self] message in
            if message.string() != nil { self?.take(message) }
        }
        ask()
    }

    private static func changes(of path: String, _ interface: String) -> String {
        "type='signal',sender='\(service)',path='\(path)',interface='\(properties)',"
            + "member='PropertiesChanged',arg0='\(interface)'"
    }

    private func ask() {
        bus?.call(Self.service, Self.root, Self.properties, "GetAll", [Self.service]) { [weak self] answer in
            if case .success(let message) = answer { self?.take(message) }
        }
    }

    private func followLevel() {
        guard power.isOnBattery else {
            (level, isAsking, isBattery, percentage) = (nil, false, false, nil)
            return
        }
        guard level == nil else { return }
        level = bus?.follow(Self.changes(of: Self.battery, Self.device)) { [weak self] message in
            if message.string() != nil { self?.take(message) }
        }
        isAsking = true
        bus?.call(Self.service, Self.battery, Self.properties, "GetAll", [Self.device]) { [weak self] answer in
            self?.isAsking = false
            if case .success(let message) = answer { self?.take(message) } else { self?.tell() }
        }
    }

    private func take(_ message: BusMessage) {
        guard case .dictionary(let values)? = message.values()?.first else { return }
        if let value = values["OnBattery"]?.boolean { power.isOnBattery = value }
        if let value = values["Type"]?.uint32 { isBattery = value == Self.batteryKind }
        if case .double(let value)? = values["Percentage"], value.isFinite { percentage = value }
        followLevel()
        tell()
    }

    private func forget() {
        (power, level, isAsking, isBattery, percentage) = (Power(), nil, false, false, nil)
        tell()
    }

    private var told = Power()

    private func tell() {
        // A level of a driver that is wrong may be anything.
        power.level = isBattery ? percentage.map { Int(min(max($0, 0), 100)) } : nil
        guard !isAsking, power != told else { return }
        told = power
        handler(power)
    }
}
