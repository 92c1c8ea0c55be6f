// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePushAPI
import Testing

@testable import DialtonePresentation

/// What `dialtone push` and `dialtone notify` show.
@Suite struct SessionScreenTests {
    private static func status(
        isUp: Bool = true, reason: String? = nil, busTrouble: String? = nil, storageTrouble: String? = nil
    ) -> PushAPI.Status.Reply {
        .init(
            server: .init(
                server: "xmpp:alice@example.com", isUp: isUp, since: isUp ? Sample.noon.advanced(by: -3_600_000) : nil,
                reason: reason, connection: "push"),
            registrations: 2, waiting: 1, lastMessageAt: isUp ? Sample.noon.advanced(by: -60_000) : nil,
            isOnBus: busTrouble == nil, busTrouble: busTrouble, storageTrouble: storageTrouble,
            counters: .init(arrived: 20, taken: 12, givenUp: 2, failedTries: 9))
    }

    @Test func `the state of push has what is wrong below it`() {
        expect(
            PushScreen.status(Self.status(), now: Sample.noon, Sample.plain),
            is: [
                "Server           xmpp:alice@example.com",
                "State            logged in for 1 h",
                "Connection       push",
                "Last message     1 m ago",
                "Apps             2 registered",
                "Waiting          1 message",
                "Since its start  20 came, 12 taken, 2 given up, 9 tries failed",
            ])
        let trouble = Self.status(
            isUp: false, reason: "the password is wrong", busTrouble: "there is no session bus",
            storageTrouble: "the disk is full")
        let lines = PushScreen.status(trouble, now: Sample.noon, Sample.plain)
        expect(
            lines.filter { !$0.contains("  ") },
            is: ["the password is wrong", "Apps cannot reach it: there is no session bus.", "the disk is full"])
        #expect(lines.contains("State            not logged in"), "\(lines)")
        #expect(lines.contains("Last message     none yet"), "\(lines)")
        let none = PushAPI.Status.Reply(
            server: nil, registrations: 0, waiting: 0, lastMessageAt: nil, isOnBus: true, busTrouble: nil,
            storageTrouble: nil, counters: .init(arrived: 0, taken: 0, givenUp: 0, failedTries: 0))
        #expect(PushScreen.status(none, now: Sample.noon, Sample.plain).first?.hasPrefix("No push server.") == true)
    }

    @Test func `the registrations have why their messages wait`() {
        func registration(
            _ number: Int, _ app: String, sandbox: String? = nil, isDemoted: Bool = false,
            state: PushAPI.RegistrationState = .registered, waiting: Int = 0, reason: String? = nil
        ) -> PushAPI.Registration {
            .init(
                number: number, app: app, sandbox: sandbox, summary: "calls", kind: .voip, isDemoted: isDemoted,
                state: state, lastMessageAt: waiting > 0 ? Sample.noon.advanced(by: -5_000) : nil, waiting: waiting,
                reason: reason)
        }
        expect(
            PushScreen.list(
                [
                    registration(1, "org.example.Phone", sandbox: "snap:phone", waiting: 3, reason: "it sleeps"),
                    registration(12, "org.example.Rude", isDemoted: true),
                    registration(13, "org.example.New", state: .registering),
                ], now: Sample.noon, Sample.plain),
            is: [
                "NUMBER  APP                             KIND                 STATE        LAST       WAITING  FOR",
                "1       org.example.Phone (snap:phone)  voip                 registered   5.0 s ago  3        calls",
                "12      org.example.Rude                standard (was voip)  registered   –          0        calls",
                "13      org.example.New                 voip                 registering  –          0        calls",
                "org.example.Phone: it sleeps",
            ])
        expect(PushScreen.list([], now: Sample.noon, Sample.plain), is: ["No app has registered."])
    }

    @Test func `the history has why a message was given up`() {
        func message(_ app: String?, _ name: String, ago: Int64, givenUp: String? = nil) -> PushAPI.SettledMessage {
            .init(
                at: Sample.noon.advanced(by: -ago), registration: app.map { _ in 1 }, app: app, message: name,
                givenUp: givenUp)
        }
        expect(
            PushScreen.history(
                [
                    message(nil, "a1", ago: 7_200_000),
                    message("org.example.Phone", "b22", ago: 60_000, givenUp: "the app failed on it 5 times: no key"),
                    message("org.example.Phone", "c3", ago: 5_000),
                ], now: Sample.noon, Sample.plain),
            is: [
                "WHEN       APP                   MESSAGE  RESULT",
                "2 h ago    no longer registered  a1       taken",
                "1 m ago    org.example.Phone     b22      given up: the app failed on it 5 times: no key",
                "5.0 s ago  org.example.Phone     c3       taken",
            ])
        expect(PushScreen.history([], now: Sample.noon, Sample.plain), is: ["No message was taken or given up yet."])
    }

    @Test(arguments: [
        (PushAPI.Test.Reply(outcome: .taken, reason: nil), "The app took it."),
        (.init(outcome: .refused, reason: "no key"), "The app refused it: no key."),
        (.init(outcome: .unanswered, reason: nil), "The app did not answer in time."),
        (.init(outcome: .notStarted, reason: "exit 1"), "The app does not run and could not be started: exit 1."),
        (
            .init(outcome: .unknown, reason: nil),
            "Nothing on the session bus has the app's name, and nothing says how to start it."
        ),
    ])
    func `what came of a test is one sentence`(reply: PushAPI.Test.Reply, sentence: String) {
        expect(PushScreen.test(reply, Sample.plain), is: [sentence])
    }

    @Test func `what is wrong has its notification`() {
        func notice(_ name: String, _ stage: NotificationsAPI.Stage) -> NotificationsAPI.Notice {
            .init(event: "connection-down", name: name, title: "\(name) is down", body: "no route", stage: stage)
        }
        expect(
            NotifyScreen.list(
                .init(
                    isOn: true,
                    notices: [
                        notice("office", .waiting), notice("door", .kept), notice("chat", .shown),
                        notice("gate", .seen),
                    ]), Sample.plain),
            is: [
                "EVENT            NAME    NOTIFICATION",
                "connection-down  office  not due yet",
                "connection-down  door    waits to be shown",
                "connection-down  chat    shown",
                "connection-down  gate    shown and closed",
                "office is down: no route",
                "door is down: no route",
                "chat is down: no route",
                "gate is down: no route",
            ])
        expect(NotifyScreen.list(.init(isOn: true, notices: []), Sample.plain), is: ["Nothing is wrong."])
        expect(
            NotifyScreen.list(.init(isOn: false, notices: []), Sample.plain),
            is: ["Notifications are switched off in session.toml."])
    }

    @Test(arguments: [
        (NotificationsAPI.Test.Reply(outcome: .shown, daemon: "dunst 1.9", reason: nil), "dunst 1.9 shows it."),
        (.init(outcome: .shown, daemon: nil, reason: nil), "The notification daemon shows it."),
        (
            .init(outcome: .noDaemon, daemon: nil, reason: nil),
            "No notification daemon runs, and the session bus cannot start one."
        ),
        (.init(outcome: .refused, daemon: "dunst 1.9", reason: "too many"), "dunst 1.9 did not take it: too many."),
        (.init(outcome: .noBus, daemon: nil, reason: nil), "The session agent has no session bus."),
        (.init(outcome: .off, daemon: nil, reason: nil), "Notifications are switched off in session.toml."),
    ])
    func `what came of a test notification is one sentence`(reply: NotificationsAPI.Test.Reply, sentence: String) {
        expect(NotifyScreen.test(reply, Sample.plain), is: [sentence])
    }
}
