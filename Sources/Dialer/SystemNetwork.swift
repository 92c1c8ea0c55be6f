// SPDX-License-Identifier: Apache-2.0

package import NetworkPath
package import Platform
package import Reachability
internal import Resolver
package import Supervisor

/// The paths and names of this machine, for its connections.
@AgentQueue
package final class SystemNetwork {
    private let engine: NetworkState

    /// What `engine` knows.
    package init(_ engine: NetworkState) {
        self.engine = engine
    }
}

extension SystemNetwork: PathSource {
    /// The kernel's verdict on the target, now and at each change.
    package func observePath(
        to target: Target, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing {
        engine.observe(.host(target)) { path, _ in handler(path) }
    }
}

extension SystemNetwork: NameSource {
    /// The addresses from the resolver, those first that can be reached.
    package func resolve(
        _ name: String, for target: Target,
        _ completion: @escaping @AgentQueue (Result<[IPAddress], ResolutionFailure>) -> Void
    ) -> any Ongoing {
        engine.resolver.resolve(name) { [engine] result in
            switch result {
            case .success(let resolution): completion(.success(engine.ordered(resolution.addresses, for: target)))
            case .failure(let error): completion(.failure(ResolutionFailure(error)))
            }
        }
    }
}

extension PathObservation: Ongoing {}
extension Query: Ongoing {}

extension ResolutionFailure {
    fileprivate init(_ error: ResolutionError) {
        self = error.isFinal ? .noSuchName : .temporary
    }
}
