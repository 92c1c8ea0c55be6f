// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

/// Every mistake in the settings is told at once, each of them once, and nothing that follows from one alone.
@Suite struct FollowUpErrorTests {
    /// The keys of the errors in a connection with these lines.
    private func errors(_ lines: String, to remote: String) throws -> [String] {
        try errors("[[connection]]\nname = 'office'\nremote = '\(remote)'\n\(lines)\n")
    }

    private func errors(_ text: String) throws -> [String] {
        let fixture = try ConfigurationFixture(["dialtone.toml": text])
        return fixture.errors().map { error in
            String((error.split(separator: ": ").dropFirst().first ?? "").dropFirst("connection.".count))
        }
    }

    /// A CONNECT of MQTT that promises a packet in each 200 s.
    private static let connect = #"\x10\x0c\x00\x04MQTT\x04\x00\x00\xc8"#

    @Test(arguments: [
        (#"opening = [{ send = 'CONNECT', expect = '\x20\q' }]"#, "150s", ["opening.expect"]),
        (#"opening = [{ send = 'CONNECT', expect = 7 }]"#, "150s", ["opening.expect"]),
        (#"opening = [{ send = 'CONNECT', expect = '\x20\q' }]"#, "191s", ["opening.expect", "keepalive.interval"]),
        (
            #"opening = [{ send = 'CONNECT', expect = 'y' }, { send = '\q', expect = 'y' }]"#, "150s",
            ["opening.send"]
        ),
        (#"opening = [{ send = '\x10\q', expect = 'y' }]"#, "150s", ["opening.send"]),
        (#"opening = [{ send = '\x10\q', expect = 'y' }]"#, "5s", ["opening.send", "keepalive.interval"]),
        (#"opening = [{ send = '\x10\q', expect = 'y' }]"#, "20h", ["opening.send", "keepalive.interval"]),
        ("opening = [{ send_file = '/nowhere/at/all', expect = 'y' }]", "150s", ["opening.send_file"]),
        ("opening = [{ sent = 'CONNECT', expect = 'y' }]", "150s", ["opening.sent"]),
        ("opening = ['login', { send = 'x', expect = 'y' }]", "150s", ["opening"]),
        ("opening = 'login'", "150s", ["opening"]),
        ("openning = [{ send = 'CONNECT', expect = 'y' }]", "150s", ["openning"]),
        ("opening = [{ send = 'x', expect = 'y' }]", "150s", ["keepalive.interval"]),
    ])
    func `what a client promises in an opening that is wrong is not forgotten`(
        opening: String, interval: String, keys: [String]
    ) throws {
        let opening = opening.replacing("CONNECT", with: Self.connect)
        #expect(try errors("\(opening)\nkeepalive.interval = '\(interval)'", to: "mqtt://h") == keys)
    }

    @Test(arguments: [
        ("opening = [{ text = 'x' }]", ["opening.text"]),
        ("opening = [{ send = 'x', expect = {} }]", ["opening.expect.bytes"]),
        ("opening = [{ send = 'x', expect = { length = 'y' } }]", ["opening.expect.length"]),
        ("opening = [{ send = 'x', expect = { untl = 'y' } }]", ["opening.expect.untl"]),
        (
            #"opening = [{ send = 'x', expect = { until = '\q', message = 'mqtt' } }]"#,
            ["opening.expect.until", "opening.expect.message"]
        ),
        (#"opening = [{ send = '\q' }, {}]"#, ["opening", "opening.send"]),
        (#"opening = [{ send = 'x', expect = '\q', overtaken_by = ['y'] }]"#, ["opening.expect"]),
    ])
    func `an opening is wrong by what is told of it, and by nothing else`(line: String, keys: [String]) throws {
        #expect(try errors(line, to: "mqtt://h") == keys)
    }

    @Test(arguments: [
        ("{ initial = '1ms', maximum = '500ms' }", ["initial"]), ("{ initial = '10m', maximum = '48h' }", ["maximum"]),
        ("{ initial = 5, maximum = '500ms' }", ["initial"]), ("{ initial = '10m', maximum = true }", ["maximum"]),
        ("{ intial = '200ms', maximum = '500ms' }", ["intial"]),
        ("{ initial = '1ms', factor = 0.5, maximum = '48h' }", ["initial", "factor", "maximum"]),
        ("{ initial = '10m', factor = 0.5, maximum = '1m' }", ["factor", "maximum"]),
        ("{ initial = '10m' }", ["initial"]), ("{ maximum = '500ms' }", ["maximum"]),
    ])
    func `a wait that was refused is compared with nothing`(backoff: String, keys: [String]) throws {
        #expect(try errors("backoff = \(backoff)", to: "tcp://h:1") == keys.map { "backoff.\($0)" })
    }

    @Test(arguments: [
        ("tcp://h:1", "priority = 7\ngrace = 5\nmark = 0", ["priority", "grace", "mark"]),
        ("tcp://h:1", "priority = 7\ncolour = 'red'", ["priority", "colour"]),
        (
            "nowhere",
            "priority = 7\nkeepalive = { protocol = 'crlf', interval = '1s' }\n"
                + "backoff = { initial = '10m', maximum = '1m' }\ntls.server_name = 'a b'",
            ["remote", "priority", "keepalive.interval", "backoff.maximum", "tls.server_name"]
        ),
        ("nowhere", "keepalive.interval = '1s'", ["remote"]), ("nowhere", "backoff.initial = '10m'", ["remote"]),
        ("nowhere", "tls.verify = false", ["remote"]),
        ("tcp://h:1", "tls.verify = false\npriority = 7", ["tls", "priority"]),
        (
            "tls://h:1", "tls = { server_name = 'a b', alpn = [''] }\npriority = 7",
            ["tls.server_name", "tls.alpn", "priority"]
        ),
        ("tls://h:1", "tls = { certifcate = '/c.pem', key = '/k.pem' }", ["tls.certifcate"]),
        ("tls://h:1", "tls = { certificate = 1, key = '/k.pem' }", ["tls.certificate"]),
    ])
    func `a mistake hides no other`(remote: String, lines: String, keys: [String]) throws {
        #expect(try errors(lines, to: remote) == keys)
    }

    @Test(arguments: [
        ("{ protocol = 'smoke', interval = '1ms', send = 'x' }", ["protocol"]),
        ("{ protocol = 5, interval = '1ms', tolerance = '1h' }", ["protocol"]),
        ("{ protocl = 'crlf', interval = '1ms' }", ["protocl"]),
        ("{ protocol = 'custom', sned = 'x' }", ["sned"]), ("{ protocol = 'custom', send = 5 }", ["send"]),
        ("{ protocol = 'custom', interval = '1s' }", ["send", "interval"]),
        ("{ protocol = 'custom', send = 'LONG' }", ["send"]),
        ("{ protocol = 'crlf', interval = 5, tolerance = '3m' }", ["interval"]),
        ("{ protocol = 'crlf', interval = '1s', tolerance = '3m' }", ["interval"]),
        ("{ protocol = 'crlf', interval = '1s', tolerance = '31m' }", ["interval", "tolerance"]),
    ])
    func `a keepalive is wrong by what is told of it, and by nothing else`(keepalive: String, keys: [String]) throws {
        let text = keepalive.replacing("LONG", with: String(repeating: "x", count: 1025))
        #expect(try errors("keepalive = \(text)", to: "tcp://h:1") == keys.map { "keepalive.\($0)" })
    }

    @Test(arguments: [
        ("owner = 'nobody-here'\nwake.exec = ['/bin/true']", ["owner"]),
        ("ownr = 'kiosk'\nwake.exec = ['/bin/true']", ["ownr"]),
        ("owner = 1001\nwake = { exce = ['/bin/true'], stdio = true, launch = 'always' }", ["wake.exce"]),
        ("owner = 1001\nwake = { exec = '/bin/true', stdio = true, launch = 'always' }", ["wake.exec"]),
        ("owner = 1001\nwake = { exec = [1], stdio = true }", ["wake.exec"]),
        ("wake = { unit = 1, launch = 'always' }", ["wake.unit"]),
    ])
    func `a wake lacks nothing that could not be read`(lines: String, keys: [String]) throws {
        #expect(try errors(lines, to: "tcp://h:1") == keys)
    }

    @Test func `a key that is misspelled is not missing as well`() throws {
        #expect(try errors("[[connection]]\nnmae = 'a'\nremote = 'tcp://h:1'") == ["nmae"])
        #expect(try errors("[[connection]]\nname = 'a'\ncolour = 'red'") == ["remote", "colour"])
    }

    @Test func `a client is told no more than a file`() throws {
        let remote = try Remote("mqtt://h")
        let settings = ConnectionsAPI.Settings(
            keepalive: .init(interval: .seconds(150)),
            opening: [.init(send: Self.connect, expect: .init(bytes: #"\q"#))],
            backoff: .init(initial: .milliseconds(1), maximum: .milliseconds(500)), priority: 7)
        let check = SettingsCheck(settings, to: remote, owner: 0)
        let fields = ["opening[0].expect.bytes", "backoff.initialMilliseconds", "priority"]
        #expect(check.problems.map(\.field) == fields)
        #expect(check.policy == nil)
    }
}
