// SPDX-License-Identifier: Apache-2.0

package import DialtoneCoalescing

/// A keepalive that the client makes itself: while its flow is parked, the client is woken for it at least once in each
/// timeout, earlier where that shares a wake with others, and has ten seconds.
///
/// The model is `setKeepAliveTimeout(_:handler:)` of iOS, where the timeout was 600 s or more. Here it may be shorter,
/// down to what the protocol's own keepalive would take.
package struct ClientHandler: Hashable, Sendable {
    /// How long the client has, from taking the flow to giving it back. Whoever exceeds it is reported and not killed:
    /// the flow stays watched. iOS's figure.
    package static let budget = Duration.seconds(10)

    /// What is meant where nothing is said: iOS's least.
    package static let usualTimeout = Duration.seconds(600)

    /// No handler is called more often than that: a client that must run twice a minute sleeps no more.
    private static let shortest = Duration.seconds(30)
    /// A day, in which anything that keeps state for an idle flow has forgotten it.
    private static let longest = Duration.seconds(86_400)

    /// How long the server, or what lies before it, waits for the client's word.
    package let timeout: Duration
    /// Whether a machine that sleeps is to be woken for it.
    package let wakesMachine: Bool

    /// A handler for a remote.
    ///
    /// - Throws: why a timeout makes no sense for it.
    package init(timeout: Duration, wakesMachine: Bool = false, for remote: Remote) throws(PolicyError) {
        self.init(timeout: timeout, wakesMachine: wakesMachine)
        try check(for: remote)
    }

    /// A handler with a timeout that was checked.
    init(timeout: Duration, wakesMachine: Bool = false) {
        self.timeout = timeout
        self.wakesMachine = wakesMachine
    }

    /// When it is called. Late enough to be worth it, and so early that the client is done within the timeout.
    package var cadence: Cadence {
        let interval = timeout - Self.budget
        return Cadence(interval: interval, tolerance: interval / 4)
    }

    /// The timeouts that make sense for a remote.
    package static func timeouts(for remote: Remote) -> ClosedRange<Duration> {
        let protocols = remote.scheme.heartbeat?.kind.figures.intervals.lowerBound ?? shortest
        return max(protocols, shortest)...longest
    }

    /// Throws where its timeout makes no sense for a remote; the reason is for the end of a sentence.
    func check(for remote: Remote) throws(PolicyError) {
        let range = Self.timeouts(for: remote)
        if timeout < range.lowerBound {
            throw PolicyError(
                field: "keepalive.interval",
                reason: "a client that runs each \(timeout) does not sleep: \(range.lowerBound) is the least for "
                    + "\(remote.scheme.rawValue), and the agent sends what is due more often by itself")
        }
        guard timeout > range.upperBound else { return }
        throw PolicyError(
            field: "keepalive.interval",
            reason: "nothing remembers an idle connection for \(timeout): \(range.upperBound) is the most")
    }
}
