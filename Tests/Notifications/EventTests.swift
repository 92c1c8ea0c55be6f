// SPDX-License-Identifier: Apache-2.0

import DialtoneNotifications
import Testing

/// The other events, and the user's rules.
@Suite struct EventTests {
    @Test func `a login that is refused is shown at once, in place of the outage, until it is accepted`() {
        var wall = Wall()
        wall.take(.snapshot([.down().with { $0.login = .refused("wrong password") }]))
        #expect(wall.news() == ["show 1: office: login refused / wrong password [Redial]"])
        wall.take(.changed(.down("office", "no route")))
        wall.pass(.seconds(10_000))
        #expect(wall.news() == [], "one outage is one notification")
        wall.take(.changed(.up().with { $0.login = .accepted }))
        #expect(wall.news() == ["withdraw 1"])
    }

    @Test func `an outage goes on after its login is no longer refused`() {
        var wall = Wall()
        wall.take(.snapshot([.down().with { $0.login = .refused(nil) }]))
        #expect(wall.news() == ["show 1: office: login refused / no reason is known [Redial]"])
        wall.pass(.seconds(700))
        wall.take(.changed(.down().with { $0.login = .accepted }))
        #expect(wall.news() == ["withdraw 1"])
        wall.pass(.seconds(60))
        #expect(wall.news() == ["show 2: office is down / Since 1000 s: refused [Redial]"])
    }

