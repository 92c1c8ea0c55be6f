// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

extension Checker {
    /// What one dial has heard and tried.
    struct Dial {
        var candidates: [IPAddress: IPAddress?] = [:]
        /// The addresses of each answer, in its order.
        var answers: [[IPAddress]] = []
        var tried: Set<Endpoint> = []
        /// For which ends another uplink was looked for, for connects and for handshakes; those found and not tried.
        var searches: Set<Endpoint> = []
        var lateSearches: Set<Endpoint> = []
        var detours: [Endpoint: Detour] = [:]
        var lastStart: Duration?
        var isServiceRefused = false
        var begunAt = Duration.zero
        /// How long an attempt has, by the policy that the dial began with.
        var patience = Duration.zero
        /// Whether it may try another uplink, by that policy.
        var mayDetour = false
        /// What its addresses have failed of, and what its questions for addresses.
        var misses: [FlowFailure] = []
        /// The same over other uplinks, of which it counts only where there is nothing else.
        var detourMisses: [FlowFailure] = []
        var nameMisses: [ResolutionFailure] = []
    }

    /// What an attempt has failed of.
    func note(_ failure: FlowFailure, of epoch: UInt64) {
        if known.sockets[epoch]?.isDetour == true {
            dial?.detourMisses.append(failure)
        } else {
            dial?.misses.append(failure)
        }
    }
}

extension Checker.Dial {
    /// What its addresses failed of, by what tells most.
    var told: FlowFailure? {
        let misses = misses.isEmpty ? detourMisses : misses
        return misses.first { !$0.isLocal } ?? misses.last
    }
}
