// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
package import DialtonePushAPI
package import DialtoneVarlink

/// What `dialtone push` shows.
package enum PushScreen {
    /// The state of push.
    package static func status(_ status: PushAPI.Status.Reply, now: Timestamp, _ style: Style) -> [String] {
        guard let server = status.server else {
            return style.sentence(
                "No push server. \"dialtone push use SERVER\" names one; session.toml(5) says which there are.", .faint)
        }
        var table = Table()
        func row(_ name: String, _ text: String, _ tone: Style.Tone? = nil) {
            table.add([.init(name, .strong), .init(text, tone)])
        }
        row("Server", server.server)
        let since = server.since.map { " for \((now - $0).short)" } ?? ""
        row("State", server.isUp ? "logged in\(since)" : "not logged in", server.isUp ? .good : .warning)
        row("Connection", server.connection)
        row("Last message", status.lastMessageAt.map { "\((now - $0).short) ago" } ?? "none yet")
        row("Apps", "\(status.registrations) registered")
        row("Waiting", count(status.waiting, "message"))
        let counters = status.counters
        row(
            "Since its start",
            "\(counters.arrived) came, \(counters.taken) taken, \(counters.givenUp) given up, "
                + "\(counters.failedTries) tries failed")
        var lines = table.lines(style)
        if let reason = server.reason { lines += style.sentence(reason, .warning) }
        if let trouble = status.busTrouble { lines += style.sentence("Apps cannot reach it: \(trouble).", .warning) }
        if let trouble = status.storageTrouble { lines += style.sentence(trouble, .bad) }
        return lines
    }

    /// The registrations.
    package static func list(_ registrations: [PushAPI.Registration], now: Timestamp, _ style: Style) -> [String] {
        guard !registrations.isEmpty else { return style.sentence("No app has registered.", .faint) }
        var table = Table(["NUMBER", "APP", "KIND", "STATE", "LAST", "WAITING", "FOR"])
        for registration in registrations {
            let isUp = registration.state == .registered
            table.add([
                .init("\(registration.number)"),
                .init(registration.sandbox.map { "\(registration.app) (\($0))" } ?? registration.app),
                .init(registration.isDemoted ? "standard (was voip)" : registration.kind.rawValue),
                .init(registration.state.rawValue, isUp ? .good : .warning),
                .init(registration.lastMessageAt.map { "\((now - $0).short) ago" } ?? "–"),
                .init("\(registration.waiting)", registration.waiting > 0 ? .warning : nil),
                .init(registration.summary),
            ])
        }
        return table.lines(style)
            + registrations.flatMap { registration in
                registration.reason.map { style.sentence("\(registration.app): \($0)", .warning) } ?? []
            }
    }

    /// What became of messages.
    package static func history(_ messages: [PushAPI.SettledMessage], now: Timestamp, _ style: Style) -> [String] {
        guard !messages.isEmpty else { return style.sentence("No message was taken or given up yet.", .faint) }
        var table = Table(["WHEN", "APP", "MESSAGE", "RESULT"])
        for message in messages {
            table.add([
                .init("\((now - message.at).short) ago"),
                .init(message.app ?? "no longer registered", message.app == nil ? .faint : nil),
                .init(message.message),
                .init(message.givenUp.map { "given up: \($0)" } ?? "taken", message.givenUp == nil ? .good : .bad),
            ])
        }
        return table.lines(style)
    }

    /// What came of a test.
    package static func test(_ reply: PushAPI.Test.Reply, _ style: Style) -> [String] {
        let text =
            switch reply.outcome {
            case .taken: "The app took it."
            case .refused: "The app refused it"
            case .unanswered: "The app did not answer in time"
            case .notStarted: "The app does not run and could not be started"
            case .unknown: "Nothing on the session bus has the app's name, and nothing says how to start it"
            }
        if reply.outcome == .taken { return [style.paint(text, .good)] }
        return style.sentence(text + (reply.reason.map { ": \($0)" } ?? "") + ".", .bad)
    }

    private static func count(_ number: Int, _ thing: String) -> String {
        number == 1 ? "1 \(thing)" : "\(number) \(thing)s"
    }
}
