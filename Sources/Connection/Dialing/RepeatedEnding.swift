// SPDX-License-Identifier: Apache-2.0

/// Notices a server that ends each flow at the same short age.
///
/// A server that expects a login waits some time for it and then ends the flow: mosquitto after 90 s, Prosody after
/// 300 s (`c2s_timeout`). Such a flow lasts long enough to be stable, so by its age alone the connection looks healthy
/// for ever.
package struct RepeatedEnding: Hashable, Sendable {
    /// What there is to say of it.
    package struct Report: Hashable, Sendable {
        /// How many flows in a row it was.
        package let times: Int
        /// The age of the last of them.
        package let age: Duration
        /// Whether the server broke them instead of closing them.
        package let isReset: Bool
        /// Whether nobody was logged in on the last one.
        package let lacksLogin: Bool
    }

    /// Two ages that differ by no more than this are the same timer's; as ``ServerPatience`` has it.
    private static let likeness = 0.1
    /// A server that ends flows at a greater age does it to all of its clients, and they live with it: twice what the
    /// slowest of those that wait for a login take.
    private static let longestAge = Duration.seconds(600)

    /// How many flows in a row the server has ended at this age.
    private(set) var times = 0
    private var age = Duration.zero

    /// The server ended a flow.
    mutating func ended(at age: Duration) {
        guard age <= Self.longestAge else { return self = RepeatedEnding() }
        times = isLike(age) ? times + 1 : 1
        self.age = age
    }

    /// Whether a flow of this age was, or would be, one of those.
    func isOne(at age: Duration) -> Bool { times > 1 && age <= self.age * (1 + Self.likeness) }

    private func isLike(_ other: Duration) -> Bool {
        times > 0 && abs(other / age - 1) <= Self.likeness
    }
}
