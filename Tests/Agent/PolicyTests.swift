// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneCoalescing
import DialtoneExpectations
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnection

/// From what a user writes to what the supervisor does.
struct PolicyTests {
    private static func load(_ remote: String, _ keepalive: String) throws -> LoadedConfiguration {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = '\(remote)'\nkeepalive = \(keepalive)\n"
        ])
        let files = ConfigurationFiles(main: "\(fixture.directory)/dialtone.toml")
        return try Configuration.load(files, ConfigurationChecks())
    }

    private static func policy(_ remote: String, _ keepalive: String) throws -> ConnectionPolicy {
        let settings = try #require(try load(remote, keepalive).configuration.connections.first)
        return try Self.policy(settings)
    }

    private static func policy(_ settings: ConnectionSettings) throws -> ConnectionPolicy {
        try #require(
            SettingsCheck(settings.settings, to: Remote(settings.remote), owner: 0, wake: settings.wake).policy)
    }

    @Test(arguments: [
        ("sip://h", "{}", Heartbeat(.crlf)),
        ("xmpps://h", "{}", Heartbeat(.whitespace)),
        ("mqtt://h", "{}", Heartbeat(.mqtt)),
        ("wss://h", "{ interval = '20s' }", Heartbeat(.websocket, interval: .seconds(20))),
        ("xmpp://h", "{ protocol = 'xmpp-ping' }", Heartbeat(.xmppPing)),
        (
            "tcp://h:1", "{ protocol = 'crlf', interval = '90s', tolerance = '5s', wake_machine = true }",
            Heartbeat(.crlf, interval: .seconds(90), tolerance: .seconds(5), wakesMachine: true)
        ),
        (
            "sip://h", "{ interval = '90s', adaptive = true }",
            Heartbeat(.crlf, interval: .seconds(90), isAdaptive: true)
        ),
        ("sip://h", "{ adaptive = false }", Heartbeat(.crlf, isAdaptive: false)),
        (
            "tcp://h:1", #"{ protocol = 'custom', send = 'PING\r\n', expect = "PONG\r\n" }"#,
            Heartbeat(.custom(send: Array("PING\r\n".utf8), expect: Array("PONG\r\n".utf8)))
        ),
        (
            "sip://h", #"{ protocol = 'custom', send = '\xC0\0' }"#,
            Heartbeat(.custom(send: [0xC0, 0x00], expect: []))
        ),
    ])
    func `a protocol is the agent's own keepalive, with the kernel's behind it`(
        remote: String, keepalive: String, heartbeat: Heartbeat
    ) throws {
        let policy = try Self.policy(remote, keepalive)
        #expect(policy.heartbeat == heartbeat)
        #expect(policy.socketOptions.keepalive.map { $0.idle > heartbeat.cadence.interval } == true)
    }

    @Test(arguments: [
        ("tcp://h:1", "{}", KeepalivePolicy()),
        ("tcp://h:1", "{ interval = '45s' }", KeepalivePolicy(idle: .seconds(45))),
        ("sip://h", "{ protocol = 'tcp', interval = '20s' }", KeepalivePolicy(idle: .seconds(20))),
        ("sip://h", "{ protocol = 'client' }", KeepalivePolicy()),
        ("sip://h", "{ protocol = 'none' }", nil),
    ])
    func `tcp is the kernel's alone, and none is neither`(
        remote: String, keepalive: String, kernel: KeepalivePolicy?
    ) throws {
        let policy = try Self.policy(remote, keepalive)
        #expect(policy.heartbeat == nil)
        #expect(policy.socketOptions.keepalive == kernel)
    }

    @Test(arguments: [
        ("tcp://h:1", "{ wake_machine = true }", ["connection.keepalive.wake_machine"]),
        ("tcp://h:1", "{ adaptive = true }", ["connection.keepalive.adaptive"]),
        ("tcp://h:1", "{ interval = '60s', tolerance = '10s' }", ["connection.keepalive.tolerance"]),
        ("sip://h", "{ protocol = 'tcp', tolerance = '10s' }", ["connection.keepalive.tolerance"]),
        ("sip://h", "{ protocol = 'client', tolerance = '10s' }", ["connection.keepalive.tolerance"]),
        (
            "sip://h", "{ protocol = 'none', interval = '60s', tolerance = '10s' }",
            ["connection.keepalive.interval", "connection.keepalive.tolerance"]
        ),
        ("sip://h", "{ interval = '60s', tolerance = '10s' }", []),
        ("tcp://h:1", "{ protocol = 'crlf', tolerance = '10s' }", []),
        ("sip://h", "{ wake_machine = true }", []),
        ("sip://h", "{ protocol = 'client', wake_machine = true }", []),
        ("tcp://h:1", "{ protocol = 'mqtt' }", []),
    ])
    func `what has no effect is told`(remote: String, keepalive: String, keys: [String]) throws {
        #expect(try Self.load(remote, keepalive).notices.map(\.key) == keys)
    }

    @Test(arguments: [
        (
            "tcp://h:1", "{ interval = '500ms' }",
            "26: connection.keepalive.interval: \"500ms\" is out of range; from 1s to 9h6m7s"
        ),
        (
            "tcp://h:1", "{ interval = '1s500ms' }",
            "26: connection.keepalive.interval: \"1s500ms\" is not in whole seconds, as the kernel takes it"
        ),
        (
            "sip://h", "{ interval = '29s' }",
            "26: connection.keepalive.interval: \"29s\" is out of range; from 30s to 30m"
        ),
        (
            "sip://h", "{ protocol = 'websocket', interval = '9s' }",
            "50: connection.keepalive.interval: \"9s\" is out of range; from 10s to 1h"
        ),
        (
            "mqtt://h", "{ interval = '58s' }",
            "26: connection.keepalive.interval: \"58s\" is out of range; from 10s to 57s"
        ),
        ("tcp://h:1", "{ protocol = 'custom' }", "13: connection.keepalive.send: missing"),
        (
            "tcp://h:1", "{ protocol = 'custom', send = '' }",
            "43: connection.keepalive.send: 0 bytes; from 1 to 1024"
        ),
        (
            "tcp://h:1", #"{ protocol = 'custom', send = 'a\qb' }"#,
            #"43: connection.keepalive.send: "\q" is no escape; there are \r, \n, \t, \0, \\ and \xNN with two "#
                + "hexadecimal digits"
        ),
        (
            "sip://h", "{ expect = 'x' }",
            "24: connection.keepalive.expect: only a keepalive with protocol = \"custom\" has it"
        ),
        (
            "sip://h", "{ wake_machine = 1 }",
            "30: connection.keepalive.wake_machine: expected true or false, found an integer"
        ),
    ])
    func `a slip is told with its place and key, by the limits of the protocol`(
        remote: String, keepalive: String, message: String
    ) throws {
        let error = #expect(throws: ConfigurationError.self) { try Self.load(remote, keepalive) }
        let issues = try #require(error?.issues)
        #expect(issues.map(\.description).map { $0.split(separator: "dialtone.toml:").last } == ["4:\(message)"])
    }

    @Test(arguments: [
        ("", []), ("a é", Array("a é".utf8)), (#"\r\n\t\0\\"#, [13, 10, 9, 0, 92]), (#"\x00\xfF0"#, [0, 255, 48]),
    ])
    func `escapes stand for bytes`(text: String, bytes: [UInt8]) throws {
        #expect(try [UInt8](escapedText: text) == bytes)
    }

    @Test(arguments: [(#"\"#, #"\"#), (#"\é"#, #"\é"#), (#"\x"#, #"\x"#), (#"\x1"#, #"\x1"#), (#"\x+1"#, #"\x+1"#)])
    func `other escapes are refused`(text: String, escape: String) {
        #expect(throws: EscapeError(escape: escape)) { try [UInt8](escapedText: text) }
    }

    @Test func `what a client asks for is the same, and only the privileged wake the machine`() throws {
        let keepalive = ConnectionsAPI.Keepalive(
            protocol: "custom", interval: .seconds(60), tolerance: .seconds(1), send: #"\x01"#, expect: "ok",
            wakeMachine: true)
        let policy = try ConnectionPolicy(.init(remote: "tcp://h:1", settings: .init(keepalive: keepalive)), user: 0)
        #expect(
            policy.heartbeat
                == Heartbeat(
                    .custom(send: [1], expect: Array("ok".utf8)), interval: .seconds(60), tolerance: .seconds(1),
                    wakesMachine: true))
        #expect(throws: (any Error).self) {
            try ConnectionPolicy(.init(remote: "tcp://h:1", settings: .init(keepalive: keepalive)), user: 4711)
        }
    }

    @Test(arguments: [
        ("traffic_class = 'ef'\npriority = 0", TrafficClass("ef"), 0), ("traffic_class = 34", TrafficClass("af41"), 6),
        ("traffic_class = 'none'", .unmarked, 6), ("", .signaling, 6),
    ])
    func `how packets are marked is the user's choice, in the files and over the socket`(
        text: String, trafficClass: TrafficClass?, priority: Int
    ) throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = 'sip://h'\n\(text)"
        ])
        let settings = try #require(try fixture.load().configuration.connections.first)
        let policy = try Self.policy(settings)
        #expect(policy.trafficClass == trafficClass && policy.priority == priority)
        let wire = try ConnectionPolicy(
            .init(remote: "sip://h", settings: .init(trafficClass: trafficClass?.description, priority: priority)),
            user: 0)
        #expect(wire.trafficClass == trafficClass && wire.priority == priority)
    }

    @Test func `to move to a better path, and to try other uplinks, is the user's choice and the default`() throws {
        func choices(_ policy: ConnectionPolicy) -> [Bool] { [policy.movesToBetterPath, policy.triesOtherUplinks] }
        let fixture = try ConfigurationFixture([
            "dialtone.toml": """
            [[connection]]
            name = 'a'
            remote = 'sip://h'
            make_before_break = false
            other_uplinks = false
            """
        ])
        var settings = try #require(try fixture.load().configuration.connections.first)
        expect(choices(try Self.policy(settings)), is: [false, false])
        (settings.settings.makeBeforeBreak, settings.settings.otherUplinks) = (nil, nil)
        expect(choices(try Self.policy(settings)), is: [true, true])
        let wire = ConnectionsAPI.Open.Parameters(
            remote: "sip://h", settings: .init(makeBeforeBreak: false, otherUplinks: false))
        expect(choices(try ConnectionPolicy(wire, user: 0)), is: [false, false])
        expect(choices(try ConnectionPolicy(.init(remote: "sip://h"), user: 0)), is: [true, true])
    }

    @Test(arguments: [
        ("", false), ("keep_abandoned = true", true), ("wake = { exec = ['/bin/cat'] }", false),
        ("wake = { exec = ['/bin/cat'], stdio = true }", true),
        ("keep_abandoned = false\nwake = { exec = ['/bin/cat'], stdio = true }", false),
    ])
    func `a flow that was left in the middle is kept for programs on standard input, and where the user says so`(
        text: String, isKept: Bool
    ) throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://h:1'\nowner = 'kiosk'\n\(text)"
        ])
        let settings = try #require(try fixture.load().configuration.connections.first)
        #expect(try Self.policy(settings).keepsAbandonedFlow == isKept)
        let wire = try ConnectionPolicy(.init(remote: "tcp://h:1", settings: .init(keepAbandoned: isKept)), user: 0)
        #expect(wire.keepsAbandonedFlow == isKept)
    }
}
