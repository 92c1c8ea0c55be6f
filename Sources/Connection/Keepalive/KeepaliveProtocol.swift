// SPDX-License-Identifier: Apache-2.0

package import DialtoneCoalescing

/// How a flow is kept alive: what is sent, how often, and what the server owes in return.
package enum KeepaliveProtocol: Hashable, Sendable {
    /// The kernel's own probes (``KeepalivePolicy``): no byte of the stream, and no wake of the process.
    case kernel
    /// SIP: a double CRLF, which a single CRLF answers (RFC 5626, sections 3.5.1 and 4.4.1).
    case crlf
    /// XMPP: a blank between stanzas (RFC 6120, section 4.6.1). Nothing of the protocol answers it.
    case whitespace
    /// XMPP: a ping to the server, answered by a result or an error with the same id (XEP-0199, section 4.2).
    case xmppPing
    /// MQTT: PINGREQ, answered by PINGRESP (MQTT 3.1.1 and 5.0, sections 3.12 and 3.13 of either).
    case mqtt
    /// WebSocket: a Ping frame, answered by a Pong with the same payload (RFC 6455, sections 5.5.2 and 5.5.3).
    case websocket
    /// What the user says: these bytes, and the bytes that answer them. Empty `expect`: nothing answers.
    case custom(send: [UInt8], expect: [UInt8])
}

/// What proves that a keepalive has reached the server.
package enum KeepaliveAnswer: Hashable, Sendable {
    /// The protocol's answer, which stands in the stream.
    case message
    /// Nothing in the stream; the server's kernel acknowledges the bytes, so that nothing is left in the send queue
    /// (`SIOCOUTQ`). It proves the machine, not the program.
    case acknowledgement
}

/// The figures of a keepalive, and where they come from.
package struct KeepaliveFigures: Hashable, Sendable {
    /// How often, by default.
    package let cadence: Cadence
    /// The intervals that a user or a network may choose.
    package let intervals: ClosedRange<Duration>
    /// How long the answer may take.
    package internal(set) var answerDeadline: Duration
    /// What proves that it arrived.
    package let answer: KeepaliveAnswer
    /// Whether a server that does not answer is dead although it never answered one before. Only where the protocol
    /// obliges every server to answer; otherwise one answer must have been seen first.
    package let isAnswerMandatory: Bool

    /// Figures.
    init(
        _ interval: Duration, tolerance: Duration, within intervals: ClosedRange<Duration>,
        answer: KeepaliveAnswer = .message, isAnswerMandatory: Bool = false
    ) {
        cadence = Cadence(interval: interval, tolerance: tolerance)
        self.intervals = intervals
        self.answer = answer
        self.isAnswerMandatory = isAnswerMandatory
        answerDeadline = Self.answerDeadline
    }

    /// What RFC 5626, section 4.4.1, gives a SIP server. Nobody else names a figure, and this one is long enough for a
    /// cellular radio that has to wake up at both ends.
    static let answerDeadline = Duration.seconds(10)
}

extension KeepaliveProtocol {
    /// The most bytes that a custom keepalive sends, and that answer it. One that fills segments is none, and an answer
    /// longer than what a dialogue holds would not be found.
    package static let longestCustom = 1024

    /// The figures of the protocol.
    package var figures: KeepaliveFigures {
        switch self {
        case .kernel:
            // As `KeepalivePolicy`; here for whoever shows it. The limits are the kernel's.
            KeepaliveFigures(
                .seconds(120), tolerance: .zero, within: .seconds(1)...(.seconds(32_767)), answer: .acknowledgement)
        case .crlf:
            // RFC 5626, section 4.4.1: on TCP without a Flow-Timer from 95 to 120 s. A shorter interval is allowed to
            // whoever's NAT needs it; below 30 s, the figure for UDP there, it is no TCP keepalive any more.
            KeepaliveFigures(.seconds(120), tolerance: .seconds(25), within: .seconds(30)...(.seconds(1800)))
        case .whitespace:
            // Home routers commonly drop an idle TCP flow after 300 s, although RFC 5382 (REQ-5) asks for two hours.
            KeepaliveFigures(
                .seconds(240), tolerance: .seconds(60), within: .seconds(30)...(.seconds(3600)),
                answer: .acknowledgement)
        case .xmppPing:
            // XEP-0199, section 4: who does not support it answers with an error, so every server answers.
            KeepaliveFigures(
                .seconds(240), tolerance: .seconds(60), within: .seconds(30)...(.seconds(3600)),
                isAnswerMandatory: true)
        case .mqtt:
            // The client's word in CONNECT binds it (section 3.1.2.10), and 60 s is what most clients say there; see
            // `KeepaliveFigures.mqtt(keepAlive:)`. A server must answer (section 3.12.4).
            KeepaliveFigures.mqtt(keepAlive: .seconds(60))
        case .websocket:
            // No figure in RFC 6455; common proxies close after 60 s of silence. A peer must answer (section 5.5.2).
            KeepaliveFigures(
                .seconds(50), tolerance: .seconds(20), within: .seconds(10)...(.seconds(3600)),
                isAnswerMandatory: true)
        case .custom(_, let expect):
            KeepaliveFigures(
                .seconds(120), tolerance: .seconds(25), within: .seconds(10)...(.seconds(3600)),
                answer: expect.isEmpty ? .acknowledgement : .message)
        }
    }

    /// The intervals that a user may choose: the protocol's, and up to what an opening promises the server where that
    /// is longer.
    package func intervals(under opening: Opening?) -> ClosedRange<Duration> {
        let usual = figures.intervals
        guard self == .mqtt, let promise = opening?.promisedKeepAlive else { return usual }
        let longest = KeepaliveFigures.mqtt(keepAlive: promise).intervals.upperBound
        return usual.lowerBound...max(usual.upperBound, longest)
    }

    /// Whether a server takes it only from a client that has logged in, or at least shaken hands.
    ///
    /// SIP's belongs to the flow and not to a registration (RFC 5626, section 4.4.1); of what a user made up we are
    /// told that it is right.
    package var needsSession: Bool {
        switch self {
        case .kernel, .crlf, .custom: false
        case .whitespace, .xmppPing, .mqtt, .websocket: true
        }
    }
}

extension KeepaliveFigures {
    /// MQTT with the Keep Alive of the CONNECT, or the Server Keep Alive of MQTT 5's CONNACK.
    ///
    /// The client must send something within it; the server closes after 1.5 of it (section 3.1.2.10). The longest
    /// interval is 95 % of it and not the limit, which is for what a radio delays.
    package static func mqtt(keepAlive: Duration) -> KeepaliveFigures {
        let longest = max(keepAlive * 95 / 100, .seconds(1))
        return KeepaliveFigures(
            longest, tolerance: longest / 4, within: min(longest, .seconds(10))...longest, isAnswerMandatory: true)
    }
}
