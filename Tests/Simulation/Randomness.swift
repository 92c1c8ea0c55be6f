// SPDX-License-Identifier: Apache-2.0

/// SplitMix64: eight bytes of state, the same numbers on every machine and toolchain, so that a seed replays.
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, not including, `bound`.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next() >> 1) % bound
    }

    /// True in `percent` of a hundred draws.
    mutating func chance(_ percent: Int) -> Bool {
        below(100) < percent
    }

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
