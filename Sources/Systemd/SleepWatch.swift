// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtonePlatform
internal import Glibc

/// Follows logind's word that the machine goes to sleep, and that it is awake again (org.freedesktop.login1(5)).
///
/// While it watches it holds a *delay* lock on sleep, so that the first word is heard before the machine sleeps and not
/// after; the lock is let go of as soon as it was. Where there is no logind, that costs a descriptor.
@AgentQueue
package final class SleepWatch {
    /// What logind says.
    package enum Word: Hashable, Sendable {
        /// The machine sleeps as soon as the handler has returned, and all others who hold a lock let go of theirs.
        case fallingAsleep
        /// It is awake again, or did not come to sleep.
        case awake
    }

    private static let service = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"

    private let handler: @AgentQueue (Word) -> Void
    private var bus: BusConnection?
    /// The lock, for as long as it is open.
    private var lock: OwnedDescriptor?
    private var isFallingAsleep = false

    /// Calls `handler` with each word.
    ///
    /// - Parameter address: where the system bus is, in D-Bus's form; `nil` for `$DBUS_SYSTEM_BUS_ADDRESS`, else the
    ///   usual place.
    package init(address: String? = nil, _ handler: @escaping @AgentQueue (Word) -> Void) {
        self.handler = handler
        bus = BusConnection(address: address ?? BusConnection.systemAddress) { [weak self] in
            self?.subscribe()
        } lost: { [weak self] in
            self?.letGo()
        }
    }

    private func subscribe() {
        bus?.followOwner(of: Self.service) { [weak self] owner in
            self?.isFallingAsleep = false
            if owner != nil { self?.takeLock() } else { self?.letGo() }
        }
        bus?.subscribe(
            "type='signal',sender='\(Self.service)',path='\(Self.path)',interface='\(Self.manager)',"
                + "member='PrepareForSleep'"
        ) { [weak self] message in
            if let isFallingAsleep = message.boolean() { self?.take(isFallingAsleep) }
        }
        takeLock()
    }

    private func take(_ isFallingAsleep: Bool) {
        self.isFallingAsleep = isFallingAsleep
        handler(isFallingAsleep ? .fallingAsleep : .awake)
        if isFallingAsleep { letGo() } else { takeLock() }
    }

    private func takeLock() {
        let arguments = ["sleep", "Dialtone", "Takes note before the machine sleeps", "delay"]
        bus?.call(Self.service, Self.path, Self.manager, "Inhibit", arguments) { [weak self] answer in
            // Refused, or there is no logind: the resume is noticed by the clocks. An answer that comes when the
            // machine is on its way to sleep already would hold it up for nothing.
            guard let self, !isFallingAsleep, case .success(let message) = answer, let descriptor = message.descriptor()
            else { return }
            lock = consume descriptor
        }
    }

    private func letGo() { lock = nil }
}
