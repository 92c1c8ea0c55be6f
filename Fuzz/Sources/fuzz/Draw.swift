// SPDX-License-Identifier: Apache-2.0

/// Draws values from bytes, and nothing but zeros from where they end: equal bytes make equal values, and bytes that
/// the fuzzer changes change few of them.
struct Draw: RandomNumberGenerator {
    private var rest: ArraySlice<UInt8>
    private var surplus: UInt64 = 0

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    /// Whether all bytes were used.
    var isOver: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// Past the end another number each time: whoever wants a part of the range draws until it gets one.
    mutating func next() -> UInt64 {
        guard isOver else { return (0..<8).reduce(0) { value, _ in value << 8 | UInt64(byte()) } }
        surplus &+= 0x9E37_79B9_7F4A_7C15
        return surplus
    }

    /// One of so many.
    mutating func below(_ count: Int) -> Int { Int(byte()) % count }

    mutating func chance() -> Bool { byte() & 1 == 1 }

    mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// `nil` for one half of the time.
    mutating func maybe<T>(_ make: (inout Draw) -> T) -> T? { chance() ? make(&self) : nil }

    /// Up to `most` values.
    mutating func several<T>(_ most: Int, _ make: (inout Draw) -> T) -> [T] {
        (0..<below(most + 1)).map { _ in make(&self) }
    }

    /// Up to 255 bytes, as they stand there.
    mutating func bytes() -> [UInt8] {
        let count = Int(byte())
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func text() -> String { bytes().text }

    /// A number: what is usual, what lies at an edge, or any.
    mutating func number() -> Int {
        switch byte() % 3 {
        case 0: Int(byte())
        case 1: pick(Self.edges)
        default: Int(truncatingIfNeeded: next())
        }
    }

    /// An amount of milliseconds, as a client gives it.
    mutating func milliseconds() -> Int { chance() ? number() : Int(byte()) * 1000 }

    mutating func duration() -> Duration { .milliseconds(milliseconds()) }

    mutating func fraction() -> Double {
        pick([0, 1, 2, 1.5, -1, 10, 11, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, .leastNonzeroMagnitude])
    }

    private static let edges: [Int] = [
        0, 1, -1, 999, 1000, 32_767, 32_768, 65_535, 65_536, Int(Int32.max), Int(Int32.min), Int(UInt32.max),
        Int(UInt32.max) + 1, .max, .min, .max - 1, .max / 1000, .max / 1000 + 1, .min / 1000 - 1, 86_400_000,
        8_640_000_000, 9_223_372_036_854, 9_223_372_036_855,
    ]
}
