// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneVarlink
import Foundation
import Testing

/// `dialtone` as scripts and people see it.
@Suite(.lab)
struct CommandLineTests {
    @Test(arguments: [
        ["frobnicate"], ["check"], ["check", "host:99999"], ["check", "host:0"], ["check", "two words"],
        ["check", "999.1.1.1"], ["check", "192.0.2.1%eth0"], ["check", "fe80::1%"], ["check", "a..b"],
        ["check", "host", "extra"], ["check", "host", "--without"], ["check", "host", "--mark", "x"],
        ["check", "host", "--mark=-1"], ["check", "host", "--protocol", "sctp"], ["check", "host", "--source", "h"],
        ["check", "host", "--uid", "nobody"], ["check", "host", "--explain=yes"], ["wait", "host:99999"],
        ["wait", "--timeout", "-1"], ["wait", "--timeout=-1"],
        ["wait", "--timeout", "nan"], ["wait", "--timeout", "soon"], ["open"],
        ["open", "tcp://h:1", "--keepalive", "x"],
        ["open", "tcp://h:1", "--keepalive", "9223372036854775807"], ["open", "tcp://h:1", "--keepalive=-1"],
        ["open", "tcp://h:1", "--keepalive-tolerance", "86401"],
        ["open", "tcp://h:1", "--keepalive", "0", "--keepalive-protocol", "crlf"],
        ["open", "tcp://h:1", "--grace", "-1"], ["open", "tcp://h:1", "--user-timeout", "1e300"],
        ["open", "tcp://h:1", "--user-timeout", "nan"],
        ["open", "tcp://h:1", "--socket-option", "maximum_segment"],
        ["open", "tcp://h:1", "--socket-option", "maximum_segment=1.5"],
        ["open", "tcp://h:1", "--socket-option", "mss=1200"], ["open", "tcp://h:1", "--socket-option", "\"x=1"],
        ["open", "tcp://h:1", "--keepalive-protocol", "udp"], ["open", "tcp://h:1", "--priority", "9"],
        ["open", "tls://h:1", "--pin", "abc"], ["open", "tcp://h:1", "--traffic-class", "gold"],
        ["open", "tcp://h:1", "--mark=-1"], ["open", "tcp://h:1", "--mark", "0x100000000"], ["close"],
        ["close", "a", "b"],
        ["redial"], ["list", "--frobnicate"], ["status", "a", "b"], ["take", "office"], ["take", "office", "cat"],
        ["take", "office", "--"], ["park"], ["park", "office"], ["park", "office", "--epoch", "x"], ["adopt", "chat"],
        ["adopt", "chat", "--fd=-1"], ["open", "tcp://h:1", "--name", "a b"], ["adopt", "a b", "--fd", "0"],
        ["check", "127.0.0.1:1", "--timeout", "1"], ["history", "--since", "tomorrow"],
        ["status", "--format", "json"], ["wait", "--timeout", "0"], ["open", "tcp://h:1", "--name", "network"],
        ["status", "--state", "backing on"], ["wait", "fe80::1"],
        ["status", "--format", "name", "-o", "wide"], ["list", "--json", "--format", "name"],
        ["watch", "--host", "fe80::1"], ["metrics", "--http", "--prometheus"], ["history", "--since", "2026-02-31"],
        ["check", "fe80::1"], ["exec", "127.0.0.1"], ["exec", "127.0.0.1", "cat"], ["exec", "fe80::1", "--", "cat"],
    ])
    func `nonsense is bad usage, told with the right usage`(arguments: [String]) async throws {
        let machine = try await Namespace.island()
        let outcome = try await machine.outcome([LabAgent.program("dialtone")] + arguments)
        #expect(outcome.exit == .status(EX_USAGE), "\(outcome)")
        #expect(outcome.error.hasPrefix("dialtone: "), "\(outcome)")
        #expect(outcome.error.contains("\nUsage: dialtone "), "\(outcome)")
        #expect(outcome.output.isEmpty)
    }

