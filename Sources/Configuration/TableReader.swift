// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneTOML

/// A value with its place, for what is checked once the value is read.
struct Located<Value> {
    var value: Value
    var position: TOMLPosition
}

/// Takes the keys that it knows out of one table and reports every other, every wrong type and every value out of
/// range.
///
/// Nothing throws: a value that is no good is reported and then treated as absent, so that one load finds all errors.
/// The caller does not report what is wrong only because of that.
struct TableReader {
    let file: String
    let report: ConfigurationReport
    /// Where the table begins, for what is missing in it.
    let position: TOMLPosition
    private let path: String
    private let entries: [TOMLEntry]
    private var known: [String] = []
    /// The keys that must be there, and are not.
    private var missing: [String] = []

    init(
        _ entries: [TOMLEntry], of file: String, at position: TOMLPosition, path: String, _ report: ConfigurationReport
    ) {
        self.entries = entries
        self.file = file
        self.position = position
        self.path = path
        self.report = report
    }

    /// Reports the keys that nobody asked for, and those that are missing. Call it last.
    ///
    /// - Returns: whether there are keys that nobody asked for.
    @discardableResult
    func finish() -> Bool {
        var hasUnknown = false
        var misspelled: Set<String> = []
        for entry in entries where !known.contains(entry.key) {
            hasUnknown = true
            // What is not listed any more needs no suggestion: there may be a hundred thousand.
            if report.isFull {
                report.error(file, entry.keyPosition, nil, "")
                continue
            }
            let meant = suggestion(for: entry.key, among: known)
            if let meant { misspelled.insert(meant) }
            let hint = meant.map { "; did you mean \"\($0)\"?" } ?? ""
            error(entry.key, entry.keyPosition, "unknown key\(hint)")
        }
        for key in missing where !misspelled.contains(key) { error(key, position, "missing") }
        return hasUnknown
    }

    func error(_ key: String, _ position: TOMLPosition, _ message: String) {
        report.error(file, position, full(key), message)
    }

    func notice(_ key: String, _ position: TOMLPosition, _ message: String) {
        report.notice(file, position, full(key), message)
    }

    mutating func string(_ key: String, expected: String = "a string") -> Located<String>? {
        read(key, expected) { if case .string(let value) = $0 { value } else { nil } }
    }

    /// A string that must be there.
    mutating func required(_ key: String) -> Located<String>? {
        require(key)
        return string(key)
    }

    /// Has `finish` report the key where it is not there.
    mutating func require(_ key: String) {
        if isAbsent(key) { missing.append(key) }
    }

    mutating func boolean(_ key: String) -> Bool? {
        read(key, "true or false") { if case .boolean(let value) = $0 { value } else { nil } }?.value
    }

    mutating func integer<Number: FixedWidthInteger>(_ key: String, _ range: ClosedRange<Number>) -> Number? {
        guard let number = read(key, "an integer", { if case .integer(let value) = $0 { value } else { nil } }) else {
            return nil
        }
        guard let value = Number(exactly: number.value), range.contains(value) else {
            error(
                key, number.position, "\(number.value) is out of range; from \(range.lowerBound) to \(range.upperBound)"
            )
            return nil
        }
        return value
    }

    mutating func number(_ key: String) -> Double? {
        read(key, "a number") { value in
            switch value {
            case .float(let value): value
            case .integer(let value): Double(value)
            case .string, .boolean, .time, .array, .table: Double?.none
            }
        }?.value
    }

    /// A duration of any length.
    mutating func duration(_ key: String) -> Duration? { located(key)?.value }

    mutating func duration(_ key: String, _ range: ClosedRange<Duration>) -> Located<Duration>? {
        guard let duration = located(key) else { return nil }
        guard let problem = outOfRange(duration.value, range) else { return duration }
        error(key, duration.position, problem)
        return nil
    }

    private mutating func located(_ key: String) -> Located<Duration>? {
        guard
            let text = read(key, "a duration such as \"90s\"", { if case .string(let text) = $0 { text } else { nil } })
        else { return nil }
        guard let value = Duration(configurationText: text.value) else {
            error(key, text.position, "\"\(text.value)\" is no duration; write \"120s\", \"1m30s\" or \"500ms\"")
            return nil
        }
        return Located(value: value, position: text.position)
    }

    /// One of the named values of an enumeration.
    mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(_ key: String) -> Located<Choice>? {
        guard let text = string(key) else { return nil }
        if let choice = Choice(rawValue: text.value) { return Located(value: choice, position: text.position) }
        error(key, text.position, unknownValue(text.value, among: Choice.allCases.map(\.rawValue)))
        return nil
    }

    mutating func strings(_ key: String) -> [Located<String>]? {
        guard let members = read(key, "an array of strings", { if case .array(let nodes) = $0 { nodes } else { nil } })
        else { return nil }
        return members.value.compactMap { node in
            if case .string(let text) = node.value { return Located(value: text, position: node.position) }
            error(key, node.position, "expected a string, found \(node.value.kind)")
            return nil
        }
    }

    /// A reader for the table under `key`.
    mutating func table(_ key: String) -> TableReader? {
        guard let table = read(key, "a table", { if case .table(let entries) = $0 { entries } else { nil } }) else {
            return nil
        }
        return TableReader(table.value, of: file, at: table.position, path: full(key), report)
    }

    /// A reader for each table of the array under `key`.
    mutating func tables(_ key: String) -> [TableReader] {
        guard let nodes = read(key, "[[\(key)]]", { if case .array(let nodes) = $0 { nodes } else { nil } }) else {
            return []
        }
        return nodes.value.compactMap { node in
            if case .table(let entries) = node.value {
                return TableReader(entries, of: file, at: node.position, path: full(key), report)
            }
            error(key, node.position, "expected [[\(key)]], found \(node.value.kind)")
            return nil
        }
    }

    /// Whether the table has no `key` at all, good or bad.
    func isAbsent(_ key: String) -> Bool {
        !entries.contains { $0.key == key }
    }

    /// The value of `key` in any form, for keys that have more than one.
    mutating func any(_ key: String) -> TOMLNode? {
        known.append(key)
        return entries.first { $0.key == key }?.node
    }

    private mutating func read<Value>(
        _ key: String, _ expected: String, _ take: (TOMLNode.Value) -> Value?
    ) -> Located<Value>? {
        guard let node = any(key) else { return nil }
        guard let value = take(node.value) else {
            error(key, node.position, "expected \(expected), found \(node.value.kind)")
            return nil
        }
        return Located(value: value, position: node.position)
    }

    private func full(_ key: String) -> String {
        path.isEmpty ? key : "\(path).\(key)"
    }
}

extension TOMLNode.Value {
    /// What it is, with its article.
    fileprivate var kind: String {
        switch self {
        case .string: "a string"
        case .integer: "an integer"
        case .float: "a float"
        case .boolean: "a boolean"
        case .time: "a date or time"
        case .array: "an array"
        case .table: "a table"
        }
    }
}
