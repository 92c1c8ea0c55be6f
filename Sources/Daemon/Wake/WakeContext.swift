// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import CPlatform
internal import Glibc
internal import Platform

/// What the wakers of all connections share.
@AgentQueue
final class WakeContext {
    let activator: Activator
    /// Where the agent serves, for programs that are launched.
    var socketPath = ""
    /// Whether somebody watches a connection who may be its client, which is this process where it is known.
    var isWatched: @AgentQueue (RegisteredConnection, ProcessHandle?) -> Bool = { _, _ in false }

    init(_ activator: Activator = Activator()) { self.activator = activator }

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
