// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneNotifications
internal import DialtonePlatform
internal import DialtonePushAPI
internal import DialtoneVarlink

/// What `dialtone notify` asks.
extension NotificationService {
    /// Adds the interface and its methods to `service`.
    func register(in service: VarlinkService) {
        service.add(interface: NotificationsAPI.name, description: NotificationsAPI.description)
        service.handle(NotificationsAPI.List.self) { [unowned self] _, _ in
            .init(isOn: rules.contains { $0.isShown }, notices: board.overview.map { .init($0) })
        }
        service.handleLater(NotificationsAPI.Test.self) { [unowned self] _, exchange in
            test { exchange.reply($0) }
        }
    }

    /// Shows a notification that is about nothing. It is not kept where nobody can show it.
    private func test(_ completion: @escaping @AgentQueue (NotificationsAPI.Test.Reply) -> Void) {
        guard rules.contains(where: { $0.isShown }) else { return completion(.init(outcome: .off)) }
        guard let desk else { return completion(.init(outcome: .noBus)) }
        desk.identify { [weak self] answer in
            switch answer {
            case .success(let name): self?.test(by: name, completion)
            case .failure(let failure): completion(.init(failure, daemon: nil))
            }
        }
    }

    private func test(
        by daemon: String, _ completion: @escaping @AgentQueue (NotificationsAPI.Test.Reply) -> Void
    ) {
        guard let desk else { return completion(.init(outcome: .off)) }
        desk.show(.test) { answer in
            switch answer {
            case .success: completion(.init(outcome: .shown, daemon: daemon))
            case .failure(let failure): completion(.init(failure, daemon: daemon))
            }
        }
    }
}

extension NotificationsAPI.Test.Reply {
    fileprivate init(_ failure: BusFailure, daemon: String?) {
        let outcome: Outcome =
            switch failure {
            case .disconnected: .noBus
            case .unknownService, .refusedByBus, .serviceEnded, .timedOut: daemon == nil ? .noDaemon : .refused
            case .error: .refused
            }
        self.init(outcome: outcome, daemon: daemon, reason: "\(failure)".printable)
    }
}

extension NotificationsAPI.Notice {
    fileprivate init(_ overview: NoticeOverview) {
        self.init(
            event: overview.subject.event.rawValue, name: overview.subject.name, title: overview.content.title,
            body: overview.content.body, stage: .init(overview.stage))
    }
}

extension NotificationsAPI.Stage {
    fileprivate init(_ stage: NoticeOverview.Stage) {
        self =
            switch stage {
            case .waiting: .waiting
            case .kept: .kept
            case .shown: .shown
            case .seen: .seen
            }
    }
}