    @Test(arguments: [
        (["192.0.2.1", "--interface", "wan0"], "no interface \"wan0\" here; there are lo"),
        (["192.0.2.1", "--interface", ""], "no interface \"\" here"), (["fe80::1%wan0"], "no interface \"wan0\" here"),
        (["fe80::1"], "as in fe80::1%eth0"), (["[fe80::1]:53", "--explain"], "as in fe80::1%eth0"),
    ])
    func `a link that there is not, or that is not named, is bad usage`(arguments: [String], words: String) async throws
    {
        let machine = try await Namespace.island()
        let outcome = try await machine.outcome([LabAgent.program("dialtone"), "check"] + arguments)
        #expect(outcome.exit == .status(EX_USAGE), "\(outcome)")
        #expect(outcome.error.contains(words) && outcome.output.isEmpty, "\(outcome)")
    }

    @Test func `an exit status tells files, the output and commands that there are not apart`() async throws {
        let machine = try await Namespace.island()
        let dialtone = LabAgent.program("dialtone")
        let missing = try await machine.outcome([dialtone, "replay", "/nonexistent"])
        #expect(missing.exit == .status(EX_NOINPUT) && missing.error.contains("/nonexistent"), "\(missing)")
        let full = try await machine.outcome(["sh", "-c", "exec \(dialtone) check 127.0.0.1 >/dev/full"])
        #expect(full.exit == .status(EX_IOERR) && full.error.contains("No space left on device"), "\(full)")
        let closed = try await machine.outcome(["sh", "-c", "exec \(dialtone) check 127.0.0.1 >&-"])
        #expect(closed.exit == .status(EX_IOERR) && closed.error.contains("Bad file descriptor"), "\(closed)")
        let unread = try await machine.outcome([dialtone, "open", "tcp://h:1", "--opening", "/nonexistent"])
        #expect(unread.exit == .status(EX_NOINPUT), "\(unread)")
        #expect(unread.error.hasPrefix("dialtone: --opening: reading /nonexistent: No such file"), "\(unread)")
        let unwritten = try await machine.outcome(["sh", "-c", "exec \(dialtone) open --help >/dev/full"])
        #expect(unwritten.exit == .status(EX_IOERR) && unwritten.error.contains("No space left"), "\(unwritten)")
        let help = try await machine.outcome([dialtone, "help", "histroy"])
        #expect(help.exit == .status(EX_USAGE), "\(help)")
        #expect(help.error.contains("no command \"histroy\"; did you mean \"history\"?"), "\(help)")
    }

    @Test func `a terminal of twenty columns gets help too`() async throws {
        let machine = try await Namespace.island()
        let command = "stty cols 20; \(LabAgent.program("dialtone")) open --help"
        let outcome = try await machine.outcome(["script", "-qec", command, "/dev/null"])
        #expect(outcome.exit == .status(0) && outcome.output.contains("--keepalive-protocol"), "\(outcome)")
    }

    @Test func `a port out of range is told with the range`() async throws {
        let machine = try await Namespace.island()
        let outcome = try await machine.outcome([LabAgent.program("dialtone"), "check", "host:99999"])
        #expect(outcome.error.contains("host:99999") && outcome.error.contains("(1–65535)"), "\(outcome)")
    }

    @Test(arguments: [
        [], ["status"], ["watch"], ["check"], ["wait"], ["list"], ["open"], ["close"], ["redial"], ["take"], ["park"],
        ["adopt"], ["exec"],
    ])
    func `each command has its help`(command: [String]) async throws {
        let machine = try await Namespace.island()
        let outcome = try await machine.outcome([LabAgent.program("dialtone")] + command + ["--help"])
        #expect(outcome.exit == .status(0))
        #expect(outcome.output.hasPrefix("OVERVIEW: "), "\(outcome)")
        #expect(outcome.output.contains("USAGE: \((["dialtone"] + command).joined(separator: " "))"), "\(outcome)")
        if command.isEmpty {
            let names = [
                "status", "watch", "check", "wait", "list", "open", "close", "redial", "take", "park", "adopt",
                "exec",
            ]
            for name in names {
                #expect(outcome.output.contains("\n  \(name) "), "\(name) is missing in the help")
            }
        }
    }

