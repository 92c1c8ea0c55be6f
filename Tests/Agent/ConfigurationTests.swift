// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneProcesses
import Foundation
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnection

struct ConfigurationTests {
    @Test func `the example of the documentation loads`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": """
            [[connection]]
            name      = "office"
            remote    = "tcp://sip.example.com:5060"   # also tls:, sip:, sips:, xmpp:
            keepalive = { protocol = "crlf", interval = "120s", tolerance = "25s" }
            wake      = { unit = "baresip.service" }    # or exec = [...], signal, thaw, or only an event
            owner     = "kiosk"
            """
        ])
        let loaded = try fixture.load()
        var office = ConnectionSettings(name: "office", remote: "tcp://sip.example.com:5060")
        office.settings.keepalive = .init(
            protocol: "crlf", interval: .seconds(120), tolerance: .seconds(25))
        office.wake = WakeSettings()
        office.wake?.unit = "baresip.service"
        office.owner = 1001
        var expected = Configuration()
        expected.connections = [office]
        #expect(loaded.configuration == expected)
        #expect(loaded.files == ["\(fixture.directory)/dialtone.toml"])
        #expect(loaded.notices.isEmpty)
    }

    @Test func `every setting reaches its field`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": """
            [[connection]]
            name = "van"
            remote = "mqtts://fleet.example.net"
            owner = 1002
            mark = 0xFFFFFFFF
            connect_timeout = "1m30s"
            grace = "0s"
            user_timeout = "45s"
            [connection.keepalive]
            protocol = "tcp"
            [connection.backoff]
            initial = "500ms"
            factor = 2
            maximum = "2m"
            stable_after = "1h"
            [connection.wake]
            exec = ["/usr/bin/van", "--wake"]
            stdio = true
            signal = "SIGUSR1"
            thaw = true
            launch = "always"
            relaunch = false
            reasons = ["data", "lost"]
            answer = "5s"
            start = "1m"
            attempts = 4
            pause = "20s"
            longest_pause = "2m"

            [network]
            expensive = ["wwan0", "usb0"]
            inexpensive = ["wwan1"]
            constrained = ["wlan1"]

