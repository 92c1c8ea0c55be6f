// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneAPI
@testable internal import DialtoneAgent
@testable internal import DialtoneCoalescing
@testable internal import DialtoneConnection

extension FuzzTarget {
    /// What a client may ask for, and a connection that lives with it: the settings, the state machine in virtual time
    /// among whatever networks and servers do, and the planner of its keepalives.
    static let machine = FuzzTarget(name: "machine") { bytes in
        var draw = Draw(bytes)
        guard let policy = try? ConnectionPolicy(draw.parameters(), user: 1000) else { return }
        var life = ConnectionLife(policy, &draw)
        for _ in 0..<256 where !draw.isOver { life.step(&draw) }
    }

    /// The same settings, and no life with them: many more of them in a second.
    static let policies = FuzzTarget(name: "policies") { bytes in
        var draw = Draw(bytes)
        guard let policy = try? ConnectionPolicy(draw.parameters(), user: draw.chance() ? 0 : 1000) else { return }
        _ = policy.socketOptions
        guard let heartbeat = policy.heartbeat?.keeping(policy.opening) else { return }
        var planner = TimerCoalescer()
        let token = planner.add(heartbeat.cadence, after: .seconds(1))
        for interval in [heartbeat.bounds?.lowerBound, heartbeat.bounds?.upperBound].compactMap(\.self) {
            planner.change(token, to: heartbeat.cadence(each: interval), after: .seconds(2))
        }
        if let next = planner.nextWake { precondition(!planner.take(at: next).isEmpty) }
    }
}

extension Draw {
    /// The parameters of `Open`, most of them such that the daemon takes them.
    mutating func parameters() -> ConnectionsAPI.Open.Parameters {
        .init(remote: remote(), name: "c", settings: maybe { $0.settings() })
    }

    private mutating func settings() -> ConnectionsAPI.Settings {
        var settings = ConnectionsAPI.Settings()
        settings.keepalive = maybe { $0.keepalive() }
        settings.backoff = maybe { draw in
            ConnectionsAPI.Backoff(
                initial: draw.maybe { $0.duration() },
                maximum: draw.maybe { $0.duration() },
                factor: draw.maybe { $0.fraction() }, stableAfter: draw.maybe { $0.duration() })
        }
        settings.opening = maybe { draw in draw.several(3) { $0.step() } }
        settings.tls = maybe { draw in
            ConnectionsAPI.TLS(
                verify: draw.maybe { $0.chance() }, minVersion: draw.maybe { $0.pick(["1.2", "1.3", "1.4"]) },
                serverName: draw.maybe { $0.pick(["a.example", "192.0.2.1", ""]) },
                alpn: draw.maybe { draw in draw.several(3) { $0.pick(["sip", "mqtt", ""]) } })
        }
        settings.connectTimeout = maybe { $0.duration() }
        settings.userTimeout = maybe { $0.duration() }
        settings.keepAbandoned = maybe { $0.chance() }
        settings.makeBeforeBreak = maybe { $0.chance() }
        settings.trafficClass = maybe { $0.pick(["signaling", "46", "-1", "64", ""]) }
        settings.priority = maybe { $0.number() }
        settings.mark = maybe { $0.number() }
        return settings
    }

    private mutating func remote() -> String {
        if byte() == 255 { return text() }
        let scheme = pick(["tcp", "tls", "sip", "sips", "mqtt", "mqtts", "ws", "wss", "xmpp", "xmpps"])
        let host = pick(["a.example", "192.0.2.1", "[2001:db8::1]", "127.0.0.1"])
        return "\(scheme)://\(host)\(pick(["", ":1", ":65535", ":0", ":65536"]))"
    }

    private mutating func keepalive() -> ConnectionsAPI.Keepalive {
        let kinds = [
            "tcp", "crlf", "whitespace", "xmpp-ping", "mqtt", "websocket", "custom", "client", "none", "unheard-of",
        ]
        var keepalive = ConnectionsAPI.Keepalive()
        keepalive.protocol = maybe { $0.pick(kinds) }
        keepalive.interval = maybe { $0.duration() }
        keepalive.tolerance = maybe { $0.duration() }
        keepalive.adaptive = maybe { $0.chance() }
        if keepalive.protocol == "custom" {
            keepalive.send = maybe { $0.pick(["ping", "\\x00", "\\", ""]) }
            keepalive.expect = maybe { $0.pick(["pong", "\\x00", "\\x0", ""]) }
        }
        return keepalive
    }

    private mutating func step() -> ConnectionsAPI.OpeningStep {
        ConnectionsAPI.OpeningStep(
            // The Keep Alive of a CONNECT is what the daemon reads of an opening itself.
            send: pick(["hello", "\\x10\\x0c\\x00\\x04MQTT\\x04\\x02\\x00\\x00\\x00\\x00", text()]),
            expect: maybe { draw in
                ConnectionsAPI.OpeningAnswer(
                    bytes: draw.maybe { $0.pick(["\\x20\\x02", "ok", "\\?\\x2?"]) }, length: draw.maybe { $0.number() },
                    until: draw.maybe { $0.pick(["\\r\\n", ""]) },
                    message: draw.maybe { $0.pick(["mqtt", "websocket"]) },
                    contains: draw.maybe { $0.pick(["ok", ""]) })
            },
            overtakenBy: maybe { draw in draw.several(2) { $0.pick(["x", ""]) } })
    }
}
