// SPDX-License-Identifier: Apache-2.0

package import DialtonePushAPI

/// What `dialtone notify` shows.
package enum NotifyScreen {
    /// What is wrong, and how its notifications stand.
    package static func list(_ reply: NotificationsAPI.List.Reply, _ style: Style) -> [String] {
        guard reply.isOn else {
            return style.sentence("Notifications are switched off in session.toml.", .faint)
        }
        guard !reply.notices.isEmpty else { return style.sentence("Nothing is wrong.", .good) }
        var table = Table(["EVENT", "NAME", "NOTIFICATION"])
        for notice in reply.notices {
            table.add([
                .init(notice.event), .init(notice.name),
                .init(notice.stage.text, notice.stage == .kept ? .warning : nil),
            ])
        }
        return table.lines(style) + reply.notices.flatMap { style.sentence("\($0.title): \($0.body)") }
    }

    /// What came of a test.
    package static func test(_ reply: NotificationsAPI.Test.Reply, _ style: Style) -> [String] {
        let text =
            switch reply.outcome {
            case .shown: "\(reply.daemon ?? "The notification daemon") shows it."
            case .noDaemon: "No notification daemon runs, and the session bus cannot start one"
            case .refused: "\(reply.daemon ?? "The notification daemon") did not take it"
            case .noBus: "The session agent has no session bus"
            case .off: "Notifications are switched off in session.toml"
            }
        if reply.outcome == .shown { return [style.paint(text, .good)] }
        return style.sentence(text + (reply.reason.map { ": \($0)" } ?? "") + ".", .bad)
    }
}

extension NotificationsAPI.Stage {
    fileprivate var text: String {
        switch self {
        case .waiting: "not due yet"
        case .kept: "waits to be shown"
        case .shown: "shown"
        case .seen: "shown and closed"
        }
    }
}
