// SPDX-License-Identifier: Apache-2.0

/// A pause that is twice as long each time, until what it is for goes well.
struct GrowingPause {
    /// The first one.
    static let first = Duration.seconds(1)
    /// The longest one.
    static let longest = Duration.seconds(300)

    private var length = GrowingPause.first

    /// How long to wait now.
    mutating func next() -> Duration {
        defer { length = min(length * 2, Self.longest) }
        return length
    }

    /// It went well.
    mutating func reset() { length = Self.first }
}
