// SPDX-License-Identifier: Apache-2.0

/// SplitMix64: eight bytes of state, the same numbers on every machine and toolchain, so that a seed replays.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// A generator that starts at `seed`.
    package init(seed: UInt64) {
        state = seed
    }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, not including, `bound`. Not `Int.random(in:using:)`, which may draw otherwise with the
    /// next standard library.
    package mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next() >> 1) % bound
    }

    /// True in `percent` of a hundred draws.
    package mutating func chance(_ percent: Int) -> Bool {
        below(100) < percent
    }

    /// Changes up to so many of the bytes, which are not none, often to what means something.
    package mutating func damage(_ bytes: inout [UInt8], upTo most: Int) {
        for _ in 0...below(most) {
            let telling: [UInt8] = [0, 1, 4, 0x7F, 0x80, 0xFF]
            bytes[below(bytes.count)] =
                chance(40) ? telling[below(telling.count)] : UInt8(truncatingIfNeeded: next())
        }
    }
}
