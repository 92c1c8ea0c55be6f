// SPDX-License-Identifier: Apache-2.0

/// Learns how long a connection's server lets a flow be silent before it ends it.
///
/// Servers and the proxies before them end idle flows after a time of their own, a minute or two by default. What a
/// network bears is of no use beyond that. A flow that the remote ended in a silence longer than the protocol's usual
/// interval is therefore held against longer ones, though it may have been a restart; in a shorter silence it is one
/// until it comes again after the same time.
///
/// One for each connection, and not kept: it costs a flow or two to learn again.
package struct ServerPatience: Hashable, Sendable {
    /// Two endings after silences that differ by no more than this are the same timer's.
    private static let likeness = 0.1
    /// The part of such a silence that is stayed below.
    private static let margin = 0.9
    /// After so many acknowledged keepalives a longer silence is tried again.
    private static let forbearance = 200

    /// The longest silence to be kept; `nil` where nothing is known.
    package private(set) var limit: Duration?
    private var lastEnding: Duration?
    private var beats = 0

    /// Knows nothing yet.
    package init() {}

    /// A keepalive was acknowledged.
    package mutating func survived() {
        beats += 1
        if beats >= Self.forbearance { self = ServerPatience() }
    }

    /// The remote ended or reset a flow that had carried nothing for so long.
    ///
    /// - Parameter usual: the protocol's own interval.
    package mutating func ended(after silence: Duration, usual: Duration) {
        // Half of the usual interval is no silence that a server ends flows for, or its keepalive would be shorter.
        guard silence >= usual / 2 else { return }
        beats = 0
        defer { lastEnding = silence }
        if silence > usual {
            limit = min(limit ?? usual, usual)
        } else if let lastEnding, abs(lastEnding / silence - 1) <= Self.likeness {
            limit = min(limit ?? usual, silence * Self.margin)
        }
    }
}
