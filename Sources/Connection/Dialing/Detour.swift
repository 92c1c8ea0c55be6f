// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

// A gateway can answer while nothing behind it does. When the server does not answer over the kernel's route, a dial
// also tries another uplink. Later dials test the kernel's route, and the connection goes back when one succeeds.

/// A route to the server over another interface than the kernel's.
package struct Detour: Hashable, Sendable {
    /// The interface's index.
    package let interfaceIndex: Int
    /// The interface's name.
    package let interface: String
    /// The source address there.
    package let source: IPAddress

    /// A detour by `path`; `nil` where that leads nowhere.
    package init?(_ path: Path) {
        guard path.status == .satisfied, let interface = path.interface, let source = path.source else { return nil }
        (interfaceIndex, self.interface, self.source) = (interface.index, interface.name, source)
    }
}

extension ConnectionStateMachine {
    /// How long a flow uses another uplink before a dial tests the kernel's route: 30 to 60 s, twice as long after each
    /// failure, half an hour at most. A test is a few packets.
    static let trials = BackoffPolicy(
        base: .seconds(60), multiplier: 2, ceiling: .seconds(1800), jitter: .half)

    /// How long a flow must last over a silent way before that way counts as good again: twice the longest pause
    /// between two tests.
    static let probation = trials.ceiling * 2

    /// How long a dial over `path` waits before it also tries another uplink; `nil` if it tries none.
    func patience(with path: Path) -> Duration? {
        // A tunnel hides its traffic from other networks, and a mark is the user's order.
        guard policy.triesOtherUplinks, policy.mark == nil, path.status == .satisfied, !path.isLocalAddress,
            let interface = path.interface, interface.kind != .tunnel, interface.kind != .loopback
        else { return nil }
        return silence.patience(with: path)
    }

    mutating func detourFound(
        _ remote: Endpoint, _ detour: Detour?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        advance(&turn) { dial, _, _ in dial.found(detour, to: remote) ? [] : nil }
    }

    /// A flow ended. One that stood for long shows that its way is none to be avoided.
    mutating func noteProbation(of ready: Ready, at now: Duration) {
        guard !ready.isDetour, let settledAt = ready.settledAt, now - settledAt >= Self.probation else { return }
        silence.proved()
    }

    /// Waits with the next trial of the way that was silent.
    mutating func awaitTrial(
        from ready: Ready, afterFailures failures: Int, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let pause = Self.trials.delay(
            afterFailures: silence.failures(over: path) + failures, using: &turn.random)
        let earliest = max(budget.earliest, refusedUntil(turn.now) ?? turn.now)
        moveLater(ready, at: max(turn.now + pause, earliest), failures, &turn)
    }

    /// The way that the kernel chooses is another one than before, or is there again: it is tried at once.
    mutating func tryFirstWay(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(var ready) = state, !ready.isLoggingInElsewhere else { return }
        endMove(of: &ready, .pathMoved, &turn)
        move(ready, afterFailures: 0, &turn)
    }
}

extension ConnectionStateMachine.Ready {
    /// Whether this flow uses another uplink, and dials test the kernel's route.
    var awaitsTrial: Bool { isDetour && !isSilent }
}
