// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc
internal import Reachability

/// Answers `org.dialtone.Network`: for everyone who may connect to the socket.
@AgentQueue
final class NetworkService {
    private let engine: NetworkState
    /// Whose names are looked up.
    var boundary = NetworkBoundary()
    private var subscriptions: Quota
    private let memory: MemoryGuard?
    /// Calls that wait for a name to be resolved.
    private var pending: [ObjectIdentifier: PathObservation] = [:]
    /// Likewise, of those that are explained.
    private var inspections: [ObjectIdentifier: PathInspection] = [:]

    init(_ engine: NetworkState, subscriptionsPerUser: Int, memory: MemoryGuard? = nil) {
        self.engine = engine
        self.memory = memory
        subscriptions = Quota(limit: subscriptionsPerUser)
    }

    /// The most paths that one user may monitor at a time.
    var subscriptionsPerUser: Int {
        get { subscriptions.limit }
        set { subscriptions.limit = newValue }
    }

    /// Adds the interface and its methods to `service`.
    func register(in service: VarlinkService) {
        service.add(interface: NetworkAPI.name, description: NetworkAPI.description)
        service.handleLater(NetworkAPI.GetPath.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            try getPath(parameters, exchange)
        }
        service.handleLater(NetworkAPI.Explain.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            let target = try target(parameters.target, for: exchange.peer)
            inspect(target, without: parameters.without, exchange) { .init($0) }
        }
        service.handleStream(NetworkAPI.MonitorPath.self) {
            [unowned self] parameters, stream throws(VarlinkFailure) in
            try monitorPath(parameters.target, stream)
        }
        service.handle(NetworkAPI.ListInterfaces.self) { [unowned self] _, _ in
            let interfaces = engine.snapshot.interfaces.values.sorted { $0.index < $1.index }
            return .init(interfaces: interfaces.map { .init($0) })
        }
    }

    private func getPath(
        _ parameters: NetworkAPI.GetPath.Parameters, _ exchange: VarlinkExchange<NetworkAPI.GetPath>
    ) throws(VarlinkFailure) {
        if let interface = parameters.without {
            let target = try parameters.target.map { target throws(VarlinkFailure) in
                try self.target(target, for: exchange.peer)
            }
            return inspect(target, without: interface, exchange) { .init(path: .init($0.path)) }
        }
        let question = try question(about: parameters.target, for: exchange.peer)
        let key = ObjectIdentifier(exchange)
        pending[key] = engine.observe(question, for: exchange.peer.account) { [weak self] path, _ in
            exchange.reply(.init(path: .init(path)))
            self?.pending.removeValue(forKey: key)?.cancel()
        }
        exchange.onCancel = { [weak self] in self?.pending.removeValue(forKey: key)?.cancel() }
    }

    private func monitorPath(
        _ target: NetworkAPI.Target?, _ stream: VarlinkStream
    ) throws(VarlinkFailure) -> any VarlinkSubscription {
        let question = try question(about: target, for: stream.peer)
        let user = stream.peer.account
        guard subscriptions.hasRoom(for: user) else {
            throw VarlinkFailure(NetworkAPI.QuotaExceeded(limit: subscriptions.limit))
        }
        do throws(ResourceShortage) {
            try memory?.admit(.subscription, for: user)
        } catch {
            throw VarlinkFailure(NetworkAPI.OutOfResources(reason: error.reason))
        }
        _ = subscriptions.take(for: user)
        return PathMonitorSubscription(to: question, of: engine, stream) { [unowned self] in
            subscriptions.giveBack(for: user)
        }
    }

    /// Answers `exchange` with what is found out about a path, once it is.
    private func inspect<M: VarlinkMethod>(
        _ target: Target?, without interface: String?, _ exchange: VarlinkExchange<M>,
        _ reply: @escaping @AgentQueue (Explanation) -> M.Reply
    ) {
        let key = ObjectIdentifier(exchange)
        // Set first: for an address the answer comes before the call returns.
        exchange.onCancel = { [weak self] in self?.inspections.removeValue(forKey: key)?.cancel() }
        var isAnswered = false
        let (user, caller) = (packetUser(of: exchange.peer), exchange.peer.account)
        let inspection = engine.inspect(
            target, user: user, without: interface, for: caller, inTurn: { exchange.inTurn($0) }
        ) {
            [weak self] result in
            isAnswered = true
            self?.inspections[key] = nil
            switch result {
            case .success(let explanation): exchange.reply(reply(explanation))
            case .failure(let failure):
                exchange.fail(VarlinkFailure(NetworkAPI.InvalidTarget(reason: failure.description)))
            }
        }
        if !isAnswered { inspections[key] = inspection }
    }

    private func question(
        about target: NetworkAPI.Target?, for peer: VarlinkPeer
    ) throws(VarlinkFailure) -> Question {
        guard let target else { return .network(.any, user: packetUser(of: peer)) }
        return .host(try self.target(target, for: peer))
    }

    /// The user whose rules apply to the network as such: the caller's. `nil` for the daemon's own, whose verdict there
    /// is anyway.
    private func packetUser(of peer: VarlinkPeer) -> UInt32? { peer.uid == geteuid() ? nil : peer.uid }

    private func target(_ target: NetworkAPI.Target, for peer: VarlinkPeer) throws(VarlinkFailure) -> Target {
        let found: Target
        do throws(TargetError) {
            found = try Target(target, user: peer.uid)
        } catch {
            throw VarlinkFailure(NetworkAPI.InvalidTarget(reason: error.reason))
        }
        // Questions leave by the daemon's network, and can carry whatever fits into a name.
        if case .name = found.host, let reason = boundary.refusal(of: peer) {
            throw VarlinkFailure(NetworkAPI.ForeignNetwork(reason: reason))
        }
        return found
    }
}

/// One subscriber of `MonitorPath`. It holds the latest path alone: who reads slowly gets that, with every change since
/// the one read before, and sees by the generation that there were others.
@AgentQueue
private final class PathMonitorSubscription: VarlinkSubscription {
    private let stream: VarlinkStream
    private let onEnd: @AgentQueue () -> Void
    private var observation: PathObservation?
    private var latest: Path?
    private var told: Path?

    init(
        to question: Question, of engine: NetworkState, _ stream: VarlinkStream, onEnd: @escaping @AgentQueue () -> Void
    ) {
        self.stream = stream
        self.onEnd = onEnd
        observation = engine.observe(question, for: stream.peer.account) { [weak self] path, _ in
            self?.latest = path
            self?.stream.wake()
        }
    }

    func next() -> VarlinkMessage? {
        guard let latest else { return nil }
        let changes = told.map { latest.changes(from: $0) } ?? []
        // Away and back again while nobody read: there is nothing to tell but the generation.
        if told != nil, changes.isEmpty { return nil }
        told = latest
        return .reply(
            NetworkAPI.MonitorPath.Reply(path: .init(latest), changes: changes.map(\.rawValue)), continues: true)
    }

    func ended() {
        observation?.cancel()
        observation = nil
        onEnd()
    }
}
