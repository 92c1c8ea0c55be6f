// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct RemoteTests {
    @Test(arguments: [
        ("tcp://192.0.2.7:5060", "tcp://192.0.2.7:5060"),
        ("TCP://SIP.Example.COM.:5060", "tcp://sip.example.com:5060"),
        ("tcp://[2001:DB8::7]:5060", "tcp://[2001:db8::7]:5060"),
        ("sip://sip.example.com", "sip://sip.example.com"),
        ("sips://[2001:db8::7]", "sips://[2001:db8::7]:5061"),
        ("xmpp://x.example", "xmpp://x.example"),
        ("xmpps://x.example", "xmpps://x.example"),
        ("mqtt://broker:", "mqtt://broker"),
        ("mqtts://broker", "mqtts://broker"),
        ("mqtt://broker/", "mqtt://broker"),
        ("ws://push.example/v1?token=a", "ws://push.example:80/v1?token=a"),
        ("ws://push.example?token=a", "ws://push.example:80/?token=a"),
        ("wss://push.example:8443", "wss://push.example:8443"),
        ("tls://my_host-1:1", "tls://my_host-1:1"),
        ("tcp://h:65535", "tcp://h:65535"),
    ])
    func `a remote is read and written canonically`(text: String, canonical: String) throws {
        let remote = try Remote(text)
        #expect(remote.description == canonical)
        #expect(try Remote(canonical) == remote)
    }

    @Test(arguments: [
        ("", RemoteError.missingScheme),
        ("192.0.2.7:5060", .missingScheme),
        ("sip:alice@example.com", .missingScheme),
        ("http://example.com", .unknownScheme("http")),
        ("://example.com:1", .unknownScheme("")),
        ("tcp://", .emptyHost),
        ("tcp://:5060", .emptyHost),
        ("tcp://[]:5060", .emptyHost),
        ("tcp://host", .missingPort(.tcp)),
        ("tls://host:", .missingPort(.tls)),
        ("tcp://host:0", .invalidPort("0")),
        ("tcp://host:65536", .invalidPort("65536")),
        ("tcp://host:+80", .invalidPort("+80")),
        ("tcp://host:http", .invalidPort("http")),
        ("tcp://alice:secret@host:5060", .userInformation),
        ("mqtt://alice@host", .userInformation),
        ("tcp://host:1/path", .unexpectedResource(.tcp, "/path")),
        ("mqtt://host?x=1", .unexpectedResource(.mqtt, "?x=1")),
        ("ws://host/" + String(repeating: "a", count: 4087), .tooLong(4097)),
        ("ws://host/a b", .invalidResource("/a b")),
        ("ws://host/a#b", .invalidResource("/a#b")),
    ])
    func `what is wrong is named`(text: String, error: RemoteError) {
        #expect(throws: error) { try Remote(text) }
        #expect(!error.description.isEmpty)
    }

    @Test(arguments: [
        ("tcp://2001:db8::7:5060", "brackets"),
        ("tcp://[2001:db8::7:5060", "closing bracket"),
        ("tcp://[2001:db8::7]5060", "only a port"),
        ("tcp://[192.0.2.7]:5060", "not an IPv6 address"),
        // Each makes one character with the bracket beside it.
        ("tcp://[\u{301}::1]:5060", "not an IPv6 address"),
        ("tcp://[::1\u{600}]:5060", "not an IPv6 address"),
        ("tcp://[fe80::1%eth0]:5060", "zone"),
        ("tcp://0.0.0.0:5060", "unspecified"),
        ("tcp://300.1.1.1:5060", "not a complete IPv4 address"),
        ("tcp://10.1:5060", "not a complete IPv4 address"),
        ("tcp://a..b:5060", "empty"),
        ("tcp://-a.example:5060", "hyphen"),
        ("tcp://a b:5060", "cannot stand"),
        ("tcp://café.example:5060", "xn--"),
        ("tcp://\(String(repeating: "a", count: 64)):5060", "63"),
        ("tcp://\(String(repeating: "a.", count: 127))aa:5060", "253"),
    ])
    func `a host that is none is refused with the reason`(text: String, mention: String) throws {
        let error = try #require(throws: RemoteError.self) { try Remote(text) }
        guard case .invalidHost = error else {
            Issue.record("\(error)")
            return
        }
        #expect(error.description.contains(mention), "\(error)")
    }

    @Test func `each scheme knows its family`() {
        for scheme in Remote.Scheme.allCases {
            #expect(scheme.backoff == (scheme.rawValue.hasPrefix("sip") ? .sip : .general))
            #expect(scheme.needsTLS == (scheme == .tls || scheme.rawValue.count > 2 && scheme.rawValue.hasSuffix("s")))
        }
        #expect(!Remote.Scheme.ws.needsTLS && Remote.Scheme.wss.needsTLS)
    }
}

@Suite struct PolicyValidationTests {
    @Test func `the defaults are valid`() throws {
        for scheme in Remote.Scheme.allCases {
            try ConnectionPolicy(remote: Remote("\(scheme.rawValue)://host:1")).validate()
        }
    }

