// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneNotifications
internal import DialtonePlatform
internal import Glibc

/// Where notifications are shown. All of it on the agent's queue.
@AgentQueue
protocol NotificationDesk: AnyObject, Sendable {
    /// Shows one; completes once, with the number by which it is replaced or withdrawn.
    func show(_ notice: Notice, _ completion: @escaping @AgentQueue (Result<UInt32, BusFailure>) -> Void)

    /// Takes one from the screen.
    func withdraw(_ id: UInt32)

    /// Asks what shows them, for a person.
    func identify(_ completion: @escaping @AgentQueue (Result<String, BusFailure>) -> Void)
}

/// What a desk tells by itself.
enum DeskNews: Hashable, Sendable {
    /// A daemon came, or a connection to the bus, and one may be there.
    case came
    /// It went, and what it showed with it.
    case went
    /// One is no longer shown.
    case closed(UInt32)
    /// Its button was pressed.
    case pressed(UInt32)
}

extension DaemonDesk {
    /// The desk for this process: the portal inside a sandbox, which is the way out of it, else the daemon itself.
    static func orPortal(
        at address: String, _ handler: @escaping @AgentQueue (DeskNews) -> Void
    ) -> any NotificationDesk {
        let isConfined = access("/.flatpak-info", F_OK) == 0 || getenv("SNAP") != nil
        return isConfined ? PortalDesk(at: address, handler) : DaemonDesk(at: address, handler)
    }
}
