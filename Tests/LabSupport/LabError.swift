// SPDX-License-Identifier: Apache-2.0

/// Why a step in the Lab did not work, with what a reader of the failure needs to repeat it by hand.
package enum LabError: Error, CustomStringConvertible {
    /// A command ended with a status other than zero, or by a signal.
    case commandFailed(command: String, exit: LabProcess.Exit, standardError: String)
    /// A process ended while a line of its output was waited for.
    case ended(command: String, exit: LabProcess.Exit, awaited: String, output: String)
    /// What was waited for did not happen in time.
    case timedOut(awaited: String, limit: Duration, state: String)
    /// A command printed something other than what its manual page says.
    case unexpectedOutput(command: String, output: String)
    /// A program is not there that `make test` builds.
    case notBuilt(program: String)

    /// What was tried and what came back.
    package var description: String {
        switch self {
        case .commandFailed(let command, let exit, let standardError):
            "`\(command)` \(exit): \(standardError)"
        case .ended(let command, let exit, let awaited, let output):
            "`\(command)` \(exit) before it printed \(awaited); it printed:\n\(output)"
        case .timedOut(let awaited, let limit, let state):
            "waited \(limit) in vain for \(awaited); at the end: \(state)"
        case .unexpectedOutput(let command, let output):
            "`\(command)` printed what the Lab does not understand: \(output)"
        case .notBuilt(let program):
            "there is no \(program); `make test` builds it"
        }
    }
}
