// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath
internal import Platform
internal import Resolver

/// Finds what holds of the network as a whole: whether each family reaches the Internet, and whether a name server can
/// be reached.
@AgentQueue
final class FactFinder {
    /// The path to "the network".
    private(set) var network = Path(status: .unknown)
    /// What follows for every path.
    private(set) var values = NetworkFacts()

    private let internet: Inquiry
    private var servers: [Server] = []
    private var watch: NameServerWatch?

    private struct Server {
        let address: IPAddress
        let inquiry: Inquiry
    }

    /// The places of its inquiries in a batch.
    struct Slots {
        fileprivate let internet: LookupBatch.Slot
        fileprivate let servers: [(IPAddress, LookupBatch.Slot)]
    }

    /// A finder; `serversChanged` is called when the machine is configured with other name servers.
    init(serversChanged: @escaping @AgentQueue () -> Void) {
        internet = Inquiry(network: .any, in: NetworkSnapshot())
        // Without inotify (a user's instances are limited) the servers stay those of the start: the verdicts on hosts
        // do not depend on them, so this is no reason to have none.
        watch = try? NameServerWatch { [weak self] servers in
            self?.use(servers)
            serversChanged()
        }
        use(watch?.servers ?? NameServerWatch.servers())
    }

    private func use(_ addresses: [IPAddress]) {
        servers = addresses.map { address in
            let target = Target(.address(address), port: 53, transport: .udp)
            return Server(address: address, inquiry: Inquiry(target, at: [address], in: NetworkSnapshot()))
        }
    }

    /// Where the packets asked about go.
    var destinations: [IPAddress] { Array(internet.destinations) + servers.map(\.address) }

    /// What is asked.
    var inquiries: [Inquiry] { [internet] + servers.map(\.inquiry) }

    /// Whether the change of `scope` may alter any of it.
    func isConcerned(by scope: ChangeScope) -> Bool {
        internet.isConcerned(by: scope) || servers.contains { $0.inquiry.isConcerned(by: scope) }
    }

    /// Adds the lookups.
    func add(to batch: inout LookupBatch) -> Slots {
        Slots(internet: batch.add(internet), servers: servers.map { ($0.address, batch.add($0.inquiry)) })
    }

    /// Derives the facts from the kernel's answers.
    func take(_ slots: Slots, from batch: LookupBatch, in snapshot: NetworkSnapshot) {
        values = NetworkFacts(
            reachesV4: batch.reaches(.v4, by: slots.internet, in: snapshot),
            reachesV6: batch.reaches(.v6, by: slots.internet, in: snapshot),
            servers: slots.servers.map { ($0, batch.path($1, in: snapshot).status == .satisfied) })
        network = batch.path(slots.internet, in: snapshot).with(values)
        network.destination = nil
    }

    /// Nothing can be found out.
    func fail(with unknown: Path) {
        network = unknown
        values = NetworkFacts()
    }
}
