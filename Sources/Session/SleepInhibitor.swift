// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform

/// Keeps the machine awake by one of logind's locks (org.freedesktop.login1(5), Inhibit).
@AgentQueue
final class SleepInhibitor {
    private static let service = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"

    private var bus: BusConnection?
    private var isWanted = false
    /// Counts what is wanted, to tell an answer that comes too late.
    private var wish = 0
    /// The lock, for as long as it is open.
    private var lock: OwnedDescriptor?

    init(address: String = BusConnection.systemAddress) {
        bus = BusConnection(address: address) { [weak self] in
            self?.take(mode: "block")
        } lost: { [weak self] in
            self?.lock = nil
        }
    }

    /// Keeps the machine awake, or no longer.
    func set(_ isOn: Bool) {
        guard isOn != isWanted else { return }
        isWanted = isOn
        wish += 1
        lock = nil
        take(mode: "block")
    }

    /// - Parameter mode: a user without a local session may not block sleep, but delay it by some seconds.
    private func take(mode: String) {
        guard isWanted, let bus else { return }
        let current = wish
        let arguments = ["sleep", "Dialtone", "Hands a message to an app", mode]
        bus.call(Self.service, Self.path, Self.manager, "Inhibit", arguments) { [weak self] answer in
            guard let self, isWanted, wish == current else { return }
            switch answer {
            case .success(let message):
                if let descriptor = message.descriptor() { lock = consume descriptor }
            case .failure where mode == "block": take(mode: "delay")
            // Without logind nothing puts the machine to sleep that could be told.
            case .failure: break
            }
        }
    }
}
