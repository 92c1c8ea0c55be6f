// SPDX-License-Identifier: Apache-2.0

package import Connection
package import DialtoneAPI

/// Makes an opening exchange of its steps. What they hold is in no message.
package struct OpeningCheck {
    /// All that is wrong.
    package var problems: [SettingsProblem] { found.all }
    private(set) var found = SettingsProblems()
    /// What can be played; `nil` where something is wrong.
    package private(set) var opening: Opening?

    /// Checks what is to be said.
    package init(_ steps: [ConnectionsAPI.OpeningStep]) {
        // Before each is looked at: a client may send thousands.
        guard steps.count <= Opening.mostSteps else {
            found.wrong("opening", "\(steps.count) steps are more than \(Opening.mostSteps)")
            return
        }
        let opening = Opening(steps.enumerated().map { step($1, "opening[\($0)]") })
        guard found.all.isEmpty else { return }
        if let problem = opening.problem { found.wrong("opening", problem) } else { self.opening = opening }
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
        let before = found.all.count
        let beginning = read(answer.bytes, "\(field).bytes") { text throws(EscapeError) in
            try BytePattern(escapedText: text)
        }
        let content = bytes(answer.contains, "\(field).contains")
        var extents: [(key: String, extent: ExpectedAnswer.Extent)] = []
        if let length = answer.length {
            extents.append(("length", .length(length)))
            if let problem = outOfRange(length, 1...ExpectedAnswer.longestAnswer) {
                found.wrong("\(field).length", problem)
            }
        }
        if let delimiter = bytes(answer.until, "\(field).until") { extents.append(("until", .delimiter(delimiter))) }
        if let message = answer.message {
            if let kind = ExpectedAnswer.MessageFormat(rawValue: message) {
                extents.append(("message", .message(kind)))
            } else {
                let kinds = ExpectedAnswer.MessageFormat.allCases.map(\.rawValue).joined(separator: ", ")
                found.wrong("\(field).message", "unknown value “\(message)”; one of \(kinds)")
            }
        }
        guard found.all.count == before else { return nil }
        guard extents.count < 2 else {
            found.wrong("\(field).\(extents[1].key)", "the answer ends by \(extents[0].key) already")
            return nil
        }
        if let extent = extents.first?.extent {
            return ExpectedAnswer(extent, beginning: beginning ?? BytePattern([]), content: content ?? [])
        }
        guard let beginning, content == nil else {
            let missing = "where the answer ends is not said: give length, until or message, or bytes for all of it"
            found.wrong("\(field).\(answer.bytes == nil && answer.contains == nil ? "bytes" : "contains")", missing)
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
            found.wrong(field, Self.noEscape)
            return nil
        }
    }

    /// What is said of a backslash that is none of these. Not which: it may stand in a password.
    package static let noEscape =
        #"a backslash in it is no escape; there are \r, \n, \t, \0, \\ and \xNN with two hexadecimal digits, and in "#
        + #"what is expected \? and \x2? and \x?0"#
}