            [limits]
            connections_per_user = 5
            subscriptions_per_user = 6
            queued_bytes_per_user = 65_536
            """
        ])
        let loaded = try fixture.load()
        let configuration = loaded.configuration
        let van = try #require(configuration.connections.first)
        #expect(van.owner == 1002)
        #expect(
            van.settings
                == .init(
                    keepalive: .init(protocol: "tcp"),
                    backoff: .init(
                        initial: .milliseconds(500), maximum: .seconds(120), factor: 2,
                        stableAfter: .seconds(3600)),
                    connectTimeout: .seconds(90), userTimeout: .seconds(45), grace: .zero,
                    mark: Int(UInt32.max)))
        try expectWake(van.wake)
        #expect(configuration.network.expensive == ["wwan0", "usb0"])
        #expect(configuration.network.inexpensive == ["wwan1"])
        #expect(configuration.network.constrained == ["wlan1"])
        #expect(configuration.limits.connectionsPerUser == 5)
        #expect(configuration.limits.subscriptionsPerUser == 6)
        #expect(configuration.limits.queuedBytesPerUser == 65_536)
        let last = try #require(loaded.notices.last)
        #expect(last.key == "limits.queued_bytes_per_user" && last.message.hasPrefix("kept, but without effect"))
    }

    private func expectWake(_ wake: WakeSettings?) throws {
        let wake = try #require(wake)
        let policy = wake.policy
        #expect(wake.targets.program?.command == ["/usr/bin/van", "--wake"])
        #expect(wake.targets.program?.streams == .standard)
        #expect(wake.targets.program?.identity.user == 1002, "the owner's")
        #expect(wake.targets.signal == SIGUSR1 && wake.targets.thaw == .ownGroup && wake.targets.unit == nil)
        #expect(policy.steps == [.event, .signal, .thaw, .exec])
        #expect(policy.launch == .always && !policy.relaunches && policy.rounds == 4)
        #expect(policy.answerTime == .seconds(5) && policy.startTime == .seconds(60))
        #expect(policy.pauses.base == .seconds(20) && policy.pauses.ceiling == .seconds(120))
        #expect(policy.relaunchPauses.base == .seconds(20))
        #expect(wake.wantedReasons == [.data, .lost, .keepAlive, .start])
    }

    @Test(arguments: [
        ("signal = true", WakeTargets(signal: SIGCONT)), ("signal = false", WakeTargets()),
        ("thaw = 'kiosk.scope'", WakeTargets(thaw: .unit("kiosk.scope"))),
        ("thaw = '/sys/fs/cgroup/kiosk'", WakeTargets(thaw: .group("/sys/fs/cgroup/kiosk"))),
        ("unit = 'baresip.service'", WakeTargets(unit: "baresip.service")),
    ])
    func `a wake is said in short`(text: String, targets: WakeTargets) throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://a:1'\nwake = { \(text) }\n"
        ])
        let wake = try #require(try fixture.load().configuration.connections.first?.wake)
        #expect(wake.targets == targets)
        #expect(wake.policy == WakePolicy(means: targets.means), "the defaults")
        #expect(wake.wantedReasons == Set(WakeReason.allCases).subtracting([.lost]))
    }

    @Test func `every setting of TLS reaches its field`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": """
            [[connection]]
            name = "van"
            remote = "mqtts://fleet.example.net"
            [connection.tls]
            ca = "/etc/dialtone/ca.pem"
            certificate = "/etc/dialtone/van.pem"
            key = "/etc/dialtone/van.key"
            password_file = "/etc/dialtone/van.password"
            pins = ["sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="]
            min_version = "1.3"
            server_name = "broker.example.net"
            alpn = ["mqtt"]
            """
        ])
        let van = try #require(try fixture.load().configuration.connections.first)
        let tls = try #require(
            SettingsCheck(van.settings, to: Remote(van.remote), owner: 0, wake: van.wake).policy?.tls)
        #expect(tls.authorities == "/etc/dialtone/ca.pem")
        #expect(
            tls.identity
                == .init(
                    certificate: "/etc/dialtone/van.pem", key: "/etc/dialtone/van.key",
                    passwordFile: "/etc/dialtone/van.password"))
        #expect(tls.pins.map(\.description) == ["sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="])
        #expect(tls.minimumVersion == .v13)
        #expect(tls.serverName == "broker.example.net")
        #expect(tls.applicationProtocols == ["mqtt"])
        #expect(tls.verifiesCertificate)
    }

    @Test func `verification that is off is remarked unless a pin stands for it`() throws {
        let connection = "[[connection]]\nname = 'van'\nremote = 'mqtts://h'\n"
        let fixture = try ConfigurationFixture(["dialtone.toml": connection + "tls = { verify = false }"])
        let loaded = try fixture.load()
        #expect(loaded.configuration.connections.first?.settings.tls?.verify == false)
        #expect(loaded.notices.map(\.key) == ["connection.tls.verify"])
        let pin = "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="
        try fixture.write(connection + "tls = { verify = false, pins = ['\(pin)'] }")
        #expect(try fixture.load().notices.isEmpty)
    }

    @Test func `without any file the embedded default counts`() throws {
        let loaded = try ConfigurationFixture().load()
        #expect(loaded.configuration == Configuration())
        #expect(loaded.files.isEmpty)
    }

    @Test func `connection files follow the main file in the order of their names`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'm'\nremote = 'tcp://m:1'",
            "connections.d/b.toml": "[[connection]]\nname = 'b'\nremote = 'tcp://b:1'",
            "connections.d/a.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://a:1'",
            "connections.d/.hidden.toml": "no TOML",
            "connections.d/README": "no TOML",
        ])
        #expect(try fixture.load().configuration.connections.map(\.name) == ["m", "a", "b"])
    }

    @Test func `where it stands in the files does not make a connection another`() throws {
        let connection = "[[connection]]\nname = 'a'\nremote = 'tcp://a:1'"
        let one = try ConfigurationFixture(["dialtone.toml": connection])
        let other = try ConfigurationFixture(["connections.d/later.toml": "\n\n# moved\n\(connection)"])
        #expect(try one.load().configuration == other.load().configuration)
    }
}

struct ConfigurationFilesTests {
    @Test(arguments: [
        (UInt32(0), ["HOME": "/root"], "/etc/dialtone/dialtone.toml"),
        (1000, ["HOME": "/home/u"], "/home/u/.config/dialtone/dialtone.toml"),
        (1000, ["HOME": "/home/u", "XDG_CONFIG_HOME": "/conf"], "/conf/dialtone/dialtone.toml"),
        (1000, ["HOME": "/home/u", "XDG_CONFIG_HOME": "conf"], "/home/u/.config/dialtone/dialtone.toml"),
        (991, ["CONFIGURATION_DIRECTORY": "/etc/dialtone"], "/etc/dialtone/dialtone.toml"),
    ])
    func `the standard places`(user: UInt32, environment: [String: String], main: String) {
        let files = ConfigurationFiles.standard(user: user) { environment[$0] }
        #expect(files.main == main)
        #expect(files.connections == main.replacingOccurrences(of: "dialtone.toml", with: "connections.d"))
        #expect(!files.mainIsRequired)
    }

    @Test func `a named file takes the connections beside it`() throws {
        let fixture = try ConfigurationFixture([
            "other.toml": "",
            "connections.d/a.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://a:1'",
        ])
        let loaded = try fixture.load(ConfigurationFiles(main: "\(fixture.directory)/other.toml"))
        #expect(loaded.configuration.connections.map(\.name) == ["a"])
        #expect(ConfigurationFiles(main: "other.toml").connections == "connections.d")
    }

    @Test func `a named file that is not there is an error`() throws {
        let fixture = try ConfigurationFixture()
        let main = "\(fixture.directory)/none.toml"
        let error = #expect(throws: ConfigurationError.self) { try fixture.load(ConfigurationFiles(main: main)) }
        #expect(error?.description == "\(main): reading it: No such file or directory")
    }

    @Test(arguments: [0o664, 0o646, 0o666] as [mode_t])
    func `a file that others may write is refused`(mode: mode_t) throws {
        let fixture = try ConfigurationFixture()
        try fixture.write("", to: "connections.d/a.toml", mode: mode)
        let refused = "writable by others than its owner, who could name programs to run; chmod go-w"
        #expect(fixture.errors() == ["connections.d/a.toml: \(refused)"])
    }

    @Test func `a directory that others may write is refused`() throws {
        let fixture = try ConfigurationFixture(["connections.d/a.toml": ""])
        chmod("\(fixture.directory)/connections.d", 0o777)
        let refused = "writable by others than its owner, who could name programs to run; chmod go-w"
        #expect(fixture.errors() == ["connections.d: \(refused)"])
    }

    @Test func `a file of another user is refused`() throws {
        guard geteuid() == 0 else { try Test.cancel("only root can give a file away") }
        let fixture = try ConfigurationFixture(["dialtone.toml": ""])
        // In the user namespace of one who is not root, there is nobody else.
        guard chown("\(fixture.directory)/dialtone.toml", 4711, 0) == 0 else {
            try Test.cancel("there is no other user")
        }
        #expect(fixture.errors() == ["dialtone.toml: owned by user 4711; it must be owned by root or user 0"])
    }

    @Test func `what is no readable text is refused`() throws {
        let fixture = try ConfigurationFixture(["connections.d/c.toml": String(repeating: "#", count: 1_048_577)])
        try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: "\(fixture.directory)/connections.d/b.toml"))
        mkfifo("\(fixture.directory)/connections.d/a.toml", 0o644)
        #expect(
            fixture.errors() == [
                "connections.d/a.toml: not a regular file",
                "connections.d/b.toml: not UTF-8",
                "connections.d/c.toml: larger than 1048576 bytes",
            ])
    }
}
