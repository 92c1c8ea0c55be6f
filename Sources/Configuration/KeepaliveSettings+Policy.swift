// SPDX-License-Identifier: Apache-2.0

internal import Connection

extension KeepaliveSettings {
    /// What is sent on the flows of a remote of this scheme; ``KeepaliveProtocol/kernel`` where the agent sends none.
    func kind(for scheme: Remote.Scheme?) -> KeepaliveProtocol {
        switch method {
        case nil: scheme?.heartbeat?.kind ?? .kernel
        case .tcp, .client, .some(.none): .kernel
        case .crlf: .crlf
        case .whitespace: .whitespace
        case .xmppPing: .xmppPing
        case .mqtt: .mqtt
        case .websocket: .websocket
        case .custom: .custom(send: send, expect: expect)
        }
    }

    /// What of it keeps the flows of a remote alive, with the remote's defaults for what is left open; `nil` where all
    /// of it is.
    ///
    /// - Throws: the first figure that is wrong.
    func upkeep(for remote: Remote, under opening: Opening?) throws(PolicyError) -> ConnectionPolicy.Upkeep? {
        if self == Self() { return nil }
        if method == .client {
            // The kernel's probes go on beside it: they find a dead peer without a wake.
            let timeout = interval ?? ClientHandler.usualTimeout
            return .init(handler: try ClientHandler(timeout: timeout, wakesMachine: wakesMachine, for: remote))
        }
        let kind = kind(for: remote.scheme)
        guard kind == .kernel else {
            return .init(
                heartbeat: try Heartbeat(
                    kind, interval: interval, tolerance: tolerance, wakesMachine: wakesMachine, isAdaptive: isAdaptive,
                    under: opening))
        }
        if method == .some(.none) { return .init(kernel: nil) }
        return .init(kernel: interval.map { KeepalivePolicy(idle: $0) } ?? KeepalivePolicy())
    }
}
