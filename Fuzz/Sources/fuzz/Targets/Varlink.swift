// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneAPI
@testable internal import DialtoneAgent
@testable internal import DialtoneConnection
@testable internal import DialtonePrivilegedLauncher
@testable internal import DialtoneVarlink

extension FuzzTarget {
    /// What a client sends: a stream cut anywhere, to messages, to calls, to the parameters of every method.
    static let varlink = FuzzTarget(name: "varlink") { bytes in
        var framer = VarlinkFramer(limit: 64 * 1024)
        let piece = max(1, Int(bytes.first ?? 0))
        var rest = bytes.dropFirst()
        while !rest.isEmpty {
            framer.append(Array(rest.prefix(piece)))
            rest = rest.dropFirst(piece)
            do throws(VarlinkViolation) {
                while let message = try framer.next() { read(message) }
            } catch {
                return
            }
        }
    }

    /// The same for what the launcher is asked.
    static let launcher = FuzzTarget(name: "launcher") { bytes in
        guard let call = try? VarlinkCall(bytes) else { return }
        _ = try? call.parameters(as: LauncherAPI.Wake.Parameters.self)
        _ = try? call.parameters(as: LauncherAPI.Find.Parameters.self)
        _ = try? call.parameters(as: LauncherAPI.Await.Parameters.self)
    }

    private static func read(_ message: [UInt8]) {
        guard let call = try? VarlinkCall(message) else { return }
        for (name, read) in methods where call.method == name || call.method.isEmpty { read(call) }
    }

    private static let methods: [(String, @Sendable (VarlinkCall) -> Void)] = [
        method(ServiceAPI.GetInfo.self), method(ServiceAPI.GetInterfaceDescription.self),
        method(NetworkAPI.GetPath.self), method(NetworkAPI.MonitorPath.self), method(NetworkAPI.Explain.self),
        method(NetworkAPI.ListInterfaces.self),
        method(ConnectionsAPI.List.self), method(ConnectionsAPI.Monitor.self), method(ConnectionsAPI.Close.self),
        method(ConnectionsAPI.Redial.self), method(ConnectionsAPI.Take.self), method(ConnectionsAPI.KeepAlive.self),
        method(ConnectionsAPI.Acknowledge.self), method(ConnectionsAPI.History.self),
        method(ConnectionsAPI.Metrics.self),
        method(ConnectionsAPI.Open.self) { _ = try? ConnectionPolicy($0, user: 1000) },
        method(ConnectionsAPI.Adopt.self) {
            _ = try? ConnectionPolicy(.init(remote: $0.remote ?? "", settings: $0.settings), user: 1000)
        },
        method(ConnectionsAPI.Park.self) {
            _ = (try? LeftOpening($0.opening ?? []), try? LeftAnswers($0.answers ?? []))
        },
    ]

    private static func method<M: VarlinkMethod>(
        _ method: M.Type, _ use: @escaping @Sendable (M.Parameters) -> Void = { _ in }
    ) -> (String, @Sendable (VarlinkCall) -> Void) {
        (M.name, { call in if let parameters = try? call.parameters(as: M.Parameters.self) { use(parameters) } })
    }
}
