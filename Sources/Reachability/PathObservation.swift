// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import DialtonePlatform

/// One observer of one path. Its handler runs on the agent's queue: first with the path as it is, then at each change.
@AgentQueue
package final class PathObservation {
    /// What the observer knows: the path it was last called with. `nil` until the first verdict.
    package private(set) var path: Path?

    private let handler: @AgentQueue (Path, [PathChange]) -> Void
    private var detach: (@AgentQueue () -> Void)?

    init(
        _ handler: @escaping @AgentQueue (Path, [PathChange]) -> Void, detach: @escaping @AgentQueue () -> Void
    ) {
        self.handler = handler
        self.detach = detach
    }

    /// Ends the observation. The handler is not called again.
    package func cancel() {
        detach?()
        detach = nil
    }

    /// Tells the observer of `path` if it differs in more than its generation from what it knows.
    func deliver(_ path: Path) {
        guard detach != nil else { return }
        let changes = self.path.map { path.changes(from: $0) }
        self.path = path
        if let changes {
            if !changes.isEmpty { handler(path, changes) }
        } else {
            handler(path, [])
        }
    }
}
