// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a field of a connection's settings, or without effect.
package struct SettingsProblem: Error, Hashable {
    /// The field as `org.dialtone.Connections` names it, as in `keepalive.intervalMilliseconds` or `opening[0].send`.
    package let field: String
    /// For the end of a sentence.
    package let reason: String
    /// Whether the settings do nevertheless.
    package let isHarmless: Bool
}

/// The problems of one connection's settings, in the order in which they were found.
struct SettingsProblems {
    /// More is read by nobody, and a message has room for thousands of wrong values.
    private static let most = 100

    private(set) var all: [SettingsProblem] = []

    /// Whether nothing is wrong.
    var areHarmless: Bool { all.allSatisfy(\.isHarmless) }

    mutating func wrong(_ field: String, _ reason: @autoclosure () -> String) {
        guard all.count < Self.most else { return }
        all.append(SettingsProblem(field: field, reason: reason(), isHarmless: false))
    }

    mutating func add(_ others: SettingsProblems) { all += others.all }

    mutating func withoutEffect(_ field: String, _ reason: String) {
        all.append(SettingsProblem(field: field, reason: reason, isHarmless: true))
    }
}
