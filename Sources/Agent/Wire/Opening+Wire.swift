// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Connection
internal import DialtoneAPI
internal import FoundationEssentials
internal import Varlink

/// An opening exchange that a client left when it parked, and in which words, for the next process of the agent.
struct LeftOpening {
    /// The exchange.
    let opening: Opening
    /// As the client gave it: in JSON, for memory alone.
    let given: [UInt8]

    /// What a client leaves. Validated.
    init(_ steps: [ConnectionsAPI.OpeningStep]) throws(VarlinkFailure) {
        opening = try Opening(steps)
        given = (try? JSONEncoder().encode(steps)).map { Array($0) } ?? []
    }

    /// What a client left to an earlier process; `nil` for what this one cannot play.
    init?(given: [UInt8]) {
        let steps = try? JSONDecoder().decode([ConnectionsAPI.OpeningStep].self, from: Data(given))
        guard let steps, let opening = try? Opening(steps) else { return nil }
        (self.opening, self.given) = (opening, given)
    }
}

extension Opening {
    /// What a client leaves. Validated.
    init(_ wire: [ConnectionsAPI.OpeningStep]) throws(VarlinkFailure) {
        // Before each is looked at: a client may send thousands.
        guard wire.count <= Self.mostSteps else {
            throw Self.invalid("\(wire.count) steps are more than \(Self.mostSteps)")
        }
        var steps: [Step] = []
        for (index, step) in wire.enumerated() {
            do throws(OpeningTextError) {
                steps.append(try Step(step))
            } catch {
                throw Self.invalid("step \(index + 1), \(error.key): \(error.reason)")
            }
        }
        self.init(steps)
        if let problem { throw Self.invalid(problem) }
    }

    private static func invalid(_ reason: String) -> VarlinkFailure {
        VarlinkFailure(ConnectionsAPI.InvalidOpening(reason: reason))
    }
}

extension Opening.Step {
    fileprivate init(_ wire: ConnectionsAPI.OpeningStep) throws(OpeningTextError) {
        let send: [UInt8]
        let overtakers: [BytePattern]
        do throws(EscapeError) {
            send = try [UInt8](escapedText: wire.send ?? "")
        } catch {
            throw OpeningTextError(key: "send", reason: OpeningTextError.noEscape)
        }
        do throws(EscapeError) {
            overtakers = try (wire.overtakenBy ?? []).map { text throws(EscapeError) in
                try BytePattern(escapedText: text)
            }
        } catch {
            throw OpeningTextError(key: "overtakenBy", reason: OpeningTextError.noEscape)
        }
        let answer = try wire.expect.map { expect throws(OpeningTextError) in
            try ExpectedAnswer(
                bytes: expect.bytes, length: expect.length, until: expect.until, message: expect.message,
                contains: expect.contains)
        }
        self.init(send: send, answer: answer, overtakers: overtakers)
    }
}
