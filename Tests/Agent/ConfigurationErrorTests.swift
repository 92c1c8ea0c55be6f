// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

private let methods = "one of tcp, crlf, whitespace, xmpp-ping, mqtt, websocket, custom, client, none"
private let noScheme =
    "the scheme is missing: write tcp://host:port or another scheme (tcp, tls, sip, sips, xmpp, xmpps, mqtt, mqtts, "
    + "ws, wss)"
private let signals = "one of SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGURG, SIGIO"

struct ConfigurationErrorTests {
    /// A connection that is right but for the line that a test adds, which is line 4.
    private static let connection = "[[connection]]\nname = 'office'\nremote = 'tcp://sip.example.com:5060'\n"

    @Test(arguments: [
        ("intervall = 1", "4:1: connection.intervall: unknown key"),
        (
            "keepalive = { intervall = '60s' }",
            "4:15: connection.keepalive.intervall: unknown key; did you mean \"interval\"?"
        ),
        ("keepalvie = {}", "4:1: connection.keepalvie: unknown key; did you mean \"keepalive\"?"),
        ("connectTimeout = '5s'", "4:1: connection.connectTimeout: unknown key; did you mean \"connect_timeout\"?"),
        ("mrak = 1", "4:1: connection.mrak: unknown key; did you mean \"mark\"?"),
        ("keepalive = 'crlf'", "4:13: connection.keepalive: expected a table, found a string"),
        (
            "keepalive.interval = 120",
            "4:22: connection.keepalive.interval: expected a duration such as \"90s\", found an integer"
        ),
        (
            "keepalive.interval = '2 minutes'",
            "4:22: connection.keepalive.interval: \"2 minutes\" is no duration; write \"120s\", \"1m30s\" or \"500ms\""
        ),
        (
            "keepalive = { interval = '1m', tolerance = '60s' }",
            "4:44: connection.keepalive.tolerance: \"1m\" is not shorter than the interval, \"1m\""
        ),
        (
            "keepalive = { protocol = 'crlf', tolerance = '120s' }",
            "4:46: connection.keepalive.tolerance: \"2m\" is not shorter than the interval, \"2m\""
        ),
        (
            "keepalive.protocol = 'CRLF'",
            "4:22: connection.keepalive.protocol: unknown value \"CRLF\"; did you mean \"crlf\"?"
        ),
        (
            "keepalive.protocol = 'smoke'",
            "4:22: connection.keepalive.protocol: unknown value \"smoke\"; \(methods)"
        ),
        ("make_before_break = 'no'", "4:21: connection.make_before_break: expected true or false, found a string"),
        ("other_uplinks = 1", "4:17: connection.other_uplinks: expected true or false, found an integer"),
        (
            "traffic_class = 'gold'",
            "4:17: connection.traffic_class: \"gold\" is none; there are cs1 to cs7, af11 to af43, ef, va, le, none, "
                + "or a number from 0 to 63"
        ),
        (
            "traffic_class = 64",
            "4:17: connection.traffic_class: \"64\" is none; there are cs1 to cs7, af11 to af43, ef, va, le, none, or "
                + "a number from 0 to 63"
        ),
        ("traffic_class = true", "4:17: connection.traffic_class: expected a name or a number, found a boolean"),
        ("priority = 7", "4:12: connection.priority: 7 is out of range; from 0 to 6"),
        ("owner = 'nobody-here'", "4:9: connection.owner: there is no user \"nobody-here\""),
        ("owner = -1", "4:9: connection.owner: -1 is out of range; from 0 to 4294967294"),
        ("owner = 1.5", "4:9: connection.owner: expected a user's name or number, found a float"),
        ("mark = 0", "4:8: connection.mark: 0 is out of range; from 1 to 4294967295"),
        ("mark = 4_294_967_296", "4:8: connection.mark: 4294967296 is out of range; from 1 to 4294967295"),
        ("mark = true", "4:8: connection.mark: expected an integer, found a boolean"),
        ("connect_timeout = '25h'", "4:19: connection.connect_timeout: \"25h\" is out of range; from 1s to 2m"),
        (
            "user_timeout = 2026-01-31",
            "4:16: connection.user_timeout: expected a duration such as \"90s\", found a date or time"
        ),
        ("backoff.factor = 0.5", "4:18: connection.backoff.factor: 0.5 is out of range; from 1.0 to 10.0"),
        ("backoff.factor = nan", "4:18: connection.backoff.factor: nan is out of range; from 1.0 to 10.0"),
        (
            "backoff = { initial = '1m', maximum = '30s' }",
            "4:39: connection.backoff.maximum: \"30s\" is shorter than initial, \"1m\""
        ),
        ("wake.unit = 'baresip'", "4:13: connection.wake.unit: \"baresip\" is no unit name; write \"baresip.service\""),
        (
            "wake.exec = ['baresip']",
            "4:14: connection.wake.exec: begins with the absolute path of a program; nothing is searched in PATH"
        ),
        (
            "wake.exec = []",
            "4:1: connection.wake.exec: begins with the absolute path of a program; nothing is searched in PATH"
        ),
        (
            "owner = 1001\nwake.exec = ['/bin/true', 1]",
            "5:27: connection.wake.exec: expected a string, found an integer"
        ),
        (
            "wake.exec = ['/bin/true']",
            "4:14: connection.wake.exec: would run as root; say whose it is with owner, \"root\" if that is meant"
        ),
        (
            "owner = 4711\nwake.exec = ['/bin/true']",
            "5:14: connection.wake.exec: user 4711, whose it would be, is not in the system's list of users"
        ),
        ("wake.stdio = true", "4:14: connection.wake.stdio: only a wake with exec has it"),
        ("wake.relaunch = false", "4:17: connection.wake.relaunch: only a wake with exec has it"),
        (
            "wake.launch = 'always'",
            "4:15: connection.wake.launch: \"always\" needs something to launch: exec, or unit"
        ),
        (
            "wake.reasons = ['data', 'date']",
            "4:25: connection.wake.reasons: unknown value \"date\"; did you mean \"data\"?"
        ),
        ("wake.attempts = 0", "4:17: connection.wake.attempts: 0 is out of range; from 1 to 20"),
        ("wake.answer = '2m'", "4:15: connection.wake.answer: \"2m\" is out of range; from 100ms to 1m"),
        (
            "wake = { pause = '1m', longest_pause = '30s' }",
            "4:40: connection.wake.longest_pause: \"30s\" is shorter than pause, \"1m\""
        ),
        ("wake.signal = 1", "4:15: connection.wake.signal: expected true or a signal's name, found an integer"),
        (
            "wake.signal = 'SIGKILL'",
            "4:15: connection.wake.signal: unknown value \"SIGKILL\"; \(signals)"
        ),
        (
            "wake.thaw = 'yes'",
            "4:13: connection.wake.thaw: \"yes\" is neither a unit (\"baresip.service\") nor the absolute path of a "
                + "control group"
        ),
        (
            "wake.thaw = '/sys/fs/cgroup/../..'",
            "4:13: connection.wake.thaw: \"/sys/fs/cgroup/../..\" is neither a unit (\"baresip.service\") nor the "
                + "absolute path of a control group"
        ),
        ("tls = true", "4:7: connection.tls: expected a table, found a boolean"),
        (
            "tls.min-version = '1.2'",
            "4:5: connection.tls.min-version: unknown key; did you mean \"min_version\"?"
        ),
        ("tls.verify = 'no'", "4:14: connection.tls.verify: expected true or false, found a string"),
        (
            "[limits]\nconnections_per_user = 0",
            "5:24: limits.connections_per_user: 0 is out of range; from 1 to 100000"
        ),
        (
            "[limits]\nqueued_bytes_per_user = 1",
            "5:25: limits.queued_bytes_per_user: 1 is out of range; from 65536 to 1073741824"
        ),
        ("[network]\nexpensive = 'wwan0'", "5:13: network.expensive: expected an array of strings, found a string"),
        ("[network]\nexpensive = ['wwan/0']", "5:14: network.expensive: \"wwan/0\" is no interface name"),
        (
            "[network]\nexpensive = ['a', 'b']\ninexpensive = ['c', 'b']",
            "6:21: network.inexpensive: \"b\" is among the expensive ones, too"
        ),
        ("[netwrok]", "4:2: netwrok: unknown key; did you mean \"network\"?"),
        ("[[connection]]\nname = 'b'", "4:1: connection.remote: missing"),
        ("[[connection]]\nremote = 'tcp://b:1'", "4:1: connection.name: missing"),
        ("[[connection]]\nname = ''\nremote = 'tcp://b:1'", "5:8: connection.name: \"\" is empty"),
        (
            "[[connection]]\nname = 'a b'\nremote = 'tcp://b:1'",
            "5:8: connection.name: \"a b\" may hold letters, digits and . _ - @ : only, and begin with neither . nor -"
        ),
        ("[[connection]]\nname = 'b'\nremote = ''", "6:10: connection.remote: \"\" is empty"),
        (
            "[[connection]]\nname = 'b'\nremote = 'b:1'",
            "6:10: connection.remote: \"b:1\" cannot be dialled: \(noScheme)"
        ),
        (
            "[[connection]]\nname = 'office'\nremote = 'tcp://b:1'",
            "5:8: connection.name: \"office\" is taken, at dialtone.toml:2:8"
        ),
        ("x = [", "4:6: expected a value, found the end of the file"),
    ])
    func `a slip is told with its place and key`(line: String, message: String) throws {
        let fixture = try ConfigurationFixture(["dialtone.toml": Self.connection + line])
        #expect(fixture.errors() == ["dialtone.toml:\(message)"])
    }

