// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Reachability

/// Counts the changes of the path to the network as such.
@AgentQueue
final class NetworkCount {
    /// What was counted.
    private(set) var totals: SavedNetworkTotals
    /// The path now; `nil` before it is known.
    private(set) var path: Path?
    private var observation: PathObservation?

    /// Goes on with what an earlier process counted.
    ///
    /// - Parameter continuity: where it is written down; `nil` where nothing outlives the process.
    init(of engine: NetworkState, _ continuity: Continuity?) {
        totals = continuity?.network ?? SavedNetworkTotals(since: .now())
        observation = engine.observe(.network(.any), isPassive: true) { [weak self] path, changes in
            guard let self else { return }
            self.path = path
            totals.heard(changes)
            if !changes.isEmpty || continuity?.network == nil { continuity?.write(totals) }
        }
    }
}
