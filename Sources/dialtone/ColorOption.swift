// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Synchronization

/// Whether what a command writes for people is in colour.
struct ColorOption: ParsableArguments {
    /// When it is; the raw values are the words of the command line.
    enum Choice: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// On a terminal, unless `NO_COLOR` is set.
        case auto
        case always, never
    }

    /// What was asked for. There is one standard output, and it is written to from everywhere.
    static let chosen = Mutex(Choice.auto)

    @Option(help: "When to write in colour: auto (on a terminal, unless NO_COLOR is set), always or never.")
    var color = Choice.auto

    func validate() throws {
        let choice = color
        Self.chosen.withLock { $0 = choice }
    }
}
