// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNotifications
internal import DialtonePlatform
internal import DialtoneTOML

extension [NoticeRule] {
    /// A month of one outage is no news any more.
    private static let longestWait = Duration.seconds(30 * 86_400)
    /// What fits on a button.
    private static let longestLabel = 40

    /// Reads `[notifications]`: the user's rules, and behind them those that hold where these say nothing. None where
    /// notifications are switched off. What is wrong with the table is in the report.
    init(_ table: TableReader) {
        var table = table
        let isOn = table.boolean("enabled") ?? true
        let rules = table.tables("rule").compactMap { Self.rule($0) }
        table.finish()
        self = isOn ? rules + NoticeRule.defaults : []
    }

    private static func rule(_ table: TableReader) -> NoticeRule? {
        var table = table
        table.require("event")
        let event: Located<NoticeRule.Event>? = table.choice("event")
        let names = table.strings("names")
        let isShown = table.boolean("show")
        let after = table.duration("after", .zero...longestWait)
        let title = text("title", &table)
        let body = text("body", &table)
        let urgency: Located<NoticeRule.Urgency>? = table.choice("urgency")
        let command = command(&table)
        table.finish()
        guard let event else { return nil }
        var rule = NoticeRule(event.value)
        if let after {
            if event.value.waits {
                rule.after = after.value
            } else {
                table.error("after", after.position, "\(event.value.rawValue) does not wait")
            }
        }
        rule.names = names.map { Set($0.map(\.value.printable)) }
        rule.isShown = isShown ?? true
        if let title { rule.title = title }
        if let body { rule.body = body }
        if let urgency { rule.urgency = urgency.value }
        rule.command = command
        return rule
    }

    private static func text(_ key: String, _ table: inout TableReader) -> NoticeText? {
        guard let text = table.string(key) else { return nil }
        do throws(NoticeText.Problem) {
            return try NoticeText(text.value)
        } catch {
            table.error(key, text.position, error.text)
            return nil
        }
    }

    private static func command(_ table: inout TableReader) -> NoticeRule.Command? {
        let command = table.strings("command")
        let label = table.string("label")
        guard let command else {
            if let label, table.isAbsent("command") { table.error("label", label.position, "is for a command") }
            return nil
        }
        guard let program = command.first, program.value.hasPrefix("/") else {
            let position = command.first?.position ?? table.position
            table.error("command", position, "must begin with the absolute path of a program")
            return nil
        }
        if let label, !(1...longestLabel).contains(label.value.unicodeScalars.count) {
            table.error("label", label.position, "must have 1 to \(longestLabel) characters")
        }
        let name = program.value.split(separator: "/").last.map(String.init)
        return NoticeRule.Command(
            label: (label?.value ?? name ?? program.value).printable, arguments: command.map(\.value))
    }
}
