// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Reachability

/// Waits for a path to be as it should, and for a server to answer.
actor Waiting {
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
    private let untilUnreachable: Bool
    private let (events, changes) = AsyncStream.makeStream(of: Event.self)
    private var obstacle: String?
    /// Counts the paths and the questions: what belongs to an earlier one is out of date.
    private var round = 0
    /// How often the server was asked in vain since its path changed; the pause grows with it.
    private var failures = 0

    init(_ target: TargetArgument?, probes: Bool, untilUnreachable: Bool) {
        (self.target, self.probes, self.untilUnreachable) = (target, probes, untilUnreachable)
    }

    /// How it ended.
    func outcome(within limit: Duration?) async -> Outcome {
        let watching = watch()
        defer { watching.cancel() }
        if let limit { send(.timeIsOver, after: limit) }
        for await event in events {
            switch event {
            case .timeIsOver: return .gaveUp(obstacle)
            case .path(let path):
                (round, failures) = (round + 1, 0)
                if let outcome = judge(path) { return outcome }
            case .again(let round) where round == self.round: ask()
            case .answered(let round, let screen) where round == self.round:
                if screen.isReachable { return .reached }
                obstacle = screen.obstacle
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

    private func judge(_ path: DialtoneNetworkPath.Path) -> Outcome? {
        switch path.status {
        case .unknown: return .unknown
        case .unsatisfied, .requiresConnection:
            obstacle = PathText.obstacle(NetworkAPI.Path(path), target: target?.text)
            // Where a name leads is not known then.
            return untilUnreachable && path.reason != .nameUnresolved ? .reached : nil
        case .satisfied:
            obstacle = untilUnreachable ? "there is a route" : nil
            if untilUnreachable { return nil }
            guard probes else { return .reached }
            ask()
            return nil
        }
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
