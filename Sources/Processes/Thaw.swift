// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The thaw of a control group, until the kernel says that its processes run: the setting is taken at once, and obeyed
/// by each of them when it next can (`cgroup.events`).
@AgentQueue
final class Thaw {
    /// A process in the middle of a system call thaws when that ends. What takes longer is not frozen but stuck.
    nonisolated static let limit = Duration.seconds(2)

    /// What the kernel reports of a change in a file of its own (`POLLPRI`; kernfs_generic_poll).
    private static let changed = Poller.Readiness(rawValue: 2)

    private let group: ControlGroup
    private let events: OwnedDescriptor
    private var completion: (@AgentQueue (Activator.Outcome) -> Void)?
    private var registration: Poller.Registration?
    private var timer: Timers.Timer?

    /// Thaws a group and tells what came of it: at once, or within ``limit``.
    static func begin(_ group: ControlGroup?, _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void) {
        guard let group else { return completion(.failed("there is no such control group")) }
        guard group.isFrozen != false else { return completion(.done) }
        // What froze a group above meant all of it, and what lies beside this client is not its to wake: the whole
        // session is frozen that way while the machine goes to sleep.
        if group.isFrozen == true, group.freezesItself == false {
            return completion(.failed("a control group above \(group.directory) is frozen"))
        }
        do throws(SystemError) {
            try Thaw(group, try group.open("cgroup.events", O_RDONLY), completion).begin()
        } catch {
            completion(.failed("\(error)"))
        }
    }

    private init(
        _ group: ControlGroup, _ events: consuming OwnedDescriptor,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        self.group = group
        self.events = events
        self.completion = completion
    }

    private func begin() throws(SystemError) {
        // A read tells the kernel what this descriptor has seen; later changes are reported to it.
        _ = isStillFrozen
        try group.thaw()
        // Keeps this alive until it is over.
        registration = try Poller.shared.register(events.number, Self.changed) { [self] _ in look() }
        timer = Timers.shared.schedule(after: Self.limit) { [self] in
            finish(.failed("\(group.directory) is still frozen after \(Self.limit)"))
        }
        look()
    }

    private func look() {
        if !isStillFrozen { finish(.done) }
    }

    private var isStillFrozen: Bool {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = pread(events.number, &bytes, bytes.count, 0)
        return bytes.prefix(max(count, 0)).split(separator: UInt8(ascii: "\n")).contains {
            $0.elementsEqual("frozen 1".utf8)
        }
    }

    private func finish(_ outcome: Activator.Outcome) {
        registration?.cancel()
        registration = nil
        timer?.cancel()
        timer = nil
        let completion = completion
        self.completion = nil
        completion?(outcome)
    }
}
