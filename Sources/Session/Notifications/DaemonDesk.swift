// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneNotifications
internal import DialtonePlatform

/// A notification daemon on the session bus (Desktop Notifications Specification, 1.2).
@AgentQueue
final class DaemonDesk: NotificationDesk {
    nonisolated private static let service = "org.freedesktop.Notifications"
    nonisolated private static let path = "/org/freedesktop/Notifications"
    /// The key of the button; some daemons take "default" for a click on the rest.
    private static let button = "act"
    /// So much is asked of a daemon at a time: what waits for its capabilities. The board shows fewer at once.
    private static let mostWaiting = 64

    /// GNOME's notification-daemon (3.20), by the name that it tells: it takes none from the screen that was closed by
    /// CloseNotification, but one whose time is over.
    private static let unable = "Notification Daemon"

    private typealias Completion = @AgentQueue (Result<UInt32, BusFailure>) -> Void

    private let handler: @AgentQueue (DeskNews) -> Void
    private var bus: BusConnection?
    /// What the daemon can; `nil` until it has said so.
    private var capabilities: Set<String>?
    /// Whether it takes from the screen what is closed.
    private var closes = true
    private var isAsking = false
    private var waiting: [(notice: Notice, completion: Completion)] = []
    /// Counts the daemons: what an earlier one answers, this one does not show.
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
            // The daemon that the bus starts for a question comes before its answer.
            if isAsking, owner != nil { return }
            change(to: owner == nil ? .went : .came)
        }
        let rule = "type='signal',sender='\(Self.service)',path='\(Self.path)',interface='\(Self.service)',member="
        bus?.subscribe("\(rule)'NotificationClosed'") { [weak self] message in
            if let id = message.uint32() { self?.handler(.closed(id)) }
        }
        bus?.subscribe("\(rule)'ActionInvoked'") { [weak self] message in
            if let id = message.uint32(), message.string() == Self.button { self?.handler(.pressed(id)) }
        }
        handler(.came)
    }

    private func change(to news: DeskNews) {
        generation += 1
        (capabilities, closes) = (nil, true)
        handler(news)
    }

    func show(_ notice: Notice, _ completion: @escaping @AgentQueue (Result<UInt32, BusFailure>) -> Void) {
        if let capabilities { return show(notice, capabilities, completion) }
        guard waiting.count < Self.mostWaiting else { return completion(.failure(.disconnected)) }
        waiting.append((notice, completion))
        guard !isAsking else { return }
        isAsking = true
        call("GetCapabilities", isStarting: true) { [weak self] answer in
            var names: Set<String> = []
            let known = answer.map { message in
                message.forEach(in: "s") { message.string().map { _ = names.insert($0) } != nil }
            }
            self?.call("GetServerInformation") { answer in
                if case .success(let message) = answer { self?.closes = message.string() != Self.unable }
                self?.learned(known.map { names })
            }
        }
    }

    /// It is known what the daemon can, or that there is none.
    private func learned(_ answer: Result<Set<String>, BusFailure>) {
        isAsking = false
        let waiting = waiting
        self.waiting = []
        if case .success(let names) = answer { capabilities = names }
        for (notice, completion) in waiting {
            switch answer {
            case .success(let names): show(notice, names, completion)
            case .failure(let failure): completion(.failure(failure))
            }
        }
    }

    private func show(_ notice: Notice, _ capabilities: Set<String>, _ completion: @escaping Completion) {
        let generation = generation
        let content = notice.content
        let hasButton = capabilities.contains("actions")
        call("Notify", isStarting: true) { arguments in
            arguments.string("Dialtone")
            arguments.uint32(notice.replaces ?? 0)
            arguments.string(notice.subject?.event.icon ?? "dialog-information")
            // One line of plain text: no daemon may take it for markup (section "Basic Design").
            arguments.string(content.title)
            arguments.string(capabilities.contains("body-markup") ? content.body.withoutMarkup : content.body)
            arguments.strings(hasButton ? content.button.map { [Self.button, $0] } ?? [] : [])
            arguments.value(
                .dictionary([
                    "urgency": .byte(content.urgency.level),
                    "category": .string(notice.subject?.event.category ?? "network"),
                ]))
            // It stays until it is over, or closed; one that is about nothing, as long as the daemon likes.
            arguments.value(.int32(notice.subject == nil ? -1 : 0))
        } completion: { [weak self] answer in
            switch answer {
            case .success where self?.generation != generation: completion(.failure(.serviceEnded))
            case .success(let message): completion(message.uint32().map { .success($0) } ?? .failure(.serviceEnded))
            case .failure(let failure): completion(.failure(failure))
            }
        }
    }

    func withdraw(_ id: UInt32) {
        if !closes {
            call("Notify") { arguments in
                arguments.string("Dialtone")
                arguments.uint32(id)
                for text in ["", "Over", ""] { arguments.string(text) }
                arguments.strings([])
                arguments.value(.dictionary([:]))
                // In milliseconds.
                arguments.value(.int32(1))
            } completion: { _ in
            }
        }
        // One that is closed already is an error, of which there is nothing to say.
        call("CloseNotification") {
            $0.uint32(id)
        } completion: { _ in
        }
    }

    func identify(_ completion: @escaping @AgentQueue (Result<String, BusFailure>) -> Void) {
        call("GetServerInformation", isStarting: true) { answer in
            completion(
                answer.map { message in
                    let (name, _, version) = (message.string(), message.string(), message.string())
                    return [name, version].compactMap { $0?.printable }.joined(separator: " ")
                })
        }
    }

    private func call(
        _ method: String, isStarting: Bool = false, filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        completion: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        guard let bus else { return completion(.failure(.disconnected)) }
        bus.call(
            Self.service, Self.path, Self.service, method, isStarting: isStarting, filling: fill, completion)
    }
}

extension NoticeRule.Urgency {
    /// The hint's byte (section "Urgency Levels").
    var level: UInt8 {
        switch self {
        case .low: 0
        case .normal: 1
        case .critical: 2
        }
    }
}

extension NoticeRule.Event {
    /// A name of the Icon Naming Specification.
    fileprivate var icon: String {
        switch self {
        case .connectionDown: "network-offline"
        case .loginRefused: "dialog-password"
        case .certificateEnds: "security-low"
        case .wakeFailed, .bytesUnread, .appNotStarted: "dialog-warning"
        }
    }

    /// One of the specification's categories (section "Categories").
    fileprivate var category: String {
        switch self {
        case .connectionDown: "network.disconnected"
        case .loginRefused, .certificateEnds: "network.error"
        case .wakeFailed, .bytesUnread, .appNotStarted: "im.error"
        }
    }
}

extension String {
    /// The same text where markup is interpreted (section "Markup"): none of it is any.
    var withoutMarkup: String {
        unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
