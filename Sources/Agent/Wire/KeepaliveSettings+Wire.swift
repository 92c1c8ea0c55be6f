// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import DialtoneAPI
internal import Varlink

extension KeepaliveSettings {
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
        VarlinkFailure(VarlinkService.InvalidParameter(parameter: "settings.keepalive.\(field)"))
    }
}
