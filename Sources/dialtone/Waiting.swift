// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Reachability

/// Waits for a path to be as it should, and for a server to answer.
actor Waiting {
    enum Goal: Sendable {
        case reachable
        case unreachable
        /// Reachable, which the service manager is told; then unreachable.
        case reachableForUnit
    }

    enum Outcome: Sendable {
        case reached
        /// The time was over; with what stood in the way.
        case gaveUp(String?)
        case unknown
    }

    private enum Event: Sendable {
        case path(DialtoneNetworkPath.Path)
        case answered(round: Int, ProbeScreen)
        case again(round: Int)
        case timeIsOver
    }

    private static let pauses = (first: Duration.seconds(1), last: Duration.seconds(30))

    private let target: TargetArgument?
    private let probes: Bool
    private var goal: Goal
    private let (events, changes) = AsyncStream.makeStream(of: Event.self)
    private var obstacle: String?
    /// Counts the paths and the questions: what belongs to an earlier one is out of date.
    private var round = 0
    /// How often the server was asked in vain since its path changed; the pause grows with it.
    private var failures = 0
    /// The service manager was told that the target is reachable.
    private var isReady = false

    init(_ target: TargetArgument?, probes: Bool, _ goal: Goal) {
        (self.target, self.probes, self.goal) = (target, probes, goal)
    }

    /// How it ended.
    ///
    /// - Throws: why the service manager could not be told.
    func outcome(within limit: Duration?) async throws(SystemError) -> Outcome {
        let watching = watch()
        defer { watching.cancel() }
        if let limit { send(.timeIsOver, after: limit) }
        for await event in events {
            switch event {
            case .timeIsOver: return .gaveUp(obstacle)
            case .path(let path):
                (round, failures) = (round + 1, 0)
                if let outcome = try judge(path) { return outcome }
            case .again(let round) where round == self.round: ask()
            case .answered(let round, let screen) where round == self.round:
                if screen.isReachable {
                    if let outcome = try reached() { return outcome }
                    break
                }
                try setObstacle(screen.obstacle)
                let pause = min(Self.pauses.first * (1 << min(failures, 5)), Self.pauses.last)
                failures += 1
                send(.again(round: round), after: pause)
            case .again, .answered: break
            }
        }
        return .gaveUp(obstacle)
    }

    private func watch() -> Task<Void, Never> {
        Task { [changes, target] in
            if let target {
                for await (path, _) in HostReachability(target.target).updates { changes.yield(.path(path)) }
            } else {
                for await path in PathMonitor() { changes.yield(.path(path)) }
            }
        }
    }

    private func send(_ event: Event, after pause: Duration) {
        Task { [changes] in
            try? await ContinuousClock().sleep(for: pause)
            changes.yield(event)
        }
    }

    private func judge(_ path: DialtoneNetworkPath.Path) throws(SystemError) -> Outcome? {
        switch path.status {
        case .unknown: return .unknown
        case .unsatisfied, .requiresConnection:
            // A name that cannot be looked up says nothing about the route. After it was looked up once, it does: the
            // last addresses stay in use while no name server answers, so this one says that there are none any more.
            let isKnown = path.reason != .nameUnresolved || isReady
            if case .unreachable = goal, isKnown { return .reached }
            try setObstacle(PathText.obstacle(NetworkAPI.Path(path), target: target?.text))
            return nil
        case .satisfied:
            if case .unreachable = goal {
                obstacle = "there is a route"
                return nil
            }
            guard probes else { return try reached() }
            ask()
            return nil
        }
    }

    private func reached() throws(SystemError) -> Outcome? {
        guard case .reachableForUnit = goal else { return .reached }
        try ServiceManager.notifyReady(status: "Reachable")
        (goal, isReady) = (.unreachable, true)
        return nil
    }

    private func setObstacle(_ text: String?) throws(SystemError) {
        obstacle = text
        guard case .reachableForUnit = goal, let text else { return }
        try ServiceManager.notifyStatus("Not reachable: \(text)")
    }

    /// Asks the server. Meanwhile the path may change, and the time be over.
    private func ask() {
        guard let target else { return }
        round += 1
        Task { [changes, round] in
            let screen: ProbeScreen
            if let explanation = try? await HostReachability(target.target).explanation() {
                screen = await ProbeOption.ask(target, target.target, NetworkAPI.Explain.Reply(explanation))
            } else {
                screen = ProbeScreen([], target: target.text, now: .now())
            }
            changes.yield(.answered(round: round, screen))
        }
    }
}
