// SPDX-License-Identifier: Apache-2.0

/// What is counted of one connection, from its events: how often and how long it was down, what came of its dials, and
/// of the wakes of its client. A count is an addition, and nothing happens between two events.
///
/// An outage begins when the connection has no socket any more, or when the first attempt to get one failed or has to
/// wait for a path, and ends with the next socket. This is the one place that says so: the sums of `dialtone history`
/// and `dialtone timeline` are differences of these counts.
package struct ConnectionTotals: Hashable, Sendable {
    /// The wakes that ended with one means.
    package struct Wakes: Hashable, Sendable {
        /// Those that were acknowledged, and how long after they began.
        package var acknowledged = DurationHistogram()
        /// Those that were given up.
        package var failed = 0

        /// None.
        package init() {}
    }

    /// The outages, by what they began with.
    package var outages: [Cause: Int] = [:]
    /// The dials that failed, by what they failed of.
    package var failedDials: [Cause: Int] = [:]
    /// The dials that connected a socket.
    package var connectedDials = 0
    /// How long those took during which the connection was down.
    package var connectTime = DurationHistogram()
    /// The wakes, by the means of the last attempt; under `nil` those for which none was tried.
    package var wakes: [WakeMeans?: Wakes] = [:]
    /// The messages of its servers that were answered while its client slept. They are in no event.
    package var answeredMessages = 0
    /// How long it was down in the outages that are over.
    package var downBefore = Duration.zero
    /// When the outage under way began; `nil` while there is none.
    package var outageSince: Duration?
    /// Whether it had a socket when it was last heard of.
    package var isUp = false
    /// When the dial under way began. One that was given up for another one belongs to that one.
    private var dialSince: Duration?

    /// Nothing was counted yet.
    package init() {}

    /// How long it was down, the outage under way included.
    package func down(at now: Duration) -> Duration {
        downBefore + (outageSince.map { max(now - $0, .zero) } ?? .zero)
    }

    /// Something happened to the connection.
    ///
    /// - Returns: whether something is to be kept that was not before.
    package mutating func heard(_ event: ConnectionEvent) -> Bool {
        switch event.kind {
        case .stateChanged:
            let hasCounted = dialled(event)
            return stood(event) || hasCounted
        case .continued, .pathChanged: return stood(event)
        case .opened:
            // With a socket that a client brought.
            isUp = event.status.state.hasFlow
            return isUp
        case .moveFailed:
            failedDials[event.reason.cause, default: 0] += 1
            return true
        case .addressFailed, .attemptBegan, .policyChanged, .taken, .parked, .abandoned,
            .arrived, .certificateEnds, .sessionOpened, .openingFailed, .wake:
            return false
        }
    }

    /// Something happened to a wake.
    ///
    /// - Returns: as for ``heard(_:)-(ConnectionEvent)``.
    package mutating func heard(_ report: WakeReport) -> Bool {
        switch report.kind {
        case .acknowledged(let time): wakes[report.wake.means, default: .init()].acknowledged.add(time)
        case .failed: wakes[report.wake.means, default: .init()].failed += 1
        case .began, .joined, .attempted, .attemptFailed, .programEnded, .overran: return false
        }
        return true
    }

    private mutating func stood(_ event: ConnectionEvent) -> Bool {
        let status = event.status
        let wasUp = isUp
        isUp = status.state.hasFlow
        if isUp { return endOutage(at: status.turnedAt) || isUp != wasUp }
        if status.state == .closed { return endOutage(at: status.since) || isUp != wasUp }
        // A first dial that runs has not failed.
        guard outageSince == nil, wasUp || !status.state.isDialling else { return false }
        outages[event.reason.cause, default: 0] += 1
        outageSince = status.turnedAt
        return true
    }

    private mutating func endOutage(at end: Duration) -> Bool {
        guard let since = outageSince.take() else { return false }
        downBefore += max(end - since, .zero)
        return true
    }

    private mutating func dialled(_ event: ConnectionEvent) -> Bool {
        let (before, status) = (event.previousState, event.status)
        if status.state.isDialling {
            dialSince = dialSince ?? status.since
            return false
        }
        let began = dialSince.take()
        switch status.state {
        case .ready, .verifying:
            if before.isDialling, let began { connectTime.add(max(status.since - began, .zero)) }
            guard before.isDialling || before.hasFlow && event.reason.isNewFlow else { return false }
            connectedDials += 1
        case .waiting, .backingOff, .failed:
            // One that has no address to try fails before it is told of.
            guard before.isDialling || !before.hasFlow && event.reason.isOfDial else { return false }
            failedDials[event.reason.cause, default: 0] += 1
        case .resolving, .connecting, .securing, .closed: return false
        }
        return true
    }
}

extension ConnectionStatus.State {
    /// Whether a dial runs.
    fileprivate var isDialling: Bool {
        switch self {
        case .resolving, .connecting, .securing: true
        case .waiting, .ready, .verifying, .backingOff, .failed, .closed: false
        }
    }
}

extension StatusReason {
    /// Whether it says that another socket took the place of the one that stood.
    fileprivate var isNewFlow: Bool { [.connected, .replaced, .detoured].contains(cause) }

    /// Whether it says what a dial failed of.
    fileprivate var isOfDial: Bool {
        if case .dialFailed = self { return true }
        if case .resolutionFailed = self { return true }
        return false
    }
}
