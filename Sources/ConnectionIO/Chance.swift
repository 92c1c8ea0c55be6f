// SPDX-License-Identifier: Apache-2.0

/// The system's random numbers.
///
/// Not empty, as the standard library's generator is: ThreadSanitizer looks at the address of what is passed `inout`,
/// and a value of an empty type has none.
struct Chance: RandomNumberGenerator {
    private var drawn: UInt64 = 0

    mutating func next() -> UInt64 {
        var system = SystemRandomNumberGenerator()
        drawn = system.next()
        return drawn
    }
}
