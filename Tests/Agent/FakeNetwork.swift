// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport

/// A network that is as the test says. It sends nothing; where it says "satisfied" over loopback, flows are real.
@AgentQueue
final class FakeNetwork: PathSource, NameSource {
    private final class Observation: Ongoing {
        let target: Target
        var handler: (@AgentQueue (Path) -> Void)?

        init(_ target: Target, _ handler: @escaping @AgentQueue (Path) -> Void) {
            self.target = target
            self.handler = handler
        }

        func cancel() { handler = nil }
    }

    private var observations: [Observation] = []

    /// The path to everything; changing it tells everybody, in this very turn.
    var path = Path(status: .unsatisfied, reason: .noRoute) {
        didSet { for observation in observations { observation.handler?(path) } }
    }

    /// Who watches the way to where.
    var targets: [Target] { observations.filter { $0.handler != nil }.map(\.target) }

    func observePath(
        to target: Target, for account: Account, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing {
        let observation = Observation(target, handler)
        observations.removeAll { $0.handler == nil }
        observations.append(observation)
        AgentQueue.async { observation.handler?(self.path) }
        return observation
    }

    func detour(to remote: Endpoint, around avoided: Int, for target: Target) -> Detour? { nil }

    func network(of path: Path) -> NetworkIdentity? { nil }

    func ask(
        _ question: NameQuestion, for target: Target,
        _ completion: @escaping @AgentQueue (Result<NameAnswer, ResolutionFailure>) -> Void
    ) -> any Ongoing {
        let query = Observation(target) { _ in completion(.failure(.noSuchName)) }
        AgentQueue.async { query.handler?(self.path) }
        return query
    }

    /// Tells every waiting connection something new: one event each.
    func change() {
        path.reason = path.reason == .noRoute ? .noCarrier : .noRoute
    }

    /// Everything can be reached by the loopback interface.
    func becomeReachable() {
        path = Path(
            status: .satisfied, source: .loopback, destination: .loopback, isLocalAddress: true, supportsIPv4: true)
    }
}
