// SPDX-License-Identifier: Apache-2.0

/// Whether the name servers answer, by what questions showed that were asked anyway. No clock, no timer.
///
/// They are presumed to, until a question ends without a single packet from any of them. From then on they do not,
/// until one answers, or the way to them is another. A question of our own is asked again only after such a failure,
/// at doubling intervals, and only ``mostRechecks`` times: a server that was restarted is found within seconds, and one
/// that was away for some minutes soon after. For one that is away for good nothing more is sent and nobody woken; it
/// is found by the next question that somebody has, or by the next change of the network.
struct NameServerHealth {
    /// The wait before the first question of our own.
    static let firstRecheck = Duration.seconds(1)
    /// Nine waits, from one second doubled to 256, are eight and a half minutes.
    static let mostRechecks = 9

    /// Whether they answer, as far as is known.
    private(set) var isAnswering = true
    private var rechecks = 0

    /// A name server answered. Returns whether that is news.
    mutating func answered() -> Bool {
        defer { self = NameServerHealth() }
        return !isAnswering
    }

    /// No name server did. Returns whether that is news, and in how long to ask again; `nil` for not any more.
    mutating func silent() -> (isNews: Bool, recheck: Duration?) {
        defer { isAnswering = false }
        guard rechecks < Self.mostRechecks else { return (isAnswering, nil) }
        defer { rechecks += 1 }
        return (isAnswering, Self.firstRecheck * (1 << rechecks))
    }
}
