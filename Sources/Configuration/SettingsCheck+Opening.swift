// SPDX-License-Identifier: Apache-2.0

package import Connection
package import DialtoneAPI

extension SettingsCheck {
    /// What is said on each new flow to log in; `nil` where something is wrong with it. What it holds is in no message.
    mutating func opening(_ steps: [ConnectionsAPI.OpeningStep]?) -> Opening? {
        guard let steps else { return nil }
        let read = OpeningCheck(steps)
        for problem in read.problems { wrong(problem.field, problem.reason) }
        return read.opening
    }
}

/// Makes an opening exchange of its steps.
package struct OpeningCheck {
    /// All that is wrong.
    package private(set) var problems: [SettingsProblem] = []
    /// What can be played; `nil` where something is wrong.
    package private(set) var opening: Opening?

    /// Checks what is to be said.
    package init(_ steps: [ConnectionsAPI.OpeningStep]) {
        // Before each is looked at: a client may send thousands.
        guard steps.count <= Opening.mostSteps else {
            wrong("opening", "\(steps.count) steps are more than \(Opening.mostSteps)")
            return
        }
        let opening = Opening(steps.enumerated().map { step($1, "opening[\($0)]") })
        guard problems.isEmpty else { return }
        if let problem = opening.problem { wrong("opening", problem) } else { self.opening = opening }
    }

    private mutating func wrong(_ field: String, _ reason: String) {
        guard problems.count < SettingsCheck.mostProblems else { return }
        problems.append(SettingsProblem(field: field, reason: reason, isHarmless: false))
    }

    private mutating func step(_ step: ConnectionsAPI.OpeningStep, _ field: String) -> Opening.Step {
        let send = read(step.send, "\(field).send") { text throws(EscapeError) in try [UInt8](escapedText: text) }
        let overtakers = (step.overtakenBy ?? []).enumerated().map { index, text in
            read(text, "\(field).overtakenBy[\(index)]") { text throws(EscapeError) in
                try BytePattern(escapedText: text)
            } ?? BytePattern([])
        }
        return Opening.Step(
            send: send ?? [], answer: step.expect.flatMap { answer($0, "\(field).expect") }, overtakers: overtakers)
    }

    private mutating func answer(_ answer: ConnectionsAPI.OpeningAnswer, _ field: String) -> ExpectedAnswer? {
        let before = problems.count
        let beginning = read(answer.bytes, "\(field).bytes") { text throws(EscapeError) in
            try BytePattern(escapedText: text)
        }
        let content = bytes(answer.contains, "\(field).contains")
        var extents: [(key: String, extent: ExpectedAnswer.Extent)] = []
        if let length = answer.length {
            extents.append(("length", .length(length)))
            let longest = ExpectedAnswer.longestAnswer
            if !(1...longest).contains(length) {
                wrong("\(field).length", "\(length) is out of range; from 1 to \(longest)")
            }
        }
        if let delimiter = bytes(answer.until, "\(field).until") { extents.append(("until", .delimiter(delimiter))) }
        if let message = answer.message {
            if let kind = ExpectedAnswer.MessageFormat(rawValue: message) {
                extents.append(("message", .message(kind)))
            } else {
                let kinds = ExpectedAnswer.MessageFormat.allCases.map(\.rawValue).joined(separator: ", ")
                wrong("\(field).message", "unknown value “\(message)”; one of \(kinds)")
            }
        }
        guard problems.count == before else { return nil }
        guard extents.count < 2 else {
            wrong("\(field).\(extents[1].key)", "the answer ends by \(extents[0].key) already")
            return nil
        }
        if let extent = extents.first?.extent {
            return ExpectedAnswer(extent, beginning: beginning ?? BytePattern([]), content: content ?? [])
        }
        guard let beginning, content == nil else {
            let missing = "where the answer ends is not said: give length, until or message, or bytes for all of it"
            wrong("\(field).\(answer.bytes == nil && answer.contains == nil ? "bytes" : "contains")", missing)
            return nil
        }
        return ExpectedAnswer(beginning)
    }

    private mutating func bytes(_ text: String?, _ field: String) -> [UInt8]? {
        read(text, field) { text throws(EscapeError) in try [UInt8](escapedText: text) }
    }

    private mutating func read<Value>(
        _ text: String?, _ field: String, _ make: (String) throws(EscapeError) -> Value
    ) -> Value? {
        guard let text else { return nil }
        do throws(EscapeError) {
            return try make(text)
        } catch {
            wrong(field, Self.noEscape)
            return nil
        }
    }

    /// What is said of a backslash that is none of these. Not which: it may stand in a password.
    package static let noEscape =
        #"a backslash in it is no escape; there are \r, \n, \t, \0, \\ and \xNN with two hexadecimal digits, and in "#
        + #"what is expected \? and \x2? and \x?0"#
}
