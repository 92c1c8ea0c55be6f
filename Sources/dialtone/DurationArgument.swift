// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Platform

/// A duration on the command line: as in files (`5s`, `1h30m`), or plain seconds (`90`, `0.5`).
struct DurationArgument: ExpressibleByArgument {
    let duration: Duration

    init?(argument: String) {
        if let seconds = Double(argument), (0...1e9).contains(seconds) {
            duration = .milliseconds(Int(seconds * 1000))
        } else if let duration = Duration(configurationText: argument) {
            self.duration = duration
        } else {
            return nil
        }
    }
}
