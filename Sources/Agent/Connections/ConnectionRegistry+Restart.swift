// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtonePersistence
internal import DialtoneVarlink

// From one process of the agent to the next.

extension ConnectionRegistry {
    /// What became of what an earlier process left.
    struct Resumption {
        /// How many connections go on, and how many of them with their flow.
        var connections = 0
        var flows = 0
        /// The connections that this version cannot go on with.
        var lost: [ConnectionKey] = []
        /// How many descriptors were left that nobody knows.
        var unclaimed = 0
    }

    /// Goes on with what an earlier process supervised. To be called once, before the first
    /// ``reconcile(with:)``.
    ///
    /// - Parameter wanted: what the configuration says now. What it says of a connection holds from the beginning,
    /// where
    ///   the flow serves it; where not, the flow goes on until the configuration is applied.
    func resume(_ wanted: [ConfiguredConnection]) -> Resumption {
        var resumption = Resumption()
        guard let continuity else { return resumption }
        let configured = Dictionary(wanted.map { ($0.key, $0) }) { first, _ in first }
        for kept in takeInherited() {
            guard let policy = Self.policy(of: kept, configured[kept.key]) else {
                resumption.lost.append(kept.key)
                continuity.write([.removed(kept.key)])
                continue
            }
            let connection = enterAgain(kept, wake: kept.isConfigured ? configured[kept.key]?.wake : nil)
            connection.resume(kept, policy, in: context)
            textChanged(of: connection, from: 0)
            resumption.connections += 1
            if connection.hasFlow { resumption.flows += 1 }
        }
        resumption.unclaimed = continuity.store.closeUnclaimed()
        return resumption
    }

    /// Ends this process's part: the next one goes on, if there is one. Subscribers are told nothing, since nothing has
    /// happened to the connections; that the agent is gone they see by their socket.
    ///
    /// - Returns: whether the connections are kept; where not, nothing was done.
    func stepDown() -> Bool {
        guard let continuity else { return false }
        for connection in visible(to: 0) {
            connection.stepDown()
            // What was counted since the last event.
            if connection.hasNewTotals { continuity.write([.totals(connection.key, connection.totals)]) }
        }
        return true
    }

    /// With what it goes on; `nil` where this version cannot.
    nonisolated static func policy(of kept: SavedConnection, _ configured: ConfiguredConnection?) -> ConnectionPolicy? {
        guard kept.isConfigured else {
            return ConnectionsAPI.Open.Parameters(json: kept.parameters).flatMap {
                try? ConnectionPolicy($0, user: kept.owner, redials: kept.redials)
            }
        }
        guard let remote = try? Remote(kept.remote) else { return nil }
        if let configured, configured.policy.remote == remote,
            configured.policy.mark == kept.mark, configured.policy.user == kept.user
        {
            return configured.policy
        }
        return ConnectionPolicy(remote: remote, mark: kept.mark, user: kept.user)
    }
}
