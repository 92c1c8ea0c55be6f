// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The way to a flow over a better path, which takes the place of the one that stands: make before break.
struct Move {
    private enum Stage {
        indirect case dialling(Dial)
        indirect case loggingIn(StandingFlow)
        case waiting(until: Duration)
    }

    private var stage: Stage
    /// How many dials for it failed in a row.
    let failures: Int

    /// It is dialled.
    init(by dial: Dial, afterFailures failures: Int) { (stage, self.failures) = (.dialling(dial), failures) }

    /// It stands, and shows by its opening exchange that the server takes it.
    init(to next: StandingFlow, afterFailures failures: Int) { (stage, self.failures) = (.loggingIn(next), failures) }

    /// It is dialled later.
    init(at deadline: Duration, afterFailures failures: Int) {
        (stage, self.failures) = (.waiting(until: deadline), failures)
    }

    /// The dial, while one runs.
    var dial: Dial? { if case .dialling(let dial) = stage { dial } else { nil } }

    /// The next flow, while the agent logs in on it: the server has heard of that.
    var next: StandingFlow? { if case .loggingIn(let next) = stage { next } else { nil } }

    /// When it is dialled, while it waits for that.
    var deadline: Duration? { if case .waiting(let deadline) = stage { deadline } else { nil } }

    /// The numbers of its sockets.
    var epochs: [UInt64] { dial?.attempts.map(\.epoch) ?? next.map { [$0.epoch] } ?? [] }

    /// Whether something of it is bound to an address, or may come to be.
    func uses(_ address: IPAddress) -> Bool {
        dial?.uses(address) ?? next.map { $0.ends.local.address == address } ?? false
    }

    /// Changes the flow on which the agent logs in.
    mutating func changeNext(_ change: (inout StandingFlow) -> Void) {
        guard case .loggingIn(var next) = stage else { return }
        change(&next)
        stage = .loggingIn(next)
    }

    // MARK: - Where to

    /// The path over which a better flow than `flow` can be dialled; `nil` for none.
    ///
    /// - Parameter path: the connection's.
    static func betterPath(than flow: StandingFlow, over path: Path?, under policy: ConnectionPolicy) -> Path? {
        guard policy.redials, let path else { return nil }
        // Any way is better than none.
        if flow.isSilent { return !flow.way.isAwaited && path.permitsDialling ? path : nil }
        if flow.way.isDetour {
            let isElsewhere = path.status == .satisfied && path.interface?.name != flow.ends.interface
            return isElsewhere && flow.opening == nil && mayLeave(flow, under: policy) ? path : nil
        }
        guard path.permitsDialling, let way = flow.way.path(orConnections: path),
            isBetter(way, for: flow, under: policy)
        else { return nil }
        return way
    }

    /// Whether a new flow over `path` would leave from another address than the one that stands does: the kernel sends
    /// the old one's packets by the new way too, where few routers let them pass.
    static func isBetter(_ path: Path, for flow: StandingFlow, under policy: ConnectionPolicy) -> Bool {
        // The path to another of the name's addresses says nothing of this one's.
        guard path.status == .satisfied, let source = path.source, path.destination == flow.ends.remote.address
        else { return false }
        return source != flow.ends.local.address && (flow.grace.isRunning || mayLeave(flow, under: policy))
    }

    /// Whether a flow that lacks nothing may be left. Bytes that the server counts as delivered go to the client first.
    static func mayLeave(_ flow: StandingFlow, under policy: ConnectionPolicy) -> Bool {
        policy.movesToBetterPath && !flow.ownership.hasArrivals
    }
}
