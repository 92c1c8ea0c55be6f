// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
@_exported public import DialtoneNetworkPath
internal import DialtonePlatform
public import DialtoneVarlink
internal import Glibc

/// The daemon, as a Swift program talks to it.
///
/// ```swift
/// import DialtoneAPI
/// import DialtoneClient
///
/// let dialtone = DialtoneClient()
/// let path = try await dialtone.path(to: .init(host: "sip.example.com", port: 5061))
/// print(path.status, path.interface?.name ?? "-")
///
/// for try await reply in dialtone.stream(ConnectionsAPI.Monitor.self, .init(names: ["office"])) {
///     print(reply.event?.kind.rawValue ?? "snapshot", reply.connections.map(\.state))
/// }
/// ```
///
/// A value stands for the place where the daemon listens and may be copied and used from anywhere. Each call and each
/// stream makes a connection of its own: connecting to a Unix socket costs some ten microseconds, nothing stands idle
/// between calls or waits behind a stream, and nothing has to be noticed or repaired when the daemon restarts.
public struct DialtoneClient: Sendable {
    /// How long a call waits for its answer unless told otherwise. Looking up a name may take several seconds.
    public static let defaultTimeout = Duration.seconds(30)

    /// Where the daemon is looked for, in this order.
    public let paths: [String]

    /// The daemon that listens on `path`; without one, where ``SocketPath/ofClient(uid:environment:)`` says.
    public init(path: String? = nil) {
        paths = path.map { [$0] } ?? SocketPath.ofClient(uid: geteuid(), environment: Self.environment())
    }

    private static func environment() -> [String: String] {
        [SocketPath.variable, "XDG_RUNTIME_DIR"].reduce(into: [:]) { environment, name in
            environment[name] = getenv(name).map { String(cString: $0) }
        }
    }

    /// Calls `method`. Cancelling the task hangs up; whether the daemon had begun then is not known.
    public func call<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, timeout: Duration = defaultTimeout
    ) async throws(DialtoneError) -> M.Reply {
        try await callWithDescriptors(method, parameters, nil, timeout: timeout).reply
    }

    /// Calls `method` with descriptors, and for some.
    func callWithDescriptors<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ descriptors: VarlinkDescriptors?,
        timeout: Duration? = defaultTimeout
    ) async throws(DialtoneError) -> VarlinkAnswer<M> {
        let call = await PendingCall<M>(
            paths: paths, parameters: parameters, descriptors: descriptors, timeout: timeout)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                AgentQueue.async { call.start { continuation.resume(returning: $0) } }
            }
        } onCancel: {
            AgentQueue.async { call.cancel() }
        }
        return try result.get()
    }

    /// Calls `method` for a stream of replies. It connects when the first reply is asked for.
    ///
    /// - Parameter timeout: how long the first reply may take; `nil` for as long as it does. The agent sends the first
    ///   reply of `History` at once, and of `MonitorPath` and `Monitor` where these begin with the present state.
    public func stream<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, timeout: Duration? = nil
    ) -> DialtoneStream<M> {
        DialtoneStream(paths: paths, parameters: parameters, timeout: timeout)
    }
}

extension DialtoneClient {
    /// The path to `target`; without one, to the network as such. It does not tell the name servers.
    public func path(to target: NetworkAPI.Target? = nil) async throws(DialtoneError) -> Path {
        Path(try await call(NetworkAPI.GetPath.self, .init(target: target)).path)
    }

    /// The interfaces of this machine.
    public func interfaces() async throws(DialtoneError) -> [Interface] {
        try await call(NetworkAPI.ListInterfaces.self, .init()).interfaces.map { Interface($0) }
    }

    /// The connections that the caller may see.
    public func connections() async throws(DialtoneError) -> [ConnectionsAPI.Connection] {
        try await call(ConnectionsAPI.List.self, .init()).connections
    }

    /// What happened, the oldest first. The last reply is there to end the others, and has no time.
    public func history(_ parameters: ConnectionsAPI.History.Parameters) -> DialtoneStream<ConnectionsAPI.History> {
        stream(ConnectionsAPI.History.self, parameters, timeout: Self.defaultTimeout)
    }

    /// Supervises a connection from now on and returns its name.
    public func open(_ connection: ConnectionsAPI.Open.Parameters) async throws(DialtoneError) -> String {
        try await call(ConnectionsAPI.Open.self, connection).name
    }

    /// Closes a connection and supervises it no longer.
    ///
    /// - Parameter owner: for root, whose connection of that name is meant; `nil` for root's own, or the only one.
    public func close(_ name: String, owner: Int? = nil) async throws(DialtoneError) {
        _ = try await call(ConnectionsAPI.Close.self, .init(name: name, owner: owner))
    }

    /// Drops a connection's socket if there is one and dials: at once, or after a pause that the server asked for.
    ///
    /// - Parameter owner: as for ``close(_:owner:)``.
    public func redial(
        _ name: String, owner: Int? = nil, after pause: Duration? = nil
    ) async throws(DialtoneError) {
        _ = try await call(ConnectionsAPI.Redial.self, .init(name: name, owner: owner, after: pause))
    }
}
