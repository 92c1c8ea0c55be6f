// SPDX-License-Identifier: Apache-2.0

import DialtoneBus
import DialtoneExpectations
import DialtoneNotifications
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSession

private let daemon = "org.freedesktop.Notifications"
private let portal = "org.freedesktop.portal.Desktop"
private let path = "/org/freedesktop/Notifications"

/// Notification daemons, and what they are told.
@Suite(.serialized) struct NotificationDeskTests {
    /// A bus with a desk on it, and daemons that note what they are told.
    private final class Hall: Sendable {
        let bus: PrivateBus
        let desk: any NotificationDesk
        let news = Lock<[DeskNews]>([])
        private let programs = Lock<[BusProgram]>([])

        init(
            _ kind: PrivateBus.Kind, activated capabilities: [String]? = nil,
            _ make:
                @escaping @Sendable @AgentQueue (
                    String, @escaping @AgentQueue (DeskNews) -> Void
                ) -> any NotificationDesk = { DaemonDesk(at: $0, $1) }
        ) async throws {
            bus = try PrivateBus(kind)
            if let capabilities {
                let command = [BusProgram.path("notification_daemon"), bus.file("activated.log")] + capabilities
                bus.addService(
                    daemon,
                    "/usr/bin/env DBUS_SESSION_BUS_ADDRESS=\(bus.address) python3 \(command.joined(separator: " "))")
            }
            try await bus.start()
            let (news, address) = (news, bus.address)
            desk = await onQueue { make(address) { one in news.withLock { $0.append(one) } } }
            try await eventually("a bus") { news.withLock { $0 } == [.came] }
        }

        /// Starts a daemon, in place of the one before.
        func begin(_ log: String, _ capabilities: String...) async throws {
            let before = arrivals
            let program = try BusProgram("notification_daemon", [bus.file(log)] + capabilities, on: bus)
            programs.withLock { $0.append(program) }
            try await eventually("a daemon") { lines(log).contains(#"["serves"]"#) }
            // A daemon that comes while it is asked what it can is the one that was asked for, and no news.
            try await eventually("its news") { arrivals > before }
        }

        /// How often a daemon came.
        private var arrivals: Int { news.withLock { $0.count { $0 == .came } } }

        func end() { programs.withLock { $0 = [] } }

        func lines(_ log: String) -> [String] {
            (FileContent.text(of: bus.file(log)) ?? "").split(separator: "\n").map(String.init)
        }

        func hasNews(_ expected: [DeskNews]) async throws {
            do {
                try await eventually("news") { news.withLock { $0 } == expected }
            } catch {
                Issue.record("\(news.withLock { $0 }), and not \(expected)")
            }
        }

        func show(_ content: Notice.Content, replaces: UInt32? = nil) async throws -> Result<UInt32, BusFailure> {
            let result = Lock<Result<UInt32, BusFailure>?>(nil)
            let (desk, subject) = (desk, NoticeSubject(.connectionDown, "office"))
            await onQueue {
                desk.show(Notice(subject: subject, content: content, replaces: replaces)) { given in
                    result.withLock { $0 = given }
                }
            }
            try await eventually("an answer") { result.withLock { $0 } != nil }
            return try #require(result.withLock { $0 })
        }

        /// Has a program on the bus call a daemon.
        func call(_ service: String, _ path: String, _ method: String, _ arguments: String...) {
            let result = Program.run(
                systemProgram("gdbus") ?? "gdbus",
                ["call", "--address", bus.address, "-d", service, "-o", path, "-m", method] + arguments)
            #expect(result.status == 0, "\(result)")
        }

    }

    private static let content = Notice.Content(
        title: "<b>office</b> is down", body: "<i>refused</i> & \"so on\"", urgency: .critical, button: "Redial")

    @Test(arguments: kinds)
    func `a daemon gets the text without markup, as it takes it`(_ kind: PrivateBus.Kind) async throws {
        let hall = try await Hall(kind)
        try await hall.begin("a.log", "body", "body-markup", "actions")
        try await hall.hasNews([.came, .came])
        expect(try await hall.show(Self.content), is: .success(1))
        expect(try await hall.show(Self.content, replaces: 1), is: .success(1))
        await onQueue { hall.desk.withdraw(1) }
        let hints = #"{"category": "network.disconnected", "urgency": 2}"#
        func notify(_ replaces: Int, _ body: String, _ actions: String) -> String {
            #"["Notify", "Dialtone", \#(replaces), "network-offline", "<b>office</b> is down", "\#(body)", "#
                + #"\#(actions), \#(hints), 0]"#
        }
        let escaped = #"&lt;i&gt;refused&lt;/i&gt; &amp; \"so on\""#
        let button = #"["act", "Redial"]"#
        try await eventually("the withdrawal") { hall.lines("a.log").count == 4 }
        #expect(
            hall.lines("a.log") == [
                #"["serves"]"#, notify(0, escaped, button), notify(1, escaped, button), #"["CloseNotification", 1]"#,
            ])
        // Another one, which knows neither markup nor buttons.
        try await hall.begin("b.log", "body")
        try await hall.hasNews([.came, .came, .closed(1), .came])
        expect(try await hall.show(Self.content), is: .success(1))
        #expect(hall.lines("b.log") == [#"["serves"]"#, notify(0, #"<i>refused</i> & \"so on\""#, "[]")])
    }

