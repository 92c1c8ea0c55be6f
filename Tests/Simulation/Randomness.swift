// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport

extension SplitMix64 {
    mutating func pick<T>(_ choices: [T]) -> T {
        choices[below(choices.count)]
    }

    /// A duration of any order of magnitude: nothing, milliseconds, seconds, minutes.
    mutating func pause() -> Duration {
        switch below(10) {
        case 0: .zero
        case 1, 2: .milliseconds(below(1000))
        case 3, 4, 5: .milliseconds(below(10_000))
        case 6, 7: .seconds(below(120))
        case 8: .seconds(below(600))
        default: .seconds(below(7200))
        }
    }
}
