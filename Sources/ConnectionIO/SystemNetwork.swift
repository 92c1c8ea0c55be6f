// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtoneNetworkPath
package import DialtonePlatform
internal import DialtoneResolver
package import Reachability

/// The paths and names of this machine, for its connections.
@AgentQueue
package final class SystemNetwork {
    private let engine: NetworkState
    /// The networks that were asked for since the last change of the network: a thousand connections go through one.
    private var networks: (generation: UInt64, byWay: [Way: NetworkIdentity]) = (0, [:])

    /// What tells the paths of one generation apart, as far as it matters here.
    private struct Way: Hashable {
        let interfaceIndex: Int
        let gateway: IPAddress?
        let source: IPAddress
    }

    /// What `engine` knows.
    package init(_ engine: NetworkState) {
        self.engine = engine
    }
}

extension SystemNetwork: PathSource {
    /// The kernel's verdict on the target, now and at each change.
    package func observePath(
        to target: Target, for account: Account, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing {
        engine.observe(.host(target), for: account.isLimited ? account.user : nil) { path, _ in handler(path) }
    }

    /// By the kernel's routes over each of the other interfaces.
    package func detour(to remote: Endpoint, around avoided: Int, for target: Target) -> Detour? {
        engine.path(to: remote.address, around: avoided, for: target).flatMap { Detour($0) }
    }

    /// The network by its gateway's entry in the kernel's neighbour table.
    package func network(of path: Path) -> NetworkIdentity? {
        guard let interface = path.interface, let source = path.source else { return nil }
        let way = Way(interfaceIndex: interface.index, gateway: path.gateway, source: source)
        if networks.generation != path.generation { networks = (path.generation, [:]) }
        if let known = networks.byWay[way] { return known }
        let address = path.gateway.flatMap {
            engine.linkAddress(of: .init(interfaceIndex: interface.index, address: $0))
        }
        let network = NetworkIdentity(path, gatewayLinkAddress: address ?? [])
        // One that is not known is asked for again: the gateway may not have said its address yet.
        if let network { networks.byWay[way] = network }
        return network
    }
}

extension SystemNetwork: NameSource {
    /// The resolver's answer, addresses with the source that the kernel would choose for each.
    package func ask(
        _ question: NameQuestion, for target: Target,
        _ completion: @escaping @AgentQueue (Result<NameAnswer, ResolutionFailure>) -> Void
    ) -> any Ongoing {
        switch question {
        case .addresses(let name, let family):
            engine.resolver.resolve(name, [family]) { [engine] result in
                completion(
                    result.map { .addresses(engine.candidates($0.addresses, for: target)) }
                        .mapError { ResolutionFailure($0) })
            }
        case .services(let name):
            engine.resolver.services(of: name) { result in
                completion(
                    result.map { .services($0.map { ServiceRecord($0) }) }.mapError { ResolutionFailure($0) })
            }
        case .pointers(let name):
            engine.resolver.pointers(of: name) { result in
                completion(
                    result.map { .pointers($0.map { NamingAuthorityPointer($0) }) }
                        .mapError { ResolutionFailure($0) })
            }
        }
    }
}

extension PathObservation: Ongoing {}
extension Query: Ongoing {}

extension ResolutionFailure {
    fileprivate init(_ error: ResolutionError) {
        switch error.kind {
        case .malformed, .noSuchName: self = .noSuchName
        case .noRecord: self = .noAddress
        case .serverFailure, .noAnswer: self = .temporary
        }
    }
}

extension ServiceRecord {
    fileprivate init(_ location: ServiceLocation) {
        self.init(
            priority: location.priority, weight: location.weight, port: location.port, target: location.target)
    }
}

extension NamingAuthorityPointer {
    /// Without the expression: SIP's rules that lead to SRV records have none (RFC 3263, section 4.1).
    fileprivate init(_ rule: NamingRule) {
        self.init(
            order: rule.order, preference: rule.preference, flags: rule.flags, service: rule.service,
            replacement: rule.replacement)
    }
}