    @Test(arguments: [
        ("tls.ca = 'ca.pem'", "4:10: connection.tls.ca: \"ca.pem\" is not an absolute path"),
        ("tls.key = '/k.pem'", "4:11: connection.tls.key: needs a certificate, which tells whose it is"),
        ("tls.min_version = '1.1'", "4:19: connection.tls.min_version: unknown value \"1.1\"; did you mean \"1.2\"?"),
        (
            "tls.pins = ['sha256/AAAA']",
            "4:13: connection.tls.pins: \"sha256/AAAA\" is no pin; write \"sha256/\" and the 44 characters of a public "
                + "key's SHA-256 in base64 (RFC 7469)"
        ),
    ])
    func `a slip of TLS is told with its place and key`(line: String, message: String) throws {
        let connection = Self.connection.replacing("tcp://", with: "tls://")
        let fixture = try ConfigurationFixture(["dialtone.toml": connection + line])
        #expect(fixture.errors() == ["dialtone.toml:\(message)"])
    }

    @Test func `a program of the machine's service is somebody else's`() throws {
        let fixture = try ConfigurationFixture(["dialtone.toml": Self.connection + "wake.exec = ['/bin/true']"])
        let message = "would run as the agent's own user, within its service; say with owner whose it is"
        #expect(fixture.errors(inServiceOf: 1001) == ["dialtone.toml:4:14: connection.wake.exec: \(message)"])
        try fixture.write(Self.connection + "owner = 'kiosk'\nwake.exec = ['/bin/true']")
        #expect(fixture.errors(inServiceOf: 1001) == ["dialtone.toml:5:14: connection.wake.exec: \(message)"])
        #expect(fixture.errors(inServiceOf: 990) == [])
    }

