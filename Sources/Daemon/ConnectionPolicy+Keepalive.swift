// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import Supervisor
internal import Varlink

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

    /// What a client asks for. Not validated.
    ///
    /// - Parameter mayWakeMachine: whether the client may have the machine woken.
    init(_ wire: ConnectionsAPI.Keepalive, mayWakeMachine: Bool) throws(VarlinkFailure) {
        self.init()
        if let name = wire.protocol {
            guard let method = Method(rawValue: name) else { throw Self.invalid("protocol") }
            self.method = method
        }
        interval = wire.intervalMilliseconds.map { .milliseconds($0) }
        tolerance = wire.toleranceMilliseconds.map { .milliseconds($0) }
        isAdaptive = wire.adaptive
        send = try bytes(wire.send, "send")
        expect = try bytes(wire.expect, "expect")
        wakesMachine = wire.wakeMachine ?? false
        // The kernel asks for a capability (CAP_WAKE_ALARM), and the daemon does not lend its own.
        guard mayWakeMachine || !wakesMachine else { throw VarlinkFailure(VarlinkService.PermissionDenied()) }
    }

    private func bytes(_ text: String?, _ field: String) throws(VarlinkFailure) -> [UInt8] {
        guard let text else { return [] }
        guard method == .custom, let bytes = try? [UInt8](escapedText: text) else { throw Self.invalid(field) }
        return bytes
    }

    private static func invalid(_ field: String) -> VarlinkFailure {
        VarlinkFailure(VarlinkService.InvalidParameter(parameter: "keepalive.\(field)"))
    }
}

extension ConnectionPolicy {
    /// Keeps its flows alive as `settings` say, with the defaults of its remote for what they leave open.
    mutating func keepAlive(_ settings: KeepaliveSettings) {
        handler = nil
        if settings.method == .client {
            // The kernel's probes go on beside it: they find a dead peer without a wake.
            (heartbeat, keepalive) = (nil, KeepalivePolicy())
            let timeout = settings.interval ?? ClientHandler.usualTimeout
            handler = ClientHandler(timeout: timeout, wakesMachine: settings.wakesMachine)
            return
        }
        let kind = settings.kind(for: remote.scheme)
        if kind == .kernel {
            heartbeat = nil
            keepalive = settings.method == .some(.none) ? nil : KeepalivePolicy()
            if let interval = settings.interval { keepalive?.idle = interval }
        } else {
            keepalive = KeepalivePolicy()
            heartbeat = Heartbeat(
                kind, interval: settings.interval, tolerance: settings.tolerance, wakesMachine: settings.wakesMachine,
                isAdaptive: settings.isAdaptive)
        }
    }
}