    @Test func `a wake that is given up is shown in place of the bytes that wait`() {
        var wall = Wall()
        wall.take(.snapshot([.up().with { $0.hasUnread = true }]))
        wall.pass(.seconds(299))
        #expect(wall.news() == [])
        wall.pass(.seconds(1))
        #expect(wall.news() == ["show 1: Nobody reads what came for office / It waits since 1000 s."])
        wall.take(
            .changed(
                .up().with {
                    ($0.hasUnread, $0.isWakeFailed, $0.wakeDetail) = (true, true, "phone.service failed")
                }))
        #expect(
            wall.news() == [
                "withdraw 1",
                "show 2: The client of office does not run / It was to be woken: phone.service failed",
            ])
        wall.take(.changed(.up().with { ($0.hasUnread, $0.isWakeFailed) = (true, true) }))
        #expect(wall.news() == [], "the reason is remembered")
        wall.take(.changed(.up()))
        #expect(wall.news() == ["withdraw 2"])
    }

    @Test func `a certificate that ends is shown until there is another, sockets or not`() {
        var wall = Wall()
        let ending = WatchedConnection.up().with { $0.certificate = .ends("The server's ends on Friday.") }
        wall.take(.snapshot([ending]))
        #expect(wall.news() == ["show 1: A certificate of office ends / The server's ends on Friday."])
        wall.close(1)
        wall.take(.changed(.up()))
        wall.take(.changed(ending))
        #expect(wall.news() == [], "each socket has the same certificate")
        wall.take(.changed(.up().with { $0.certificate = .lasts }))
        wall.take(.changed(ending))
        #expect(wall.news() == ["show 2: A certificate of office ends / The server's ends on Friday."])
    }

    @Test func `an app that cannot be started is shown until it can`() {
        var wall = Wall()
        wall.take(.appNotStarted(app: "org.example.Phone", why: "exec failed"))
        #expect(wall.news() == ["show 1: org.example.Phone cannot be started / A push waits for it: exec failed"])
        wall.take(.appAnswered(app: "org.example.Other"))
        #expect(wall.news() == [])
        wall.take(.appAnswered(app: "org.example.Phone"))
        #expect(wall.news() == ["withdraw 1"])
    }

    @Test func `a login that the push server refuses is shown until it accepts one, or another server counts`() {
        var wall = Wall()
        wall.take(.pushLogin(server: "xmpp:a@b", refusal: "not authorized"))
        #expect(wall.news() == ["show 1: xmpp:a@b: login refused / not authorized [Redial]"])
        wall.take(.pressed(id: 1))
        #expect(wall.news() == ["redial push", "withdraw 1"])
        wall.take(.pushLogin(server: "xmpp:a@b", refusal: nil))
        wall.pass(.seconds(1000))
        #expect(wall.news() == [])
        wall.take(.pushLogin(server: "xmpp:a@b", refusal: "not authorized"))
        _ = wall.news()
        wall.take(.rules(NoticeRule.defaults, pushServer: "xmpp:a@b"))
        #expect(wall.news() == [])
        wall.take(.rules(NoticeRule.defaults, pushServer: "wss://c"))
        #expect(wall.news() == ["withdraw 2"])
    }

    // MARK: - Rules

    private func rule(_ event: NoticeRule.Event, _ change: (inout NoticeRule) throws -> Void) rethrows -> NoticeRule {
        var rule = NoticeRule(event)
        try change(&rule)
        return rule
    }

    @Test func `the first rule that is for a connection counts`() throws {
        var wall = Wall()
        let rules = try [
            rule(.connectionDown) { ($0.names, $0.isShown) = (["lab"], false) },
            rule(.connectionDown) {
                ($0.names, $0.after, $0.urgency) = (["office"], .seconds(30), .critical)
                $0.title = try NoticeText("{{{name}}}: {reason}")
                $0.command = .init(label: "Call IT", arguments: ["/bin/call", "112"])
            },
        ]
        wall.take(.rules(rules + NoticeRule.defaults, pushServer: nil))
        wall.take(.snapshot([.down("lab"), .down("office"), .down("van")]))
        wall.pass(.seconds(30))
        #expect(wall.news() == ["show 1: {office}: refused / Since 1000 s: refused [Call IT]"])
        #expect(wall.shown[1]?.urgency == .critical)
        wall.pass(.seconds(570))
        #expect(wall.news() == ["show 2: van is down / Since 1000 s: refused [Redial]"])
        wall.take(.pressed(id: 1))
        #expect(wall.news() == ["run /bin/call 112 for office", "withdraw 1"])
    }

    @Test func `a reload changes what is shown, and without rules nothing is`() {
        var wall = Wall()
        wall.take(.snapshot([.down()]))
        wall.take(.rules([rule(.connectionDown) { $0.after = .seconds(5) }], pushServer: nil))
        #expect(wall.board.deadline == .seconds(1005))
        wall.pass(.seconds(5))
        #expect(wall.news() == ["show 1: office is down / Since 1000 s: refused [Redial]"])
        wall.take(.rules([rule(.connectionDown) { $0.title = [.name, " is gone"] }], pushServer: nil))
        #expect(wall.news() == ["update 1: office is gone / Since 1000 s: refused [Redial]"])
        wall.take(.rules([], pushServer: nil))
        #expect(wall.news() == ["withdraw 1"])
        wall.take(.changed(.down("van")))
        wall.pass(.seconds(10_000))
        #expect(wall.news() == [])
    }

    @Test func `a login that no rule is for does not hide the outage`() {
        var wall = Wall()
        wall.take(.rules([rule(.loginRefused) { $0.isShown = false }] + NoticeRule.defaults, pushServer: nil))
        wall.take(.snapshot([.down().with { $0.login = .refused("wrong password") }]))
        wall.pass(.seconds(600))
        #expect(wall.news() == ["show 1: office is down / Since 1000 s: refused [Redial]"])
    }

    @Test(arguments: [
        ("{name}", "office"), ("a {reason} b{since}", "a refused b1000 s"), ("{{name}}", "{name}"), ("", ""),
        ("}}{{", "}{"),
    ])
    func `a text has places for what is known`(_ text: String, _ filled: String) throws {
        var wall = Wall()
        let rule = try rule(.connectionDown) { ($0.title, $0.after) = (try NoticeText(text), .zero) }
        wall.take(.rules([rule], pushServer: nil))
        wall.take(.snapshot([.down()]))
        #expect(wall.shown[1]?.title == filled)
    }

    @Test(arguments: ["{", "}", "{name", "{Name}", "{}", "a}b", "{{}", "{na{me}"])
    func `any other brace is a mistake`(_ text: String) {
        #expect(throws: NoticeText.Problem.self) { try NoticeText(text) }
    }

    @Test func `what is known is not looked through for places, and a long text is cut`() {
        var wall = Wall()
        wall.take(.snapshot([.down("{reason}", "<b>{name}</b>" + String(repeating: "é", count: 1000))]))
        wall.pass(.seconds(600))
        #expect(wall.shown[1]?.title == "{reason} is down")
        let body = wall.shown[1]?.body ?? ""
        #expect(body.hasPrefix("Since 1000 s: <b>{name}</b>éé") && body.hasSuffix("é…"), "\(body)")
        #expect(body.unicodeScalars.count == 400)
    }
}