    @Test(arguments: ["61s", "-1s"]) func `all that is wrong with the settings of a connection is told at once`(
        grace: String
    ) throws {
        let pin = "sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="
        let fixture = try ConfigurationFixture([
            "dialtone.toml": """
            [[connection]]
            name = 'a'
            remote = 'mqtts://h'
            priority = 7
            grace = "\(grace)"
            tls.pins = ['\(pin)', 'other']
            opening = [
                { expect = 'x' },
                { send = 'x', expect = 'y', overtaken_by = ['y', '\\'] },
            ]
            """
        ])
        let places = fixture.errors().map { $0.split(separator: " ").first ?? "" }
        #expect(
            places == [
                "dialtone.toml:4:12:", "dialtone.toml:5:9:", "dialtone.toml:6:\(17 + pin.count):",
                "dialtone.toml:9:54:",
            ])
    }

    @Test func `the files of the machine are known`() {
        let machines = ConfigurationFiles.standard(user: 990) {
            $0 == "CONFIGURATION_DIRECTORY" ? "/etc/dialtone" : nil
        }
        let users = ConfigurationFiles.standard(user: 990) { $0 == "HOME" ? "/home/anna" : nil }
        #expect((machines.areTheMachines, users.areTheMachines) == (true, false))
    }

    @Test(arguments: [
        ("[connection]\nname = 'a'", "1:1: connection: expected [[connection]], found a table"),
        ("connection = ['a']", "1:15: connection: expected [[connection]], found a string"),
        ("[[connections]]", "1:3: connections: unknown key; did you mean \"connection\"?"),
    ])
    func `a connection in the wrong form is told`(text: String, message: String) throws {
        #expect(try ConfigurationFixture(["dialtone.toml": text]).errors() == ["dialtone.toml:\(message)"])
    }

    @Test func `what does not go together is told at the connection`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": Self.connection + "\ntls = { verify = true, server_name = 'h' }"
        ])
        let secured = "tls, sips, xmpps, mqtts, wss"
        #expect(fixture.errors() == ["dialtone.toml:5:7: connection.tls: tcp has no TLS; \(secured) have"])
    }

    @Test func `all errors of all files are told in their order`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[limits]\nconnections = 1\n\n" + Self.connection + "mark = 0\nowners = 'me'\n",
            "connections.d/a.toml": "[[connection]]\nname = 'office'\n[network]\n",
            "connections.d/b.toml": "name = ",
            "connections.d/c.toml": "[[connection]]\nname = 1\nremote = 'c'\n",
        ])
        #expect(
            fixture.errors() == [
                "dialtone.toml:2:1: limits.connections: unknown key",
                "dialtone.toml:7:8: connection.mark: 0 is out of range; from 1 to 4294967295",
                "dialtone.toml:8:1: connection.owners: unknown key; did you mean \"owner\"?",
                "connections.d/a.toml:1:1: connection.remote: missing",
                "connections.d/a.toml:2:8: connection.name: \"office\" is taken, at dialtone.toml:5:8",
                "connections.d/a.toml:3:1: network: belongs in the main file; here only [[connection]] counts",
                "connections.d/b.toml:1:8: expected a value, found the end of the file",
                "connections.d/c.toml:2:8: connection.name: expected a string, found an integer",
                "connections.d/c.toml:3:10: connection.remote: \"c\" cannot be dialled: \(noScheme)",
            ])
    }
}

