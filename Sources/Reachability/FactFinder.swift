// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneResolver

/// Finds what holds of the network as a whole: whether each family reaches the Internet, and whether DNS works.
///
/// DNS works if the kernel would send a packet to one of the configured servers, and the last question that anybody
/// asked did not end in silence (``NameServerHealth``). Nothing is sent to find out.
@AgentQueue
final class FactFinder {
    /// What made the facts others, or the names.
    enum Change {
        /// The facts: everything is to be evaluated anew.
        case facts
        /// Every name may stand for other addresses: other servers, or other search domains.
        case names
        /// So may those in the hosts file.
        case hostsFile
    }

    /// The path to "the network".
    private(set) var network = Path(status: .unknown)
    /// What follows for every path.
    private(set) var values = NetworkFacts()

    private let internet: Inquiry
    private let resolver: Resolver
    private let changed: @AgentQueue (Change) -> Void
    /// The lookups for the servers, kept until these are others.
    private var lookups: [(server: NameServer, inquiry: Inquiry)] = []
    private var watch: NameConfigurationWatch?
    private var health = NameServerHealth()
    /// The ways to the servers that ``health`` was found on.
    private var ways: [Path] = []
    private var recheck: Timers.Timer?
    private var query: Query?

    /// The places of its inquiries in a batch.
    struct Slots {
        fileprivate let internet: LookupBatch.Slot
        fileprivate let servers: [LookupBatch.Slot]
    }

    /// A finder; `changed` is called when something else than the kernel's state makes facts or names others.
    init(_ files: NameFiles, _ resolver: Resolver, changed: @escaping @AgentQueue (Change) -> Void) {
        self.resolver = resolver
        self.changed = changed
        internet = Inquiry(network: .any, in: NetworkSnapshot())
        watch = NameConfigurationWatch(files) { [weak self] in self?.configurationChanged($0) }
        resolver.onEvidence = { [weak self] evidence, name in self?.heard(evidence, on: name) }
    }

    isolated deinit {
        recheck?.cancel()
        query?.cancel()
    }

    /// The configured name servers.
    var nameServers: [NameServer] { watch?.servers ?? [] }

    /// Whether a question can be sent to one of them; without any, the resolver's own is on this machine.
    var canAskForNames: Bool { ways.isEmpty || ways.contains { $0.status == .satisfied } }

    /// Whether the last question to them ended in silence.
    var areNameServersSilent: Bool { !health.isAnswering }

    /// Where the packets asked about go.
    var destinations: [IPAddress] { Array(internet.destinations) + nameServers.map(\.address) }

    /// What is asked.
    var inquiries: [Inquiry] { [internet] + lookups.map(\.inquiry) }

    /// Whether the change of `scope` may alter any of it.
    func isConcerned(by scope: ChangeScope, in snapshot: NetworkSnapshot) -> Bool {
        let servers = nameServers
        // The link of a link-local server may also have come, gone, or got another index.
        if lookups.map(\.server) != servers
            || lookups.contains(where: { $0.inquiry.isOutdated(by: scope.change, in: snapshot) })
        {
            lookups = servers.map { server in
                let target = Target(.address(server.address), port: 53, transport: .udp, interface: server.interface)
                return (server, Inquiry(target, at: [server.address], in: snapshot))
            }
            return true
        }
        return inquiries.contains { $0.isConcerned(by: scope) }
    }

    /// Adds the lookups.
    func add(to batch: inout LookupBatch) -> Slots {
        Slots(internet: batch.add(internet), servers: lookups.map { batch.add($0.inquiry) })
    }

    /// Derives the facts from the kernel's answers.
    func take(_ slots: Slots, from batch: LookupBatch, in snapshot: NetworkSnapshot) {
        let paths = slots.servers.map { batch.path($0, in: snapshot) }
        if !areAlike(paths, ways) { presumeHealth() }
        ways = paths
        values = NetworkFacts(
            reachesV4: batch.reaches(.v4, by: slots.internet, in: snapshot),
            reachesV6: batch.reaches(.v6, by: slots.internet, in: snapshot),
            servers: zip(lookups, paths).map { ($0.server.address, $1.status == .satisfied) })
        // Nothing is asked for that cannot be sent; the way back is an event.
        if !values.supportsDNS { presumeHealth() }
        if !health.isAnswering { values.supportsDNS = false }
        network = batch.path(slots.internet, in: snapshot).with(values)
        network.destination = nil
    }

    /// Nothing can be found out.
    func fail(with unknown: Path) {
        network = unknown
        values = NetworkFacts()
    }

    /// Forgets what was concluded from events, since some may have been missed.
    func startOver() {
        presumeHealth()
        watch?.refresh()
    }

    private func configurationChanged(_ change: NameConfigurationWatch.Change) {
        if change.contains(.servers) { presumeHealth() }
        if change.contains(.hosts) { changed(.hostsFile) }
        if !change.isDisjoint(with: [.servers, .search]) { changed(.names) }
    }

    // MARK: Health

    private func heard(_ evidence: Resolver.Evidence, on name: String) {
        switch evidence {
        case .answered:
            endRecheck()
            if health.answered() { changed(.facts) }
        case .silent:
            endRecheck()
            let (isNews, delay) = health.silent()
            // Each failure sets the time anew: as long as somebody asks, there is no need to.
            recheck = delay.map { Timers.shared.schedule(after: $0) { [weak self] in self?.ask(for: name) } }
            if isNews { changed(.facts) }
        }
    }

    /// Asks what was not answered before; the outcome is evidence like any other.
    private func ask(for name: String) {
        recheck = nil
        query = resolver.resolve(name, [.v4]) { [weak self] _ in self?.query = nil }
    }

    private func presumeHealth() {
        health = NameServerHealth()
        endRecheck()
    }

    private func endRecheck() {
        recheck?.cancel()
        recheck = nil
    }

    private func areAlike(_ paths: [Path], _ others: [Path]) -> Bool {
        paths.count == others.count
            && zip(paths, others).allSatisfy { $0.changes(from: $1).isDisjoint(with: Self.wayChanges) }
    }

    /// The changes of the way to a server after which it may answer, or not, for another reason.
    private static let wayChanges: Set<PathChange> = [.status, .interface, .gateway, .source, .destination]
}

extension [PathChange] {
    fileprivate func isDisjoint(with others: Set<PathChange>) -> Bool { !contains(where: others.contains) }
}
