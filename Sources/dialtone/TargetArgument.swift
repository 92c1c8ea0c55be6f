// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import NetworkPath

/// A target on the command line.
struct TargetArgument: ExpressibleByArgument {
    /// As it was written.
    let text: String
    let target: Target

    init?(argument: String) {
        guard let target = Target(text: argument) else { return nil }
        text = argument
        self.target = target
    }
}
