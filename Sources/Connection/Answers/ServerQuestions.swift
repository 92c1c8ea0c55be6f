// SPDX-License-Identifier: Apache-2.0

/// The server's messages that the agent answers on one parked flow: which of the unread bytes are one, and what is
/// said.
///
/// ## Run loop
///
/// One for each stay of a flow with the agent, which begins between two messages of the server's: its client says so by
/// parking, or the opening has read the last answer.
///
/// 1. ``peeked(_:at:)`` judges what is unread, all of it from the first byte on. A message is answered only if it
///    stands first, is whole and is exactly one of those that were asked for.
/// 2. The driver writes the reply, and then reads the message and says ``answered(at:)``. While there is no room to
///    write, it says ``waits(at:)``.
/// 3. After the first message that is the client's, all are, until the client parks the flow again.
package struct ServerQuestions: Sendable {
    /// The most messages that are answered in ``window``. A server or a proxy asks each 20 to 60 seconds (PyPI's
    /// `websockets` by default each 20 s, nginx gives up an idle connection after 60 s), and an XMPP server behind each
    /// burst of stanzas, which wake the client. Twenty are six times as many as the busiest of these, and cost no
    /// machine its sleep. What asks more often is out of order or means harm, and is not answered unseen: the client
    /// is woken and judges.
    package static let most = 20
    /// In how long.
    package static let window = Duration.seconds(60)
    /// How long a message may take to come whole, or the reply to find room: as an answer to a keepalive.
    static let patience = KeepaliveFigures.answerDeadline

    /// What unread bytes are.
    enum Judgement {
        /// The first so many are a message with this reply.
        case message(length: Int, AnsweredMessage.Reply)
        /// They may become one: to be judged again when there are more, and at this time at the latest.
        case undecided(until: Duration)
        /// The client's.
        case forClient
    }

    private let answered: AnsweredMessages
    /// When those were answered that lie in the window.
    private var recent: [Duration] = []
    /// Since when what stands first is not whole, or waits for room.
    private var waitingSince: Duration?
    /// Whether nothing more is answered.
    private(set) var areOver = false

    /// Questions of which none has come.
    package init(_ answered: AnsweredMessages) { self.answered = answered }

    /// Judges the unread bytes of the flow, at least one.
    mutating func peeked(_ unread: ArraySlice<UInt8>, at now: Duration) -> Judgement {
        if areOver { return .forClient }
        var mayBecomeOne = false
        for message in answered.messages {
            switch message.match(unread) {
            case .whole(let length, let reply):
                recent.removeAll { $0 <= now - Self.window }
                guard recent.count < Self.most else { return leave() }
                return .message(length: length, reply)
            case .beginning: mayBecomeOne = true
            case .mismatch: break
            }
        }
        guard mayBecomeOne, let end = waits(at: now) else { return leave() }
        return .undecided(until: end)
    }

    /// What stands first cannot be answered yet.
    ///
    /// - Returns: until when it is waited for that; `nil` where that is over, and all is the client's.
    mutating func waits(at now: Duration) -> Duration? {
        let since = waitingSince ?? now
        waitingSince = since
        let end = since + Self.patience
        if now < end { return end }
        areOver = true
        return nil
    }

    /// The message that was found last was answered and read.
    mutating func answered(at now: Duration) {
        recent.append(now)
        waitingSince = nil
    }

    private mutating func leave() -> Judgement {
        areOver = true
        return .forClient
    }
}
