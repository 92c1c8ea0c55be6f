// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneNotifications
internal import DialtonePlatform

/// The portal of a sandbox (org.freedesktop.portal.Notification, version 1), which asks the user's desktop. What it is
/// given is plain text, and it does not tell when a notification is closed.
@AgentQueue
final class PortalDesk: NotificationDesk {
    nonisolated private static let service = "org.freedesktop.portal.Desktop"
    nonisolated private static let path = "/org/freedesktop/portal/desktop"
    nonisolated private static let interface = "org.freedesktop.portal.Notification"
    private static let button = "act"
    /// How a notification is called there: this, and its number.
    private static let prefix = "dialtone-"

    private let handler: @AgentQueue (DeskNews) -> Void
    private var bus: BusConnection?
    private var nextID: UInt32 = 1
    private var isStarting = false
    private var generation = 0

    init(at address: String, _ handler: @escaping @AgentQueue (DeskNews) -> Void) {
        self.handler = handler
        bus = BusConnection(address: address) { [weak self] in
            self?.subscribe()
        } lost: { [weak self] in
            self?.change(to: .went)
        }
    }

    private func subscribe() {
        bus?.followOwner(of: Self.service) { [weak self] owner in
            guard let self else { return }
            // One that the bus starts for a question comes before its answer.
            if isStarting, owner != nil { return }
            change(to: owner == nil ? .went : .came)
        }
        bus?.subscribe(
            "type='signal',sender='\(Self.service)',path='\(Self.path)',interface='\(Self.interface)',"
                + "member='ActionInvoked'"
        ) { [weak self] message in
            guard let name = message.string(), name.hasPrefix(Self.prefix), message.string() == Self.button,
                let id = UInt32(name.dropFirst(Self.prefix.count))
            else { return }
            self?.handler(.pressed(id))
        }
        handler(.came)
    }

    private func change(to news: DeskNews) {
        generation += 1
        handler(news)
    }

    func show(_ notice: Notice, _ completion: @escaping @AgentQueue (Result<UInt32, BusFailure>) -> Void) {
        guard let bus else { return completion(.failure(.disconnected)) }
        let id = notice.replaces ?? nextID
        if notice.replaces == nil { nextID &+= 1 }
        let content = notice.content
        var entries: [String: BusValue] = [
            "title": .string(content.title), "body": .string(content.body),
            "priority": .string(content.urgency.priority),
        ]
        if let label = content.button {
            entries["buttons"] = .array(
                of: "a{sv}", [.dictionary(["label": .string(label), "action": .string(Self.button)])])
        }
        isStarting = true
        let generation = generation
        bus.call(
            Self.service, Self.path, Self.interface, "AddNotification", ["\(Self.prefix)\(id)"], isStarting: true,
            filling: { $0.value(.dictionary(entries)) }
        ) { [weak self] answer in
            self?.isStarting = false
            let isOfNow = self?.generation == generation
            completion(answer.flatMap { _ in isOfNow ? .success(id) : .failure(.serviceEnded) })
        }
    }

    func withdraw(_ id: UInt32) {
        bus?.call(Self.service, Self.path, Self.interface, "RemoveNotification", ["\(Self.prefix)\(id)"]) { _ in }
    }

    func identify(_ completion: @escaping @AgentQueue (Result<String, BusFailure>) -> Void) {
        guard let bus else { return completion(.failure(.disconnected)) }
        bus.call(
            Self.service, Self.path, "org.freedesktop.DBus.Properties", "Get", [Self.interface, "version"],
            isStarting: true
        ) { answer in
            completion(answer.map { _ in "the desktop portal" })
        }
    }
}

extension NoticeRule.Urgency {
    /// The portal's words.
    fileprivate var priority: String {
        switch self {
        case .low: "low"
        case .normal: "normal"
        case .critical: "urgent"
        }
    }
}
