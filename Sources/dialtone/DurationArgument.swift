// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtonePlatform

/// A duration on the command line: as in files (`5s`, `1h30m`), or plain seconds (`90`, `0.5`).
struct DurationArgument: ExpressibleByArgument {
    let duration: Duration

    /// Throws where it is longer than `longest`, of an option of this name. Checked here, since what is longer may not
    /// even be a number of milliseconds; what the daemon finds too short or too long for the kernel or a protocol, it
    /// says itself.
    func check(_ option: String, atMost longest: Duration) throws {
        guard duration > longest else { return }
        throw ValidationError(
            "\(option) \(duration.configurationText) is out of range: give 0s to \(longest.configurationText)")
    }

    init?(argument: String) {
        if let seconds = Double(argument), (0...1e9).contains(seconds) {
            duration = .toTheMillisecond(seconds: seconds)
        } else if let duration = Duration(configurationText: argument) {
            self.duration = duration
        } else {
            return nil
        }
    }
}

extension Duration {
    /// Seconds to the millisecond: `.seconds` of 1.001 is less than that.
    static func toTheMillisecond(seconds: Double) -> Duration { .milliseconds((seconds * 1000).rounded()) }
}
