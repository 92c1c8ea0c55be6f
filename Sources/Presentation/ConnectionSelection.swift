// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneVarlink

/// Which connections are shown, and in which order.
package struct ConnectionSelection: Sendable {
    /// By what they are sorted; the raw values are the words of the command line.
    package enum Order: String, Sendable, CaseIterable {
        /// By name, and of namesakes by owner.
        case name
        /// What is down first, then what has been so for the shortest time.
        case state
        /// What changed last between up and down first.
        case since
        /// By where they lead.
        case remote
    }

    private let onlyDown: Bool
    private let states: [ConnectionsAPI.State]
    private let owner: Int?
    private let order: Order?

    /// - Parameters:
    ///   - onlyDown: whether those are left out that have a socket that works.
    ///   - states: the states that are shown; none for all.
    ///   - owner: whose connections are shown; `nil` for everybody's.
    ///   - order: `nil` for as the agent lists them.
    package init(
        onlyDown: Bool = false, states: [ConnectionsAPI.State] = [], owner: Int? = nil, order: Order? = nil
    ) {
        self.onlyDown = onlyDown
        self.states = states
        self.owner = owner
        self.order = order
    }

    /// Those of `connections` that are meant.
    package func of(_ connections: [ConnectionsAPI.Connection]) -> [ConnectionsAPI.Connection] {
        let meant = connections.filter { connection in
            (!onlyDown || !connection.state.hasFlow) && (states.isEmpty || states.contains(connection.state))
                && (owner == nil || connection.owner == owner)
        }
        guard let order else { return meant }
        return meant.sorted { one, other in
            switch order {
            case .name: (one.name, one.owner ?? 0) < (other.name, other.owner ?? 0)
            case .remote: (one.remote, one.name) < (other.remote, other.name)
            case .since: one.turned > other.turned
            case .state:
                one.state.hasFlow == other.state.hasFlow ? one.turned > other.turned : other.state.hasFlow
            }
        }
    }
}

extension ConnectionsAPI.Connection {
    /// When it last came up or went down, in milliseconds.
    fileprivate var turned: Int64 { (upSince ?? downSince ?? since).milliseconds }
}
