// SPDX-License-Identifier: Apache-2.0

/// The opening exchange of a connection: what a client says to its server on each new flow to log in, and what the
/// server answers, left to the agent so that the client can sleep while flows come and go.
///
/// Everything in it is fixed beforehand: it suits logins that say the same each time (MQTT's CONNECT, a token over a
/// WebSocket, SASL PLAIN over TLS), and none that compute something of what the server said.
///
/// It holds secrets. They are kept in memory alone, and no description of it shows a byte of them.
package struct Opening: Hashable, Sendable {
    /// One thing to say, and the answer that it has.
    package struct Step: Hashable, Sendable {
        /// What is sent; empty where the server speaks first.
        package let send: [UInt8]
        /// How the answer is recognized; `nil` where there is none, and the next step follows at once.
        package let answer: ExpectedAnswer?
        /// How messages for the client begin that may come before the answer: where one does, the session stands, and
        /// from there on all is the client's, the answer behind it included. Of the last step alone.
        ///
        /// An MQTT server that kept a session sends what has come meanwhile right after its CONNACK, and the SUBACK
        /// behind that (MQTT 3.1.1, sections 4.4 and 3.8.4).
        package let overtakers: [BytePattern]

        /// A step.
        package init(send: [UInt8] = [], answer: ExpectedAnswer?, overtakers: [BytePattern] = []) {
            self.send = send
            self.answer = answer
            self.overtakers = overtakers
        }

        fileprivate var size: Int {
            send.count + (answer?.size ?? 0) + overtakers.reduce(0) { $0 + $1.count }
        }
    }

    /// The most steps. XMPP takes five, with its stream opened twice.
    package static let mostSteps = 16
    /// The most bytes of all of its steps. The largest thing in a login is a token, of some KiB.
    package static let largestSize = 32 * 1024
    /// How long an answer may take: what a keepalive's may (RFC 5626, section 4.4.1), the server's arithmetic with a
    /// password included.
    package static let answerDeadline = Duration.seconds(10)
    /// How long the whole exchange may take: what clients of MQTT give a connect by default (Paho's 30 s).
    package static let deadline = Duration.seconds(30)

    /// In their order; empty for an opening that is none.
    package let steps: [Step]

    /// An opening of these steps.
    package init(_ steps: [Step]) { self.steps = steps }

    /// The number, from 1, of the first step from `index` on that has an answer; the last one's where none has.
    func stepAwaited(from index: Int) -> Int {
        (steps[index...].firstIndex { $0.answer != nil } ?? steps.count - 1) + 1
    }

    /// What is wrong with it; `nil` if nothing is.
    package var problem: String? {
        if steps.isEmpty { return nil }
        guard steps.count <= Self.mostSteps else { return "\(steps.count) steps are more than \(Self.mostSteps)" }
        let size = steps.reduce(0) { $0 + $1.size }
        guard size <= Self.largestSize else { return "\(size) bytes are more than \(Self.largestSize)" }
        for (index, step) in steps.enumerated() {
            if let problem = Self.problem(of: step, isLast: index == steps.count - 1) {
                return "step \(index + 1) \(problem)"
            }
        }
        // Nobody would know whether the server took it.
        return steps.contains { $0.answer != nil } ? nil : "no step expects an answer"
    }

    private static func problem(of step: Step, isLast: Bool) -> String? {
        guard let answer = step.answer else {
            if step.send.isEmpty { return "neither sends nor expects anything" }
            return step.overtakers.isEmpty ? nil : "has an answer overtaken that it does not expect"
        }
        if let problem = answer.problem { return "expects what \(problem)" }
        if !step.overtakers.isEmpty, !isLast { return "has its answer overtaken, which only the last one may" }
        return step.overtakers.allSatisfy { $0.count > 0 } ? nil : "has its answer overtaken by anything"
    }
}

extension Opening: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is.
    package var description: String { "an opening of \(steps.count) steps" }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["steps": steps.count]) }
}

extension Opening.Step: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is, and the kind of its answer.
    package var description: String { "sends \(send.count) bytes, expects \(answer?.description ?? "nothing")" }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["step": description]) }
}

/// Why an opening exchange did not come about, and where.
package struct OpeningFailure: Error, Hashable, Sendable {
    /// What went wrong.
    package enum Cause: Hashable, Sendable, CaseIterable {
        /// The server said something else.
        case mismatch
        /// What it said had no end.
        case tooLong
        /// It did not answer in time.
        case timedOut
        /// It ended the flow, or the flow broke.
        case ended

        /// Whether the server said something, by which it refuses the login; otherwise it, or the line, was out of
        /// order, and what is said at another time may be heard.
        var isRefusal: Bool {
            switch self {
            case .mismatch, .tooLong: true
            case .timedOut, .ended: false
            }
        }
    }

    /// The step, from 1.
    package let step: Int
    /// What went wrong in it.
    package let cause: Cause
    /// What the server refused by, where its protocol has a code or a word for that.
    package let refusal: LoginRefusal?

    /// A failure.
    package init(step: Int, cause: Cause, refusal: LoginRefusal? = nil) {
        self.step = step
        self.cause = cause
        self.refusal = refusal
    }

    /// Whether the same login will be refused again.
    var isLasting: Bool { cause.isRefusal && refusal?.mayPass != true }
}

extension OpeningFailure: CustomStringConvertible {
    /// In the words of the status line.
    package var description: String {
        switch cause {
        case .mismatch:
            refusal.map { "the server refused step \(step) of the opening: \($0.text)" }
                ?? "the server answered step \(step) of the opening otherwise than expected"
        case .tooLong: "the server's answer to step \(step) of the opening had no end"
        case .timedOut: "the server did not answer step \(step) of the opening in time"
        case .ended: "the socket ended in step \(step) of the opening"
        }
    }
}