    @Test(arguments: [
        ["status"], ["status", "--json"], ["watch"], ["watch", "office"], ["list"], ["list", "--json"],
        ["open", "tcp://127.0.0.1:1"], ["close", "office"], ["redial", "office"], ["take", "office", "--", "true"],
        ["park", "office", "--epoch", "1"], ["adopt", "chat", "--fd", "0"], ["metrics"],
    ])
    func `with nobody to ask it says where it looked and what to do`(arguments: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let outcome = try await machine.outcome(
            [LabAgent.program("dialtone")] + arguments, environment: ["DIALTONE_SOCKET": home.socket])
        #expect(outcome.exit == .status(EX_UNAVAILABLE), "\(outcome)")
        let place = "The agent does not run on \(home.socket), which DIALTONE_SOCKET names"
        #expect(outcome.error.contains(place), "\(outcome)")
        #expect(outcome.error.contains("dialtoned --socket \(home.socket)"), "\(outcome)")
        #expect(outcome.output.isEmpty)
    }

    @Test func `an agent that does not answer is told`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.start(on: machine)
        try await daemon.stop()
        defer { daemon.signal(SIGCONT) }
        // Each waits for half a minute.
        async let list = home.dialtone("list", on: machine)
        async let watch = home.dialtone("watch", on: machine)
        async let history = home.dialtone("history", on: machine)
        for outcome in [try await list, try await watch, try await history] {
            #expect(outcome.exit == .status(EX_UNAVAILABLE), "\(outcome)")
            #expect(outcome.error.contains("did not answer"), "\(outcome)")
            #expect(outcome.error.contains("systemctl status dialtoned"), "\(outcome)")
        }
    }

    @Test(arguments: [
        ["push"], ["push", "list"], ["push", "test", "org.example.App"], ["push", "remove", "1"], ["push", "metrics"],
        ["notify"], ["notify", "--test"],
    ])
    func `without a session agent it says where it looked and what to do`(arguments: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let standard = "/run/user/\(geteuid())/dialtone/session.sock"
        for (environment, place) in [
            (["XDG_RUNTIME_DIR": home.directory], "\(home.directory)/dialtone/session.sock"),
            (["XDG_RUNTIME_DIR": ""], standard), (["DIALTONE_SESSION_SOCKET": home.socket], home.socket),
        ] {
            let outcome = try await machine.outcome(
                [LabAgent.program("dialtone")] + arguments, environment: environment)
            #expect(outcome.exit == .status(EX_UNAVAILABLE), "\(outcome)")
            #expect(outcome.error.contains("The session agent is not running: nothing listens on \(place)."))
            #expect(outcome.error.contains("systemctl --user start dialtone-session.socket"), "\(outcome)")
            #expect(outcome.output.isEmpty)
        }
    }

    @Test func `a history that is followed goes on over an agent that was killed, and tells nothing twice`()
        async throws
    {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let first = try await home.start(on: machine)
        _ = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "office", on: machine)
        let follower = try await machine.spawn(
            [LabAgent.program("dialtone"), "history", "office", "--follow"],
            environment: ["DIALTONE_SOCKET": home.socket])
        _ = try await follower.line(containing: "office    waiting: opened")
        _ = try await first.killNow()
        _ = try await follower.line(containing: "gone; waiting for it to come back")
        let second = try await home.start(on: machine)
        let start = try await follower.line(containing: "started; before that, the agent was killed or crashed")
        _ = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "office", on: machine)
        _ = try await follower.line(after: start, containing: "office    waiting: opened")
        // It dies with the follower's socket, which is idle.
        _ = try await second.terminate()
        _ = try await follower.line(after: start, containing: "closed: the agent was stopped")
        let lines = follower.text(of: .output)
        for (text, times) in [("opened", 2), ("killed or crashed", 1), ("gap", 0), ("was stopped", 1)] {
            #expect(lines.components(separatedBy: text).count - 1 == times, "\(text) in \(lines)")
        }
    }

    @Test func `check and wait need no daemon`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let here = try await home.dialtone("check", "127.0.0.1:80", on: machine)
        #expect(here.exit == .status(0), "\(here)")
        #expect(here.output == "Route available: 127.0.0.1:80 on this machine (nothing was sent).")
        // The kernel has all of 127.0.0.0/8 for its own.
        let other = try await home.dialtone("check", "127.0.0.1:80", "--source", "127.0.0.2", on: machine)
        #expect(other.exit == .status(0) && other.output.hasPrefix("Route available: 127.0.0.1:80"), "\(other)")
        let far = try await home.dialtone("check", "192.0.2.1", on: machine)
        #expect(far.exit == .status(1), "\(far)")
        #expect(far.output == "Not reachable: no interface has a carrier.")
        let json = try await home.dialtone("check", "192.0.2.1", "--json", on: machine)
        #expect(json.exit == .status(1))
        let path = try #require(NetworkAPI.Path(json: json.output.utf8))
        #expect(path.status == .unsatisfied && path.reason == .noCarrier && path.destination == "192.0.2.1")
        #expect(json.lines.count == 1, "one object, one line")
        let explained = try await home.dialtone("check", "192.0.2.1", "--explain", on: machine)
        #expect(explained.exit == .status(1))
        #expect(
            explained.output == """
                Not reachable: no interface has a carrier.

                  rule       32766: from all lookup main
                  table      main is empty
                  link       there is no interface but the loopback  <- decided
                """)

        expect(try await home.dialtone("wait", "127.0.0.1", on: machine).exit, is: .status(0))
        expect(try await home.dialtone("wait", "127.0.0.1", "--timeout", "600", on: machine).exit, is: .status(0))
        expect(try await home.dialtone("wait", "192.0.2.1", "--timeout", "0.1", on: machine).exit, is: .status(1))
        expect(try await home.dialtone("wait", "--timeout", "0.1", on: machine).exit, is: .status(1))
    }

    @Test func `wait ends when the network comes`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let waiting = try await machine.spawn([LabAgent.program("dialtone"), "wait", "192.0.2.1"])
        try await machine.landBridge()
        expect(try await waiting.exit(), is: .status(0), "\(waiting.text(of: .error))")
        expect(try await home.dialtone("check", "192.0.2.1", on: machine).exit, is: .status(0))
    }

    @Test func `connections are opened, listed, dialled and closed`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let opened = try await home.dialtone("open", "tcp://192.0.2.1:5060", on: machine)
        #expect(opened.exit == .status(0))
        #expect(opened.output == "192.0.2.1")
        let named = try await home.dialtone(
            "open", "mqtt://192.0.2.1", "--name", "van", "--keepalive", "50", "--user-timeout", "30.5", "--mark", "0x7",
            "--no-make-before-break", "--no-other-uplinks", "--traffic-class", "ef", "--priority", "4",
            "--socket-option", "maximum_segment=1200",
            on: machine)
        #expect(named.output == "van", "\(named)")
        let list = try await home.dialtone("list", on: machine)
        #expect(list.lines.count == 3)
        #expect(list.lines.first?.hasPrefix("NAME ") == true)
        #expect(list.lines.last?.hasPrefix("van ") == true)
        for command in ["history", "watch", "redial"] {
            let mistyped = try await home.dialtone(command, "vam", on: machine)
            #expect(mistyped.exit == .status(1) && mistyped.output.isEmpty, "\(mistyped)")
            #expect(mistyped.error.hasPrefix("dialtone: There is no connection \"vam\"."), "\(mistyped)")
            #expect(mistyped.error.hasSuffix(" Did you mean \"van\"?"), "\(mistyped)")
        }
        for command in ["redial", "close"] {
            let done = try await home.dialtone(command, "van", on: machine)
            #expect(done.exit == .status(0) && done.output.isEmpty && done.error.isEmpty, "\(done)")
            let missing = try await home.dialtone(command, "nobody", on: machine)
            #expect(missing.exit == .status(1))
            #expect(missing.error.contains("There is no connection \"nobody\""), "\(missing)")
        }
        let taken = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "192.0.2.1", on: machine)
        #expect(taken.exit == .status(1))
        #expect(taken.error.contains("This user has a connection \"192.0.2.1\" already"), "\(taken)")
        let unfit = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "a b", on: machine)
        #expect(unfit.exit == .status(EX_USAGE))
        #expect(unfit.error.contains("--name \"a b\" may hold letters"), "\(unfit)")
    }

    @Test func `what is written for scripts parses, and has the fields of the interface`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        for name in ["a", "b"] {
            _ = try await home.dialtone("open", "tcp://192.0.2.1:5060", "--name", name, on: machine)
        }
        let status = try await home.dialtone("status", "--json", on: machine).object()
        #expect(Set(status.keys) == ["path", "connections"])
        let path = try #require(status["path"] as? [String: Any])
        let always: Set = [
            "generation", "status", "coherent", "isDirect", "isLocalAddress", "supportsIPv4", "supportsIPv6",
            "supportsDNS", "expensive", "constrained",
        ]
        #expect(always.isSubset(of: path.keys), "\(path)")
        let connections = try #require(status["connections"] as? [[String: Any]])
        #expect(connections.map { $0["name"] as? String } == ["a", "b"])
        let list = try await home.dialtone("list", "--json", on: machine)
        let listed = try list.lines.map {
            try #require(ConnectionsAPI.Connection(json: $0.utf8))
        }
        #expect(listed.map(\.name) == ["a", "b"])
        #expect(!list.output.contains("null"), "what there is not is left out")
    }

    @Test func `watch tells the present, then each change, and ends with its reader`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let program = LabAgent.program("dialtone")
        // On this machine nothing changes, so nothing is written that would tell that nobody reads.
        let headed = try await machine.spawn(
            ["sh", "-c", "\(program) watch | head -n 1"], environment: ["DIALTONE_SOCKET": home.socket])
        expect(try await headed.exit(), is: .status(0))
        #expect(headed.text(of: .output).contains("network   unavailable"), "\(headed.text(of: .output))")

        let watching = try await machine.spawn(
            [program, "watch", "--json", "office"], environment: ["DIALTONE_SOCKET": home.socket])
        let snapshot = try await watching.line(containing: "\"kind\":\"snapshot\"")
        #expect(snapshot.number == 0)
        _ = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "other", on: machine)
        _ = try await home.dialtone("open", "tcp://192.0.2.1:1", "--name", "office", on: machine)
        let opened = try await watching.line(containing: "\"kind\":\"opened\"")
        let reply = try #require(ConnectionsAPI.Monitor.Reply(json: opened.text.utf8))
        #expect(reply.event?.connection.name == "office")
        #expect(opened.number == 1, "the other one's events are not for it")
    }

    @Test func `watch outlives its daemon, and says so`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "office"))
        let watching = try await machine.spawn(
            [LabAgent.program("dialtone"), "watch"], environment: ["DIALTONE_SOCKET": home.socket])
        // Both of its streams have spoken: an agent that one of them never heard is not there in the first place.
        _ = try await watching.line(containing: "network ")
        _ = try await watching.line(containing: "office ")
        try await daemon.killNow()
        _ = try await watching.line(containing: "agent     gone")
        let successor = try await home.start(on: machine)
        // The successor's journal is another: what happened in between cannot be known.
        _ = try await watching.line(containing: "agent     back")
        _ = try await watching.line(containing: "changes were missed")
        try await watching.killNow()
        try await successor.killNow()
    }

    @Test(arguments: [["status"], ["list"], ["watch"]])
    func `there is colour on a terminal and none in a pipe`(command: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "office"))
        let text = ([LabAgent.program("dialtone")] + command).joined(separator: " ")
        let escape = "\u{1B}["
        func firstLine(_ command: String, _ environment: [String: String] = [:]) async throws -> String {
            // NO_COLOR counts when it is not empty; the one who runs the tests may have set it.
            let plain = ["DIALTONE_SOCKET": home.socket, "TERM": "xterm", "NO_COLOR": ""]
            let process = try await machine.spawn(
                ["sh", "-c", "exec \(command)"], environment: plain.merging(environment) { _, new in new })
            return try await process.line("something") { !$0.text.isEmpty }.text
        }
        // script(1) runs a command on a terminal of its own.
        let onTerminal = "script -qec '\(text)' /dev/null"
        let lines = [
            try await firstLine(text), try await firstLine(onTerminal),
            try await firstLine(onTerminal, ["NO_COLOR": "1"]), try await firstLine(onTerminal, ["TERM": "dumb"]),
        ]
        #expect(lines.map { $0.contains(escape) } == [false, true, false, false], "\(lines)")
    }

    @Test(.anotherUser) func `who may not use the socket is told so, and others see only their own`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "roots"))
        let list = try await home.dialtone("list", "--json", on: machine, by: AnotherUser.command)
        #expect(list.exit == .status(0) && list.output.isEmpty, "\(list)")
        let close = try await home.dialtone("close", "roots", on: machine, by: AnotherUser.command)
        #expect(close.exit == .status(1))
        #expect(close.error.contains("There is no connection \"roots\""), "\(close)")
        chmod(home.socket, 0o600)
        let refused = try await home.dialtone("list", on: machine, by: AnotherUser.command)
        #expect(refused.exit == .status(EX_NOPERM), "\(refused)")
        #expect(refused.error.contains("\(home.socket) is not open to this user"), "\(refused)")
    }
}
