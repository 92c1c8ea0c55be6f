// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection

/// Makes of what a user says the messages that are answered while a connection is parked. What a custom one holds is in
/// no message.
package struct AnswersCheck {
    /// All that is wrong.
    package var problems: [SettingsProblem] { found.all }
    private(set) var found = SettingsProblems()
    /// What is answered; `nil` where something is wrong.
    package private(set) var answers: AnsweredMessages?
    private let unread: UnreadFields

    /// What is answered, as users name it.
    private enum Method: String, CaseIterable {
        /// Pings (RFC 6455, section 5.5.2).
        case websocket
        /// Requests for an acknowledgement (XEP-0198), and blanks.
        case xmpp
        /// What the user says.
        case custom
    }

    /// Checks what is to be answered.
    ///
    /// - Parameter unread: what stands in the file of the settings and could not be read, which was told.
    package init(_ messages: [ConnectionsAPI.AnsweredMessage], unread: UnreadFields = UnreadFields()) {
        self.unread = unread
        // Before each is looked at: a client may send thousands.
        guard messages.count <= AnsweredMessages.most else {
            found.wrong("answers", "\(messages.count) messages are more than \(AnsweredMessages.most)")
            return
        }
        var read: [AnsweredMessage] = []
        for (index, message) in messages.enumerated() {
            if let message = self.message(message, "answers[\(index)]") { read.append(message) }
        }
        guard found.all.isEmpty, !unread.touches("answers") else { return }
        let answers = AnsweredMessages(read)
        if let problem = answers.problem {
            found.wrong("answers[\(problem.index)].\(problem.field)", problem.reason)
        } else {
            self.answers = answers
        }
    }

    private mutating func message(_ message: ConnectionsAPI.AnsweredMessage, _ field: String) -> AnsweredMessage? {
        guard let method = Method(rawValue: message.protocol) else {
            found.wrong(
                "\(field).protocol", unknownValue(message.protocol, among: Method.allCases.map(\.rawValue)))
            return nil
        }
        let isCustom = method == .custom
        for (key, isThere, isItsOwn) in [
            ("receive", message.receive != nil, isCustom), ("send", message.send != nil, isCustom),
            ("handled", message.handled != nil, method == .xmpp),
        ] where isThere && !isItsOwn {
            found.wrong("\(field).\(key)", "not for protocol = \"\(method.rawValue)\"")
            return nil
        }
        switch method {
        case .websocket: return .websocket
        case .xmpp: return xmpp(message.handled, "\(field).handled")
        case .custom: return custom(message, field)
        }
    }

    /// The count has 32 bits, and starts again at 0 after the last (XEP-0198, section 4).
    private mutating func xmpp(_ handled: Int?, _ field: String) -> AnsweredMessage? {
        guard let handled else { return .xmpp(handled: nil) }
        if let count = UInt32(exactly: handled) { return .xmpp(handled: count) }
        found.wrong(field, "\(handled) is not from 0 to \(UInt32.max)")
        return nil
    }

    private mutating func custom(_ message: ConnectionsAPI.AnsweredMessage, _ field: String) -> AnsweredMessage? {
        guard let text = message.receive else {
            if !unread.mayContain("\(field).receive") { found.wrong("\(field).receive", "missing") }
            return nil
        }
        guard let receive = try? BytePattern(escapedText: text) else {
            found.wrong("\(field).receive", OpeningCheck.noEscape)
            return nil
        }
        guard let send = try? [UInt8](escapedText: message.send ?? "") else {
            found.wrong("\(field).send", OpeningCheck.noEscape)
            return nil
        }
        return .custom(receive: receive, send: send)
    }
}
