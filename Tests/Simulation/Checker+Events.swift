// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

extension Checker {
    /// Takes note of what is told, and checks that it follows what was told before.
    func noteEvent(_ event: ConnectionEvent, _ now: Duration) throws {
        let says = { (text: String) in "\(text) in \(event)" }
        if let last = lastEvent {
            let since = last.status.since
            try require(event.previousState == last.status.state, .eventsTellTheStatus, says("gap"))
            try require(event.previousDuration == now - since, .eventsTellTheStatus, says("duration"))
            let stays = event.kind != .stateChanged
            try require(event.status.since == (stays ? since : now), .eventsTellTheStatus, says("since"))
            try require(!stays || event.status.state == last.status.state, .eventsTellTheStatus, says("state"))
        } else {
            // One that is not dialled again may have ended with the earlier run of the agent.
            let isOver = event.status.state == .closed && !known.policy.redials
            let isFirst = event.kind == .opened || event.kind == .continued
            try require(isFirst || isOver, .eventsTellTheStatus, says("not opened first"))
        }
        seen.states.insert(event.status.state)
        seen.kinds.insert(event.kind)
        events += 1
        lastEvent = event
    }
}
