// SPDX-License-Identifier: Apache-2.0

/// Finds out whether it was the network that forgot a flow which died without a word.
///
/// Not every silence is the network's doing: a server that hangs is silent too, and so is one whose machine lost its
/// power, or a network that is down for everybody. The network is to blame where the keepalive's bytes were never
/// acknowledged, nobody reset the flow, and the very next dial over the same network reached the server at once.
///
/// One for each connection. A flow that is closed with a keepalive outstanding is told by ``suspect(_:at:)`` before the
/// event that its end makes, and every event by ``heard(_:on:at:)``.
package struct SilentLoss: Sendable {
    /// How soon after the loss the next flow must stand. Longer than the first wait of an ordinary back-off, a second
    /// or so, and a slow handshake behind it; shorter than a machine takes to start, or a router.
    static let window = Duration.seconds(15)

    /// A keepalive that stayed without acknowledgement.
    package struct Beat: Hashable, Sendable {
        /// How long the flow had carried nothing when it was sent.
        package let silence: Duration
        /// When it was sent.
        package let sentAt: Duration
        /// The network that it went through.
        package let network: NetworkIdentity

        /// A keepalive.
        package init(silence: Duration, sentAt: Duration, network: NetworkIdentity) {
            self.silence = silence
            self.sentAt = sentAt
            self.network = network
        }
    }

    private var suspect: (beat: Beat, since: Duration, isConfirmed: Bool)?

    /// Suspects nobody.
    package init() {}

    /// A flow is being closed, and this keepalive was not acknowledged.
    package mutating func suspect(_ beat: Beat, at now: Duration) { suspect = (beat, now, false) }

    /// Something happened to the connection.
    ///
    /// - Parameter network: the one that its flow goes through, where it has one.
    /// - Returns: the keepalive that found the flow forgotten, where this settles it.
    package mutating func heard(_ event: ConnectionEvent, on network: NetworkIdentity?, at now: Duration) -> Beat? {
        guard let (beat, since, isConfirmed) = suspect else { return nil }
        suspect = nil
        guard now - since <= Self.window, isConfirmed || [.unanswered, .flowFailed(.timedOut)].contains(event.reason)
        else { return nil }
        switch event.status.state {
        case .ready:
            return network == beat.network ? beat : nil
        case .resolving, .connecting, .securing:
            suspect = (beat, since, true)
        case .backingOff:
            // Its wait after the loss; another one is that of a dial which failed.
            if !isConfirmed { suspect = (beat, since, true) }
        case .waiting, .verifying, .failed, .closed:
            break
        }
        return nil
    }
}
