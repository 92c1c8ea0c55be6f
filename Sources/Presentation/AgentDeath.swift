// SPDX-License-Identifier: Apache-2.0

/// How a run of the agent ended that did not say that it did. Nobody knows when.
enum AgentDeath: String {
    case killed = "the agent was killed or crashed"
    case machineOff = "the machine went off"

    /// - Parameters:
    ///   - uptime: how long the machine had been up when the next run began, its sleep included.
    ///   - last: the same of the last that was heard of the run.
    init(before uptime: Duration?, after last: Duration?) {
        self = if let uptime, let last, uptime < last { .machineOff } else { .killed }
    }
}