    @Test(arguments: kinds)
    func `it hears of buttons and of what is closed, and believes nobody else`(_ kind: PrivateBus.Kind) async throws {
        let hall = try await Hall(kind)
        try await hall.begin("a.log", "actions")
        for (signal, argument) in [("NotificationClosed", "uint32 2"), ("ActionInvoked", "'act'")] {
            let result = Program.run(
                systemProgram("gdbus") ?? "gdbus",
                [
                    "emit", "--address", hall.bus.address, "-o", path, "-s",
                    "\(daemon).\(signal)", "uint32 7", argument,
                ])
            #expect(result.status == 0, "\(result)")
        }
        hall.call(daemon, path, "org.example.Test.Press", "'1'", "default")
        hall.call(daemon, path, "org.example.Test.Press", "'1'", "act")
        hall.call(daemon, path, "org.example.Test.Close", "1", "2")
        try await hall.hasNews([.came, .came, .pressed(1), .closed(1)])
    }

    @Test func `a daemon that the bus starts for it is no news, and is asked once`() async throws {
        guard hasConnector else { return }
        let hall = try await Hall(.daemon, activated: ["actions"])
        async let first = hall.show(Self.content)
        async let second = hall.show(Self.content)
        expect(Set([try await first, try await second]), is: [.success(1), .success(2)])
        try await hall.hasNews([.came])
        #expect(hall.lines("activated.log").filter { $0.contains("Notify") }.count == 2)
    }

    @Test(arguments: kinds)
    func `a daemon that leaves on the screen what is closed is told that its time is over`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let hall = try await Hall(kind)
        try await hall.begin("a.log", "gnome")
        expect(try await hall.show(Self.content), is: .success(1))
        await onQueue { hall.desk.withdraw(1) }
        try await hall.hasNews([.came, .came, .closed(1)])
        #expect(
            hall.lines("a.log").suffix(2) == [
                #"["Notify", "Dialtone", 1, "", "Over", "", [], {}, 1]"#, #"["CloseNotification", 1]"#,
            ])
    }

    @Test(arguments: kinds) func `without a daemon, or with one that refuses, that is the answer`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let hall = try await Hall(kind)
        guard case .failure(.unknownService) = try await hall.show(Self.content) else {
            Issue.record("there is a daemon")
            return
        }
        try await hall.begin("a.log", "full")
        expect(
            try await hall.show(Self.content), is: .failure(.error(name: "org.example.Full", text: "too many")))
        hall.end()
        try await hall.hasNews([.came, .came, .went])
    }

    @Test(arguments: kinds)
    func `the portal gets plain text, and tells of buttons`(_ kind: PrivateBus.Kind) async throws {
        let hall = try await Hall(kind) { PortalDesk(at: $0, $1) }
        try await hall.begin("a.log", "portal")
        expect(try await hall.show(Self.content), is: .success(1))
        expect(try await hall.show(Self.content, replaces: 1), is: .success(1))
        expect(try await hall.show(Self.content), is: .success(2))
        await onQueue { hall.desk.withdraw(2) }
        try await eventually("the withdrawal") { hall.lines("a.log").count == 5 }
        func add(_ id: Int) -> String {
            #"["AddNotification", "dialtone-\#(id)", {"body": "<i>refused</i> & \"so on\"", "#
                + #""buttons": [{"action": "act", "label": "Redial"}], "priority": "urgent", "#
                + #""title": "<b>office</b> is down"}]"#
        }
        #expect(
            hall.lines("a.log") == [
                #"["serves"]"#, add(1), add(1), add(2), #"["RemoveNotification", "dialtone-2"]"#,
            ])
        for (name, action) in [
            ("other-1", "act"), ("dialtone-x", "act"), ("dialtone-1", "else"), ("dialtone-1", "act"),
        ] {
            hall.call(
                portal, "/org/freedesktop/portal/desktop", "org.example.Test.Press", "'\(name)'", "'\(action)'")
        }
        try await hall.hasNews([.came, .came, .pressed(1)])
    }
}
