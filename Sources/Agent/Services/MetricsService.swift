// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Reachability

/// Answers `Metrics`: what was counted, and what the kernel says of this process when it is asked. While nobody asks
/// there is nothing to do.
@AgentQueue
final class MetricsService {
    private let registry: ConnectionRegistry
    private let network: NetworkCount
    private let engine: NetworkState
    private let memory: MemoryGuard?
    private let startedAt = Timestamp.now()

    init(_ registry: ConnectionRegistry, _ network: NetworkCount, _ engine: NetworkState, memory: MemoryGuard? = nil) {
        (self.registry, self.network, self.engine, self.memory) = (registry, network, engine, memory)
    }

    /// Adds the method to `service`.
    func register(in service: VarlinkService) {
        service.handleLater(ConnectionsAPI.Metrics.self) { [unowned self] _, exchange in
            let user = exchange.peer.uid
            let listing = ConnectionListing(
                registry.visible(to: user), in: reply, for: user, memory
            ) { connection, reply in
                guard let wire = connection.wire else { return }
                let counters = connection.totals.wire(at: BootClock.now())
                reply.append(ConnectionsAPI.CountedConnection(connection: wire, counters: counters))
            }
            listing.answer(exchange)
        }
    }

    /// All but the connections.
    private var reply: ConnectionsAPI.Metrics.Reply {
        .init(
            // Constants of some seconds, which are whole microseconds.
            boundsMicroseconds: DurationHistogram.bounds.map { Int($0 / .microseconds(1)) },
            network: countedNetwork,
            agent: .init(
                version: Product.version, startedAt: startedAt, residentBytes: ProcessFigures.residentBytes,
                descriptors: ProcessFigures.descriptors, descriptorLimit: DescriptorLimit.current,
                wakeUps: ProcessFigures.wakeUps, overruns: engine.overruns),
            connections: [])
    }

    private var countedNetwork: ConnectionsAPI.CountedNetwork {
        let path = network.path.map { NetworkAPI.Path($0) }
        return .init(
            since: network.totals.since, status: path?.status ?? .unknown, reason: path?.reason,
            kind: path?.interface?.kind, expensive: path?.expensive ?? false, constrained: path?.constrained ?? false,
            changes: network.totals.wire)
    }
}
