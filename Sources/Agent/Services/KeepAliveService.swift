// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// Whoever is called to keep a connection alive.
@AgentQueue
protocol KeepaliveCaller: AnyObject {
    /// The client is to act, and acknowledges this wake.
    func called(_ wake: UInt64)
    /// Somebody else is called from now on.
    func superseded()
}

/// Answers `KeepAlive` of `org.dialtone.Connections`.
@AgentQueue
enum KeepAliveService {
    /// Adds the method to `service`, which has the interface already.
    static func register(in service: VarlinkService, _ registry: ConnectionRegistry) {
        service.handleStream(ConnectionsAPI.KeepAlive.self) { parameters, stream throws(VarlinkFailure) in
            let user = stream.peer.uid
            let wakesMachine = parameters.wakeMachine ?? false
            // The kernel asks for a capability (CAP_WAKE_ALARM), and the daemon does not lend its own.
            guard !wakesMachine || user == 0 || user == geteuid() else {
                throw VarlinkFailure(ServiceAPI.PermissionDenied())
            }
            let calls = KeepaliveStream(stream)
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            let connection = try answer(about: parameters.name) { () throws(RegistryError) in
                try registry.keepAlive(
                    which, timeout: parameters.timeout, wakesMachine: wakesMachine, calls, for: user)
            }
            calls.onEnd = { [weak connection] in connection?.endKeepAlive($0) }
            return calls
        }
    }
}

/// The calls of one client: the first reply says that they are agreed, each further one is a call. A client that does
/// not read gets the newest one alone. A reply that announces no other says that somebody else is called from now on.
@AgentQueue
private final class KeepaliveStream: VarlinkSubscription, KeepaliveCaller {
    private let stream: VarlinkStream
    private var isAgreed = false
    private var wake: UInt64?
    private var isOver = false
    var onEnd: @AgentQueue (KeepaliveStream) -> Void = { _ in }

    init(_ stream: VarlinkStream) { self.stream = stream }

    func called(_ wake: UInt64) {
        self.wake = wake
        stream.wake()
    }

    func superseded() {
        isOver = true
        stream.wake()
    }

    func next() -> VarlinkMessage? {
        let wake = isAgreed ? wake.take() : nil
        guard !isAgreed || wake != nil || isOver else { return nil }
        isAgreed = true
        return .reply(
            ConnectionsAPI.KeepAlive.Reply(wake: wake.map { Int(clamping: $0) }, limit: ClientHandler.budget),
            continues: !isOver)
    }

    func ended() { onEnd(self) }
}
