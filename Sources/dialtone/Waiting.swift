// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import NetworkPath
internal import Platform
internal import Presentation
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
        case path(NetworkPath.Path)
        /// It is time to ask the server for the so-manieth time.
        case again(Int)
        case timeIsOver
    }

    private static let pauses = (first: Duration.seconds(1), last: Duration.seconds(30))

    private let target: TargetArgument?
    private let probes: Bool
    private let untilUnreachable: Bool
    private let (events, changes) = AsyncStream.makeStream(of: Event.self)
    private var tasks: [Task<Void, Never>] = []
    private var obstacle: String?
    /// How often the server was asked since its path changed; the pause grows with it.
    private var questions = 0

    init(_ target: TargetArgument?, probes: Bool, untilUnreachable: Bool) {
        (self.target, self.probes, self.untilUnreachable) = (target, probes, untilUnreachable)
    }

    /// How it ended.
    func outcome(within limit: Duration?) async -> Outcome {
        watch()
        if let limit { after(limit, .timeIsOver) }
        defer { for task in tasks { task.cancel() } }
        for await event in events {
            switch event {
            case .timeIsOver: return .gaveUp(obstacle)
            case .path(let path):
                questions = 0
                if let outcome = await judge(path) { return outcome }
            case .again(let question):
                // A change came first.
                guard question == questions, let target else { continue }
                if await answers(target) { return .reached }
            }
        }
        return .gaveUp(obstacle)
    }

    private func watch() {
        tasks.append(
            Task { [changes, target] in
                if let target {
                    for await (path, _) in HostReachability(target.target).updates { changes.yield(.path(path)) }
                } else {
                    for await path in PathMonitor() { changes.yield(.path(path)) }
                }
            })
    }

    private func after(_ pause: Duration, _ event: Event) {
        tasks.append(
            Task { [changes] in
                do {
                    try await ContinuousClock().sleep(for: pause)
                } catch {
                    return
                }
                changes.yield(event)
            })
    }

    private func judge(_ path: NetworkPath.Path) async -> Outcome? {
        switch path.status {
        case .unknown: return .unknown
        case .unsatisfied, .requiresConnection:
            if untilUnreachable { return .reached }
            obstacle = PathText.obstacle(NetworkAPI.Path(path), target: target?.text)
            return nil
        case .satisfied:
            obstacle = untilUnreachable ? "there is a route" : nil
            if untilUnreachable { return nil }
            guard probes, let target else { return .reached }
            return await answers(target) ? .reached : nil
        }
    }

    /// Whether the server answers now; if not it is asked again later.
    private func answers(_ target: TargetArgument) async -> Bool {
        let explanation = try? await HostReachability(target.target).explanation()
        let reply = explanation.map { NetworkAPI.Explain.Reply($0) }
        let paths = reply.map { [$0.path] + ($0.others ?? []) } ?? []
        let screen = await ProbeOption.ask(target, target.target, paths)
        if screen.isReachable { return true }
        obstacle = screen.obstacle
        questions += 1
        let doublings = min(questions - 1, 5)
        after(min(Self.pauses.first * (1 << doublings), Self.pauses.last), .again(questions))
        return false
    }
}
