// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneVarlink

/// An opening exchange that a client left when it parked, and in which words, for the next process of the agent.
struct LeftOpening {
    /// The exchange.
    let opening: Opening
    /// As the client gave it: in JSON, for memory alone.
    let given: [UInt8]

    /// What a client leaves. Validated.
    init(_ steps: [ConnectionsAPI.OpeningStep]) throws(VarlinkFailure) {
        opening = try Opening(steps)
        given = steps.json
    }

    /// What a client left to an earlier process; `nil` for what this one cannot play.
    init?(given: [UInt8]) {
        guard let steps = [ConnectionsAPI.OpeningStep](json: given), let opening = try? Opening(steps) else {
            return nil
        }
        (self.opening, self.given) = (opening, given)
    }
}

extension Opening {
    /// What a client leaves. Validated.
    init(_ wire: [ConnectionsAPI.OpeningStep]) throws(VarlinkFailure) {
        let check = OpeningCheck(wire)
        guard let opening = check.opening else { throw VarlinkFailure(check.problems) }
        self = opening
    }
}
