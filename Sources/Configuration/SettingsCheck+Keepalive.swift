// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtonePlatform

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
    private static let tolerance = "keepalive.toleranceMilliseconds"

    /// What keeps the flows alive. The protocol, which is the scheme's where none is named, decides what else may be
    /// said, and so does an opening that promises the server how often it hears of its client.
    mutating func keepAlive(_ policy: inout ConnectionPolicy?) {
        guard let keepalive = settings.keepalive, keepalive != ConnectionsAPI.Keepalive() else { return }
        let method: KeepaliveMethod? = choice(keepalive.protocol, "keepalive.protocol")
        // Nothing can be said of the rest where the protocol is wrong.
        if method == nil, keepalive.protocol != nil || unread.mayContain("keepalive.protocol") { return }
        let send = bytes(keepalive.send, "keepalive.send", method, atLeast: 1)
        let expect = bytes(keepalive.expect, "keepalive.expect", method, atLeast: 0)
        if method == .custom, keepalive.send == nil, !unread.mayContain("keepalive.send") {
            found.wrong("keepalive.send", "missing")
        }
        let schemes: KeepaliveProtocol? = remote.map { $0.scheme.heartbeat?.kind ?? .kernel }
        guard let kind = method.map({ $0.kind(send: send, expect: expect) }) ?? schemes else { return }
        policy?.heartbeat = nil
        if method == .client {
            tellWhatHasNoEffect(keepalive, kind, method)
            let made = handler(keepalive)
            policy?.handler = made
            return
        }
        let (interval, tolerance) = cadence(keepalive, kind)
        tellWhatHasNoEffect(keepalive, kind, method)
        // No policy is made of settings of which some are wrong.
        guard found.areHarmless, unread.isEmpty, let opening = saidFirst else { return }
        if method == .some(.none) {
            policy?.keepalive = nil
        } else if kind == .kernel {
            if let interval { policy?.keepalive = KeepalivePolicy(idle: interval) }
        } else {
            let heartbeat = taken { () throws(PolicyError) in
                try Heartbeat(
                    kind, interval: interval, tolerance: tolerance, wakesMachine: keepalive.wakeMachine ?? false,
                    isAdaptive: keepalive.adaptive, under: opening)
            }
            policy?.heartbeat = heartbeat
        }
    }

    /// When the client is called. The kernel still probes: that finds a dead peer without waking the client.
    private mutating func handler(_ keepalive: ConnectionsAPI.Keepalive) -> ClientHandler? {
        guard let remote else { return nil }
        let timeout = keepalive.interval ?? ClientHandler.usualTimeout
        return taken { () throws(PolicyError) in
            try ClientHandler(timeout: timeout, wakesMachine: keepalive.wakeMachine ?? false, for: remote)
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
        _ keepalive: ConnectionsAPI.Keepalive, _ kind: KeepaliveProtocol
    ) -> (interval: Duration?, tolerance: Duration?) {
        let intervals = allowedIntervals(of: kind)
        var interval = duration(keepalive.interval, Self.interval, intervals)
        if kind == .kernel, let given = interval, given.components.attoseconds != 0 {
            found.wrong(
                Self.interval, "\"\(given.configurationText)\" is not in whole seconds, as the kernel takes it")
            interval = nil
        }
        let tolerance = duration(keepalive.tolerance, Self.tolerance, .zero...intervals.upperBound)
        let usual = standard(kind.figures.cadence.interval, for: keepalive.interval, Self.interval)
        if let tolerance, let longest = interval ?? usual, tolerance >= longest {
            let text = "\"\(tolerance.configurationText)\" is not shorter than the interval"
            found.wrong(Self.tolerance, "\(text), \"\(longest.configurationText)\"")
        }
        return (interval, tolerance)
    }

    /// The intervals that may be chosen. Where it is not known what the client promises its server, all that it could
    /// promise.
    private func allowedIntervals(of kind: KeepaliveProtocol) -> ClosedRange<Duration> {
        if let saidFirst { return kind.intervals(under: saidFirst) }
        let usual = kind.figures.intervals
        guard kind == .mqtt else { return usual }
        // The Keep Alive of a CONNECT has two bytes.
        return usual.lowerBound...KeepaliveFigures.mqtt(keepAlive: .seconds(UInt16.max)).intervals.upperBound
    }

    private mutating func tellWhatHasNoEffect(
        _ keepalive: ConnectionsAPI.Keepalive, _ kind: KeepaliveProtocol, _ method: KeepaliveMethod?
    ) {
        guard kind == .kernel else { return }
        let isOff = method == .some(.none)
        if keepalive.adaptive == true {
            withoutEffect("keepalive.adaptive", isOff ? nil : "the kernel's keepalive keeps its interval")
        }
        if keepalive.wakeMachine == true, method != .client {
            withoutEffect("keepalive.wakeMachine", isOff ? nil : "the kernel's keepalive wakes no machine")
        }
        if keepalive.interval != nil, isOff { withoutEffect(Self.interval, nil) }
        if keepalive.tolerance != nil {
            let kernels = "the kernel's keepalive shares no wake-up with others"
            let clients = "the agent itself decides how much earlier it calls the client"
            withoutEffect(Self.tolerance, isOff ? nil : method == .client ? clients : kernels)
        }
    }

    /// Tells of a field that is right and does nothing.
    ///
    /// - Parameter reason: why; `nil` where nothing at all is sent.
    private mutating func withoutEffect(_ field: String, _ reason: String?) {
        guard !found.all.contains(where: { $0.field == field }) else { return }
        found.withoutEffect(field, "without effect: \(reason ?? "nothing is sent")")
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
