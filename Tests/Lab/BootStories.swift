// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// The agent under a real systemd, as it is installed.
@Suite(.booted, .serialized, .timeLimit(.minutes(10)))
struct BootStories {
    /// How often the agent is killed.
    static let kills =
        ProcessInfo.processInfo.environment["BOOT_KILLS"].flatMap(Int.init) ?? 20

    /// In the middle of the start, right after it, under way, and long enough to count as settled.
    static let lives: [Duration] = [.milliseconds(20), .milliseconds(150), .milliseconds(600), .milliseconds(1500)]

    @Test func `the socket starts the agent, which is ready, watched, confined and reloaded`() async throws {
        let machine = try await BootedMachine.boot("[Service]\nWatchdogSec=5s\nRestartSec=100ms\n")
        expect(try await machine.property("ActiveState"), is: "inactive")
        // Waits in the socket unit's queue until the agent serves.
        expect(try await machine.client.connections()) { $0.isEmpty }
        expect(try await machine.property("ActiveState"), is: "active")
        expect(try await machine.property("StatusText"), is: "Serving")
        #expect(
            try await machine.run("stat", "--format=%U", "/proc/\(machine.property("MainPID"))").hasPrefix("dialtone"))
        let exposure = try await machine.run("systemd-analyze", "security", "--no-pager", "dialtoned.service")
        let figure = try #require(exposure.firstMatch(of: /exposure level for dialtoned\.service: (\d+\.\d+)/))
        #expect(try #require(Double(figure.1)) <= 1.5)
        try await machine.run("systemctl", "reload", "dialtoned.service")
        expect(try await machine.property("NRestarts"), is: "0")
        // It hangs, and the manager notices. What ends it wakes it too (systemd.kill(5)): it may answer with its last
        // breath, so nobody is asked before the next one runs.
        try await machine.run("systemctl", "kill", "--signal=STOP", "--kill-who=main", "dialtoned.service")
        try await machine.restarted(since: "0")
        expect(try await machine.client.connections()) { $0.isEmpty }
        try await machine.turnOff()
    }

    @Test(arguments: [false, true])
    func `killed again and again under traffic, it drops no connection and loses no wake and no event`(
        secured: Bool
    ) async throws {
        // What ends the hundredth time is no loop.
        let machine = try await BootedMachine.boot("[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\n")
        let traffic = try await SleepingClients.start(8, secured: secured, on: machine)
        for count in 0..<Self.kills {
            let before = try await machine.property("NRestarts")
            try await machine.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", "dialtoned.service")
            try await machine.restarted(since: before)
            try await Task.sleep(for: Self.lives[count % Self.lives.count])
        }
        try await traffic.finish()
        await traffic.check(machine)
        let restarts = try await machine.property("NRestarts")
        if restarts != "\(Self.kills)" { print(await machine.journal()) }
        expect(restarts, is: "\(Self.kills)")
        try await machine.turnOff()
    }

    @Test func `the launcher, confined, has programs run as units of their own, by either way to the socket`()
        async throws
    {
        let machine = try await BootedMachine.boot(
            configuration: """
                [[connection]]
                name = "office"
                remote = "tcp://127.0.0.1:7001"
                owner = "nobody"
                wake = { stdio = true, exec = ["/bin/sh", "-c", "read line; echo office $(id -un) $line"] }

                [[connection]]
                name = "door"
                remote = "tcp://127.0.0.1:7002"
                owner = "nobody"
                wake = { exec = ["/bin/sh", "-c", "read line <&3; echo $LISTEN_FDNAMES $(id -un) $line >&3"] }

                [[connection]]
                name = "van"
                remote = "tcp://127.0.0.1:7003"
                owner = "nobody"
                wake = { stdio = true, exec = ["/opt/missing"] }
                """)
        let bells = (try await machine.bell(7001), try await machine.bell(7002), try await machine.bell(7003))
        expect(try await machine.client.connections().count, is: 3)
        expect(try await bells.0.line(containing: "office").text, is: "office nobody ring")
        expect(try await bells.1.line(containing: "door").text, is: "door nobody ring")
        // How they ended is known: one that ended well is not launched again.
        try await eventually("both flows are parked with a session, and the third client was not woken") {
            let connections = try await machine.client.connections().filter { $0.name != "van" }
            let journal = try await machine.run("journalctl", "--unit=dialtone-launcher.service", "--output=cat")
            return connections.allSatisfy { $0.session == .open && $0.state == .ready } && journal.contains("203/EXEC")
        }
        let exposure = try await machine.run("systemd-analyze", "security", "--no-pager", "dialtone-launcher.service")
        let figure = try #require(exposure.firstMatch(of: /exposure level for dialtone-launcher\.service: (\d+\.\d+)/))
        #expect(try #require(Double(figure.1)) <= 3, "\(exposure)")
        try await machine.turnOff()
    }

    @Test func `a program that is a unit gets its arguments to the letter, and no right beside its owner's`()
        async throws
    {
        // systemd would put variables in the place of the first four, and what it knows of the unit in the fifth's.
        let words = ["$USER", "${USER}", "a$$b", "$", "%n 100%", "two words", "", "\\x41"]
        // Of what is ignored, only the signals that the C library does not keep to itself.
        let status = #"s/^SigIgn:.*(.{7})$/SigIgn: \1/p; /^(Uid|Gid|Groups|NoNewPrivs|Cap...|SigBlk):/p"#
        let machine = try await BootedMachine.boot(
            configuration: """
                [[connection]]
                name = "letter@home:1.0_x-y"
                remote = "tcp://127.0.0.1:7001"
                owner = "nobody"
                wake = { stdio = true, exec = [
                    "/bin/sh", "-c", '''read line; printf '<%s>' "$@"; echo " ${line}"''', "sh",
                    \(words.map { "'\($0)'" }.joined(separator: ", ")),
                ] }

                [[connection]]
                name = "rights"
                remote = "tcp://127.0.0.1:7002"
                owner = "nobody"
                wake = { stdio = true, exec = [
                    "/bin/sh", "-c",
                    '''read line; set -- $(sed -nE '\(status)' /proc/self/status); echo "$@" umask $(umask)''',
                ] }
                """)
        let bells = (try await machine.bell(7001), try await machine.bell(7002))
        expect(try await machine.client.connections().count, is: 2)
        let letter = try await bells.0.line("its answer") { $0.text != "ready" }.text
        #expect(letter == words.map { "<\($0)>" }.joined() + " ring")
        let rights = try await bells.1.line("its answer") { $0.text != "ready" }.text
        let (user, none) = ("65534 65534 65534 65534", "0000000000000000")
        #expect(
            rights == """
                Uid: \(user) Gid: \(user) Groups: 65534 SigBlk: \(none) SigIgn: 0000000 CapInh: \(none) \
                CapPrm: \(none) CapEff: \(none) CapBnd: \(none) CapAmb: \(none) NoNewPrivs: 1 umask 0022
                """)
        try await machine.turnOff()
    }

    @Test func `a program keeps its flow when the bus ends, and the next is launched over the new bus`() async throws {
        let machine = try await BootedMachine.boot(
            configuration: """
                [[connection]]
                name = "office"
                remote = "tcp://127.0.0.1:7001"
                owner = "nobody"
                wake = { stdio = true, exec = ["/bin/sh", "-c", "while read line; do echo $$ $line; done"] }

                [[connection]]
                name = "van"
                remote = "tcp://127.0.0.1:7002"
                owner = "nobody"
                wake = { attempts = 20, pause = "200ms", longest_pause = "1s", stdio = true, exec = [
                    "/bin/sh", "-c", "read line; echo van $line",
                ] }
                """)
        let network = machine.network
        let listeners = try await network.run { (try TCPSocket.listening(on: 7001), try TCPSocket.listening(on: 7002)) }
        expect(try await machine.client.connections().count, is: 2)
        let (office, van) = try await network.run { (try listeners.0.accept(), try listeners.1.accept()) }
        try office.send("one\n")
        let answer = try await network.run { try office.receive() }
        let program = try #require(answer.wholeMatch(of: /(\d+) one\n/)).1
        // Until the bus has said that it runs, its launch would fail with the bus.
        try await eventually("the program to hold the flow, and its launch to be over") {
            let office = try await machine.client.connections().first { $0.name == "office" }
            return office?.holder == .client && office?.wake == nil
        }
        try await machine.run("systemctl", "kill", "--signal=KILL", "dbus.service")
        try van.send("two\n")
        expect(try await network.run { try van.receive() }, is: "van two\n")
        let flow = try #require(try await machine.client.connections().first { $0.name == "office" })
        #expect(flow.holder == .client && flow.epoch == 1)
        try office.send("three\n")
        expect(try await network.run { try office.receive() }, is: "\(program) three\n")
        try await machine.turnOff()
    }

    @Test func `a user for whom it crashes again and again is refused, with a line for each crash, and nobody else is`()
        async throws
    {
        let machine = try await BootedMachine.boot(
            "[Service]\nRestartSec=100ms\nEnvironment=SWIFT_BACKTRACE=enable=no\n")
        let (greedy, other) = ("65534", "65533")
        let flood = try await machine.flood(as: greedy)
        _ = try await machine.client.open(.init(remote: "tcp://192.0.2.1:1", name: "bystander"))
        // What ends it is a signal that hits it at work. Some hit it between two messages, or another thread than the
        // one at work, which goes on to its message's end meanwhile: they are held against nobody. But for five of
        // these in a row, each within a tenth of a second of the start, the state would be given up.
        var journal = ""
        for _ in 0..<30 where !journal.contains("user 65534 is refused") {
            let before = try await machine.property("NRestarts")
            try await machine.run("systemctl", "kill", "--signal=ABRT", "--kill-who=main", "dialtoned.service")
            try await machine.restarted(since: before)
            let names = try await machine.client.connections().map(\.name)
            journal = await machine.journal()
            #expect(names == ["bystander"], "\(journal)")
            // It has settled then: of what is due when it answers again, the first is done first.
            try await Task.sleep(for: .milliseconds(200))
            _ = try await machine.client.connections()
        }
        #expect(journal.matches(of: /dialtoned crashed \(SIGABRT.*of user 65534/).count >= 3, "\(journal)")
        #expect(journal.contains("user 65534 is refused"), "\(journal)")
        let refused = try await flood.line(containing: "org.dialtone.Connections.Suspended")
        #expect(refused.text.contains("seconds"), "\(refused.text)")
        expect(try await machine.flood(as: other, rounds: 1).line(containing: "answered").text, is: "answered")
        expect(try await machine.property("ActiveState"), is: "active")
        try await machine.turnOff()
    }

    @Test func `an upgrade of what does TLS is not noticed`() async throws {
        let machine = try await BootedMachine.boot("[Unit]\nStartLimitIntervalSec=0\n")
        let traffic = try await SleepingClients.start(4, secured: true, on: machine)
        for name in ["dialtone-tls.service", "dialtoned.service", "dialtone-tls.service"] {
            try await machine.run("systemctl", "restart", name)
            try await Task.sleep(for: .milliseconds(300))
        }
        // A flow that begins now is the new process's; the old ones' end with their flows.
        let front = try await machine.tlsFront(of: 9)
        let late = ConnectionsAPI.Open.Parameters(
            remote: "tls://127.0.0.1:\(front.port)", name: "late", settings: .init(tls: .init(verify: false)))
        _ = try await machine.client.open(late)
        try await eventually("a flow of the new process") {
            try await machine.client.connections().first { $0.name == "late" }.map { $0.epoch > 0 } ?? false
        }
        _ = try await machine.client.close("late")
        try await traffic.finish()
        await traffic.check(machine)
        let serving = try await machine.run("pgrep", "--list-full", "--full", "^dialtone-tls --serve")
        #expect(serving.split(separator: "\n").count == 2, "\(serving)")
        try await machine.turnOff()
    }

    @Test func `an upgrade by restart is not noticed, and a stop ends everything`() async throws {
        let machine = try await BootedMachine.boot("[Unit]\nStartLimitIntervalSec=0\n")
        let traffic = try await SleepingClients.start(4, on: machine)
        for _ in 0..<3 {
            try await machine.run("systemctl", "restart", "dialtoned.service")
            try await Task.sleep(for: .milliseconds(300))
        }
        try await traffic.finish()
        await traffic.check(machine)
        try await machine.run("systemctl", "stop", "dialtoned.service")
        #expect(try await traffic.haveEnded(), "with systemd 252 a stop, unlike a restart, ends what was parked")
        expect(try await machine.client.connections(), "the next one begins anew") { $0.isEmpty }
        try await machine.turnOff()
    }
}