    @Test func `what TLS cannot be told is named`() throws {
        func error(_ remote: String, _ change: (inout TLSPolicy) -> Void) throws -> String? {
            var policy = ConnectionPolicy(remote: try Remote(remote))
            change(&policy.tls)
            do {
                try policy.validate()
                return nil
            } catch {
                return "\(error)"
            }
        }
        let secured = "tls://host:1"
        #expect(try error(secured) { $0.authorities = "/etc/ca.pem" } == nil)
        #expect(
            try error("tcp://host:1") { $0.verifiesCertificate = false }
                == "tls: tcp has no TLS; tls, sips, xmpps, mqtts, wss have")
        #expect(try error(secured) { $0.authorities = "ca.pem" } == "tls: \"ca.pem\" is not an absolute path")
        #expect(
            try error(secured) { $0.identity = .init(certificate: "/a.pem", passwordFile: "b") }
                == "tls: \"b\" is not an absolute path")
        #expect(try error(secured) { $0.serverName = "192.0.2.7" } == nil)
        #expect(
            try error(secured) { $0.serverName = "a b" }
                == "tls.serverName: \"a b\" is not a host: \" \" cannot stand in a name")
        for protocols in [[""], [String(repeating: "a", count: 256)], [String](repeating: "a", count: 17)] {
            #expect(
                try error(secured) { $0.applicationProtocols = protocols }
                    == "tls.applicationProtocols: not up to 16 names of 1 to 255 bytes")
        }
    }

    @Test func `a figure out of range is named`() throws {
        let cases: [(String, (inout ConnectionPolicy) -> Void)] = [
            ("backoff.base", { $0.backoff.base = .zero }),
            ("backoff.ceiling", { $0.backoff.ceiling = .milliseconds(500) }),
            ("backoff.multiplier", { $0.backoff.multiplier = 0.5 }),
            ("backoff.multiplier", { $0.backoff.multiplier = .nan }),
            ("keepalive.idle", { $0.keepalive?.idle = .seconds(32_768) }),
            ("keepalive.idle", { $0.keepalive?.idle = .milliseconds(1500) }),
            ("keepalive.interval", { $0.keepalive?.interval = .zero }),
            ("keepalive.count", { $0.keepalive?.count = 128 }),
            (
                "keepalive.answerDeadline",
                {
                    $0.heartbeat = Heartbeat(.crlf)
                    $0.heartbeat?.answerDeadline = .milliseconds(999)
                }
            ),
            ("connectTimeout", { $0.connectTimeout = .milliseconds(999) }),
            ("userTimeout", { $0.userTimeout = .zero }), ("grace", { $0.grace = .seconds(61) }),
            ("stableAfter", { $0.stableAfter = .seconds(9) }),
        ]
        for (field, change) in cases {
            var policy = ConnectionPolicy.office
            change(&policy)
            let error = #expect(throws: PolicyError.self) { try policy.validate() }
            #expect(error?.field == field)
        }
    }

    @Test func `the user timeout follows from the keepalive`() {
        var policy = ConnectionPolicy.office
        #expect(policy.socketOptions.userTimeout == .seconds(150))
        policy.keepalive = nil
        #expect(policy.socketOptions == SocketOptions(keepalive: nil, userTimeout: .seconds(150)))
        policy.userTimeout = .seconds(20)
        #expect(policy.socketOptions.userTimeout == .seconds(20))
    }

    @Test(arguments: [
        (Duration.seconds(60), Duration.seconds(61)), (.seconds(60) + .milliseconds(1), .seconds(62)),
        (.seconds(1800), .seconds(1801)),
    ])
    func `the kernel's keepalive waits longer than the agent's, and is given the time for all its probes`(
        interval: Duration, idle: Duration
    ) throws {
        var policy = ConnectionPolicy(remote: try Remote("sip://h:1"))
        policy.heartbeat = Heartbeat(.crlf, interval: interval)
        try policy.validate()
        #expect(policy.socketOptions.keepalive == KeepalivePolicy(idle: idle))
        #expect(policy.socketOptions.userTimeout == idle + .seconds(30))
        policy.keepalive = nil
        #expect(policy.socketOptions.keepalive == nil)
        #expect(policy.socketOptions.userTimeout == interval + .seconds(10))
    }
}

@Suite struct BackoffPolicyTests {
    @Test func `the delay stays in its range`() {
        for policy in [BackoffPolicy.sip, .general, .slow, .brief] {
            for failures in [0, 1, 5, 1000] {
                let range = policy.range(afterFailures: failures)
                for fraction in [0, 0.25, 0.999_999] {
                    var random = FixedRandom(fraction: fraction)
                    #expect(range.contains(policy.delay(afterFailures: failures, using: &random)))
                }
                #expect(range.upperBound <= policy.ceiling)
            }
        }
        #expect(BackoffPolicy.sip.range(afterFailures: 3) == .seconds(120)...(.seconds(240)))
        #expect(BackoffPolicy.general.range(afterFailures: 0) == .zero...(.seconds(10)))
    }
}
