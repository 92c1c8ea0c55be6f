// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

// What is said of values that are not allowed, for the end of a sentence.

/// Of one that is none of those there are.
func unknownValue(_ value: String, among choices: [String]) -> String {
    let meant = suggestion(for: value, among: choices).map { "; did you mean \"\($0)\"?" }
    return "unknown value \"\(value)\"\(meant ?? "; one of \(choices.joined(separator: ", "))")"
}

/// Of one that is not in a range; `nil` for one that is. A number that is none is in no range.
func outOfRange<Value: Comparable>(_ value: Value, _ range: ClosedRange<Value>) -> String? {
    if range.contains(value) { return nil }
    return "\(value) is out of range; from \(range.lowerBound) to \(range.upperBound)"
}

/// The same of a duration, as the configuration writes it.
func outOfRange(_ value: Duration, _ range: ClosedRange<Duration>) -> String? {
    if range.contains(value) { return nil }
    let bounds = "from \(range.lowerBound.configurationText) to \(range.upperBound.configurationText)"
    return "\"\(value.configurationText)\" is out of range; \(bounds)"
}