struct DurationTextTests {
    @Test(arguments: [
        ("120s", Duration.seconds(120), "2m"), ("1m30s", .seconds(90), "1m30s"), ("500ms", .milliseconds(500), "500ms"),
        ("1h", .seconds(3600), "1h"), ("2h5ms", .milliseconds(7_200_005), "2h5ms"), ("0s", .zero, "0s"),
    ])
    func `a duration is read and written`(text: String, duration: Duration, canonical: String) {
        #expect(Duration(configurationText: text) == duration)
        #expect(duration.configurationText == canonical)
    }

    @Test(arguments: [
        "", "s", "10", "1.5s", "-1s", "1s ", "1s1s", "1s1m", "1d", "1S", "１s", "99999999999999999999s", "2147483647h",
    ])
    func `what is no duration is refused`(text: String) {
        #expect(Duration(configurationText: text) == nil)
    }
}

struct SystemUserTests {
    @Test func `users are found in the system's list`() {
        #expect(systemUserNumber("root") == 0)
        #expect(systemUserNumber("no such user") == nil)
    }

    @Test func `keys of a megabyte are told in a line`() throws {
        let fixture = try ConfigurationFixture(["dialtone.toml": String(repeating: "k", count: 1_000_000) + " = 1"])
        let key = String(repeating: "k", count: 100)
        #expect(fixture.errors() == ["dialtone.toml:1:1: \(key)…: unknown key"])
    }

    @Test func `what is wrong is listed up to a hundred times`() throws {
        let fixture = try ConfigurationFixture(["dialtone.toml": (1...20_000).map { "k\($0) = 1\n" }.joined()])
        let errors = fixture.errors()
        #expect(errors.count == 101)
        #expect(errors.first == "dialtone.toml:1:1: k1: unknown key")
        #expect(errors.last == "dialtone.toml: and 19900 more errors, here and in files after it")
    }

    @Test func `more files than anybody writes are not read`() throws {
        let fixture = try ConfigurationFixture()
        for number in 0...10_000 { try fixture.write("nonsense", to: "connections.d/\(number).toml") }
        #expect(fixture.errors() == ["connections.d: holds more than 10000 files"])
    }

    @Test func `all files together have a limit`() throws {
        let fixture = try ConfigurationFixture()
        let text = String(repeating: "#", count: 1 << 20)
        for number in 10...26 { try fixture.write(text, to: "connections.d/\(number).toml") }
        #expect(
            fixture.errors() == [
                "connections.d/26.toml: with this file, the configuration is larger than 16777216 bytes"
            ])
    }
}
