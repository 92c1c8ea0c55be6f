// SPDX-License-Identifier: Apache-2.0

import DialtoneConfiguration
import DialtoneNotifications
import DialtoneTestSupport
import Foundation
import Testing

/// What `[notifications]` of session.toml(5) says.
@Suite struct NotificationRulesTests {
    /// The configuration of a text, or what is wrong with it.
    private func read(_ text: String) throws -> Result<[NoticeRule], ConfigurationError> {
        let directory = TemporaryDirectory()
        let path = "\(directory.path)/session.toml"
        try directory.write(text, to: "session.toml")
        chmod(path, 0o600)
        defer { withExtendedLifetime(directory) {} }
        do throws(ConfigurationError) {
            return .success(try SessionConfiguration.load(path, mayBeMissing: false).notifications)
        } catch {
            return .failure(error)
        }
    }

    @Test func `without a table the usual is shown, and nothing if it is switched off`() throws {
        #expect(try read("").get() == NoticeRule.defaults)
        #expect(try read("[notifications]").get() == NoticeRule.defaults)
        #expect(try read("[notifications]\nenabled = false\n[[notifications.rule]]\nevent = 'wake-failed'").get() == [])
        #expect(NoticeRule.defaults.map(\.event) == NoticeRule.Event.allCases)
    }

    @Test func `the user's rules stand before the usual ones`() throws {
        var office = NoticeRule(.connectionDown)
        office.names = ["office", "van"]
        office.after = .seconds(90)
        office.urgency = .critical
        office.title = ["{", .name, "}"]
        office.body = [.reason, " since ", .since]
        office.command = .init(label: "Call", arguments: ["/bin/call", "$HOME"])
        var lab = NoticeRule(.bytesUnread)
        lab.isShown = false
        var phone = NoticeRule(.wakeFailed)
        phone.command = .init(label: "restart-phone", arguments: ["/usr/bin/restart-phone"])
        let text = """
            [[notifications.rule]]
            event = "connection-down"
            names = ["office", "van"]
            after = "1m30s"
            urgency = "critical"
            title = "{{{name}}}"
            body = "{reason} since {since}"
            command = ["/bin/call", "$HOME"]
            label = "Call"
            [[notifications.rule]]
            event = "bytes-unread"
            show = false
            [[notifications.rule]]
            event = "wake-failed"
            command = ["/usr/bin/restart-phone"]
            """
        #expect(try read(text).get() == [office, lab, phone] + NoticeRule.defaults)
    }

    @Test(arguments: [
        ("event = 'down'", "notifications.rule.event"), ("names = ['a']", "notifications.rule.event: missing"),
        ("event = 'wake-failed'\nafter = '1m'", "notifications.rule.after: wake-failed does not wait"),
        ("event = 'connection-down'\nafter = '31d'", "notifications.rule.after"),
        ("event = 'connection-down'\nafter = '-1s'", "notifications.rule.after"),
        ("event = 'connection-down'\ntitle = '{host}'", "notifications.rule.title: \"{host}\" is none of"),
        ("event = 'connection-down'\nbody = '{'", "notifications.rule.body: a brace"),
        ("event = 'connection-down'\ncommand = []", "notifications.rule.command: must begin"),
        ("event = 'connection-down'\ncommand = ['touch']", "notifications.rule.command: must begin"),
        ("event = 'connection-down'\nlabel = 'x'", "notifications.rule.label: is for a command"),
        ("event = 'connection-down'\ncommand = ['/x']\nlabel = ''", "notifications.rule.label: must have 1 to 40"),
        ("event = 'connection-down'\nurgency = 'high'", "notifications.rule.urgency"),
        ("event = 'connection-down'\nnam = ['a']", "notifications.rule.nam: unknown key"),
    ])
    func `a mistake is told with its key`(_ rule: String, _ told: String) throws {
        guard case .failure(let error) = try read("[[notifications.rule]]\n\(rule)") else {
            Issue.record("it was taken")
            return
        }
        #expect("\(error)".contains(told), "\(error)")
    }
}
