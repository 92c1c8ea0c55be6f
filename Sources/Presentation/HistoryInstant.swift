// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

/// An instant of the history, by both clocks.
struct HistoryInstant: Sendable {
    /// What the wall clock showed, which somebody may have set since: a machine without a clock of its own learns the
    /// time when the network is there.
    let wall: Timestamp
    /// How long the machine had been up, its sleep included.
    let uptime: Duration?
    /// Which run of the agent it belongs to.
    let run: Int

    /// The time from an earlier one. Within a run no setting of the wall clock shows; from one run to the next the
    /// machine may have been off.
    func duration(since earlier: HistoryInstant) -> Duration {
        if run == earlier.run, let uptime, let before = earlier.uptime { return max(uptime - before, .zero) }
        return max(wall - earlier.wall, .zero)
    }
}
