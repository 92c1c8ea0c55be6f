// SPDX-License-Identifier: Apache-2.0

internal import Coalescing
internal import Connection
internal import DialtoneAPI

/// What is sent to keep a connection alive, as users name it.
private enum KeepaliveMethod: String, CaseIterable {
    /// The kernel's own, `SO_KEEPALIVE`; the process does not wake for it.
    case tcp
    /// SIP's double CRLF, answered with one (RFC 5626, section 3.5.1).
    case crlf
    /// A space between XMPP stanzas, answered by TCP alone (RFC 6120, section 4.6.1).
    case whitespace
    /// An XMPP ping (XEP-0199).
    case xmppPing = "xmpp-ping"
    /// PINGREQ (MQTT 3.1.1, section 3.12).
    case mqtt
    /// A ping frame (RFC 6455, section 5.5.2).
    case websocket
    /// What the user says, answered with what the user says.
    case custom
    /// Whatever the client's handler does when it is called.
    case client
    /// Nothing at all.
    case none

    /// What the agent sends; ``KeepaliveProtocol/kernel`` where it sends nothing.
    func kind(send: [UInt8], expect: [UInt8]) -> KeepaliveProtocol {
        switch self {
        case .tcp, .client, .none: .kernel
        case .crlf: .crlf
        case .whitespace: .whitespace
        case .xmppPing: .xmppPing
        case .mqtt: .mqtt
        case .websocket: .websocket
        case .custom: .custom(send: send, expect: expect)
        }
    }
}

extension SettingsCheck {
    private static let interval = "keepalive.intervalMilliseconds"

    /// What keeps the flows alive. The protocol, which is the scheme's where none is named, decides what else may be
    /// said, and so does an opening that promises the server how often it hears of its client.
    mutating func keepAlive(_ policy: inout ConnectionPolicy) {
        guard let keepalive = settings.keepalive, keepalive != ConnectionsAPI.Keepalive() else { return }
        let method: KeepaliveMethod? = choice(keepalive.protocol, "keepalive.protocol")
        if keepalive.protocol != nil, method == nil { return }
        let send = bytes(keepalive.send, "keepalive.send", method, atLeast: 1)
        let expect = bytes(keepalive.expect, "keepalive.expect", method, atLeast: 0)
        if method == .custom, keepalive.send == nil { found.wrong("keepalive.send", "missing") }
        // What it lacks was reported: nothing more is to be said of it.
        if method == .custom, send.isEmpty { return }
        let kind = method.map { $0.kind(send: send, expect: expect) } ?? remote.scheme.heartbeat?.kind ?? .kernel
        tellWhatHasNoEffect(keepalive, kind, method)
        let wakesMachine = keepalive.wakeMachine ?? false
        policy.heartbeat = nil
        if method == .client {
            // The kernel still probes: that finds a dead peer without waking the client.
            let timeout = keepalive.intervalMilliseconds.map { Duration.milliseconds($0) } ?? ClientHandler.usualTimeout
            policy.handler = taken { [remote] () throws(PolicyError) in
                try ClientHandler(timeout: timeout, wakesMachine: wakesMachine, for: remote)
            }
            return
        }
        let opening = policy.opening
        guard let (interval, tolerance) = cadence(keepalive, kind, kind.intervals(under: opening)) else { return }
        if method == .some(.none) {
            policy.keepalive = nil
        } else if kind == .kernel {
            if let interval { policy.keepalive = KeepalivePolicy(idle: interval) }
        } else {
            policy.heartbeat = taken { () throws(PolicyError) in
                try Heartbeat(
                    kind, interval: interval, tolerance: tolerance, wakesMachine: wakesMachine,
                    isAdaptive: keepalive.adaptive, under: opening)
            }
        }
    }

    private mutating func taken<Value>(_ make: () throws(PolicyError) -> Value) -> Value? {
        do throws(PolicyError) {
            return try make()
        } catch {
            found.wrong(Self.field(of: error), error.reason)
            return nil
        }
    }

    private mutating func cadence(
        _ keepalive: ConnectionsAPI.Keepalive, _ kind: KeepaliveProtocol, _ intervals: ClosedRange<Duration>
    ) -> (interval: Duration?, tolerance: Duration?)? {
        let interval = duration(keepalive.intervalMilliseconds, Self.interval, intervals)
        if interval == nil, keepalive.intervalMilliseconds != nil { return nil }
        if kind == .kernel, let interval, interval.components.attoseconds != 0 {
            found.wrong(
                Self.interval, "\"\(interval.configurationText)\" is not in whole seconds, as the kernel takes it")
            return nil
        }
        let field = "keepalive.toleranceMilliseconds"
        let tolerance = duration(keepalive.toleranceMilliseconds, field, .zero...intervals.upperBound)
        if tolerance == nil, keepalive.toleranceMilliseconds != nil { return nil }
        let longest = interval ?? kind.figures.cadence.interval
        if let tolerance, tolerance >= longest {
            let text = "\"\(tolerance.configurationText)\" is not shorter than the interval"
            found.wrong(field, "\(text), \"\(longest.configurationText)\"")
            return nil
        }
        return (interval, tolerance)
    }

    private mutating func tellWhatHasNoEffect(
        _ keepalive: ConnectionsAPI.Keepalive, _ kind: KeepaliveProtocol, _ method: KeepaliveMethod?
    ) {
        guard kind == .kernel else { return }
        if keepalive.adaptive == true {
            found.withoutEffect("keepalive.adaptive", "without effect: the kernel's keepalive keeps its interval")
        }
        if keepalive.wakeMachine == true, method != .client {
            found.withoutEffect("keepalive.wakeMachine", "without effect: the kernel's keepalive wakes no machine")
        }
    }

    private mutating func bytes(
        _ text: String?, _ field: String, _ method: KeepaliveMethod?, atLeast least: Int
    ) -> [UInt8] {
        guard let text else { return [] }
        guard method == .custom else {
            found.wrong(field, "only a keepalive with protocol = \"custom\" has it")
            return []
        }
        do throws(EscapeError) {
            let bytes = try [UInt8](escapedText: text)
            let sizes = least...KeepaliveProtocol.longestCustom
            if !sizes.contains(bytes.count) {
                found.wrong(field, "\(bytes.count) bytes; from \(sizes.lowerBound) to \(sizes.upperBound)")
            }
            return bytes
        } catch {
            found.wrong(field, error.description)
            return []
        }
    }
}
