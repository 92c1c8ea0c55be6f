// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import CPlatform
internal import Glibc
internal import Platform
internal import Supervisor

/// What it takes to wake clients, shared by all connections.
@AgentQueue
final class WakeContext {
    private let activator: Activator
    private let deputy: DeputyClient?
    /// How long a client that was woken may have the flow.
    var budget = ClientHandler.budget
    /// Where the agent serves, for programs that are launched.
    var socketPath = ""
    /// Whether somebody watches a connection who may be its client, which is this process where it is known.
    var isWatched: @AgentQueue (RegisteredConnection, ProcessHandle?) -> Bool = { _, _ in false }

    /// - Parameter deputy: who wakes clients where this process may not; `nil` for root, who may.
    init(_ activator: Activator = Activator(), deputy: DeputyClient? = geteuid() == 0 ? nil : DeputyClient()) {
        self.activator = activator
        self.deputy = deputy
    }

    /// By what the clients of `owner` are woken where no file says it: by an event, and one that is stopped is
    /// continued where this process may do that without anybody's help.
    func settings(for owner: UInt32) -> WakeSettings {
        var settings = WakeSettings()
        if geteuid() == 0 || geteuid() == owner { settings.signal = SIGCONT }
        return settings
    }

    /// Attempts to wake a client, as ``Activator`` does: by the deputy where there is one and it takes its rights. Of a
    /// program that the deputy launches, there is no process to be known before it runs.
    func perform(
        _ order: WakeOrder, process: ProcessHandle?, socket: CInt?,
        began: @escaping @AgentQueue (ProcessHandle) -> Void = { _ in },
        ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        if activator.lacksRights(for: order), let deputy, deputy.isThere {
            deputy.perform(order, process: process, socket: socket, ended: ended, completion)
        } else {
            activator.perform(order, process: process, socket: socket, began: began, ended: ended, completion)
        }
    }

    /// Tells of the end of a program that an earlier process of the agent launched: how it ended where the deputy did
    /// that for it, whose child it is.
    func follow(_ process: ProcessHandle, ended: @escaping @AgentQueue (ProgramEnd) -> Void) {
        if let deputy, deputy.isThere {
            deputy.follow(process, ended: ended)
        } else {
            try? process.onEnd { ended(.unseen) }
        }
    }

    /// The agent serves on this socket, which somebody else made.
    func serves(on socket: borrowing OwnedDescriptor) {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let number = socket.number
        let result = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
        }
        guard result == 0 else { return }
        socketPath = withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
