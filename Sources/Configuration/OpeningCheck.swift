// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection

/// Makes an opening exchange of its steps. What they hold is in no message.
package struct OpeningCheck {
    /// All that is wrong.
    package var problems: [SettingsProblem] { found.all }
    private(set) var found = SettingsProblems()
    /// What can be played; `nil` where something is wrong.
    package private(set) var opening: Opening?
    /// The first thing that the client says, alone; without a step where it says nothing, and `nil` where that is not
    /// known.
    private(set) var saidFirst: Opening?
    private let unread: UnreadFields

    /// Checks what is to be said.
    ///
    /// - Parameter unread: what stands in the file of the settings and could not be read, which was told.
    package init(_ steps: [ConnectionsAPI.OpeningStep], unread: UnreadFields = UnreadFields()) {
        self.unread = unread
        // Before each is looked at: a client may send thousands.
        guard steps.count <= Opening.mostSteps else {
            found.wrong("opening", "\(steps.count) steps are more than \(Opening.mostSteps)")
            return
        }
        saidFirst = firstWords(of: steps)
        let read = Opening(steps.enumerated().map { step($1, "opening[\($0)]") })
        if !unread.contains("opening"), let problem = read.problem { found.wrong("opening", problem) }
        if found.all.isEmpty, !unread.touches("opening") { opening = read }
    }

    private func firstWords(of steps: [ConnectionsAPI.OpeningStep]) -> Opening? {
        if unread.contains("opening") { return nil }
        for (index, step) in steps.enumerated() {
            if step.send == nil, unread.mayContain("opening[\(index)].send") { return nil }
            guard let text = step.send, !text.isEmpty else { continue }
            guard let bytes = try? [UInt8](escapedText: text) else { return nil }
            return Opening([Opening.Step(send: bytes, answer: nil)])
        }
        return Opening([])
    }

    // They stand in for what is wrong and was told, so that only what else is wrong is told beside it.
    private static let substituteBytes: [UInt8] = [0]
    private static let substituteAnswer = ExpectedAnswer(.length(1))

    private mutating func step(_ step: ConnectionsAPI.OpeningStep, _ field: String) -> Opening.Step {
        var send = bytes(step.send, "\(field).send")
        let mayHaveSend = step.send != nil || unread.mayContain("\(field).send")
        if send == nil, mayHaveSend { send = Self.substituteBytes }
        var expected = step.expect.map { answer($0, "\(field).expect") ?? Self.substituteAnswer }
        if step.expect == nil, unread.mayContain("\(field).expect") { expected = Self.substituteAnswer }
        let overtakers = (step.overtakenBy ?? []).enumerated().map { index, text in
            read(text, "\(field).overtakenBy[\(index)]") { text throws(EscapeError) in
                try BytePattern(escapedText: text)
            } ?? BytePattern(Self.substituteBytes)
        }
        return Opening.Step(send: send ?? [], answer: expected, overtakers: overtakers)
    }

    private mutating func answer(_ answer: ConnectionsAPI.OpeningAnswer, _ field: String) -> ExpectedAnswer? {
        let before = found.all.count
        let beginning = read(answer.bytes, "\(field).bytes") { text throws(EscapeError) in
            try BytePattern(escapedText: text)
        }
        let content = bytes(answer.contains, "\(field).contains")
        var extents: [(key: String, extent: ExpectedAnswer.Extent?)] = []
        if let length = answer.length {
            extents.append(("length", ExpectedAnswer.Extent.length(length)))
            if let problem = outOfRange(length, 1...ExpectedAnswer.longestAnswer) {
                found.wrong("\(field).length", problem)
            }
        }
        if answer.until != nil {
            extents.append(("until", bytes(answer.until, "\(field).until").map(ExpectedAnswer.Extent.delimiter)))
        }
        if let message = answer.message {
            let kind = ExpectedAnswer.MessageFormat(rawValue: message)
            extents.append(("message", kind.map(ExpectedAnswer.Extent.message)))
            if kind == nil {
                let kinds = ExpectedAnswer.MessageFormat.allCases.map(\.rawValue).joined(separator: ", ")
                found.wrong("\(field).message", "unknown value \"\(message)\"; one of \(kinds)")
            }
        }
        let isUnread = unread.touches(field)
        if extents.count > 1 {
            found.wrong("\(field).\(extents[1].key)", "the answer ends by \(extents[0].key) already")
        } else if extents.isEmpty, answer.bytes == nil || answer.contains != nil, !isUnread {
            let missing = "where the answer ends is not said: give length, until or message, or bytes for all of it"
            found.wrong("\(field).\(answer.bytes == nil && answer.contains == nil ? "bytes" : "contains")", missing)
        }
        guard found.all.count == before, !isUnread else { return nil }
        let start = beginning ?? BytePattern([])
        guard let extent = extents.first?.extent else { return ExpectedAnswer(start) }
        return ExpectedAnswer(extent, beginning: start, content: content ?? [])
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
