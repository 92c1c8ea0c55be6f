// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// The GIO module (`Clients/GLib`), by what GLib programs see of it.
@Suite(.lab)
struct GIOTests {
    /// Which monitor GLib has: an agent's verdicts, or those of its own.
    private static let ours = "DialtoneNetworkMonitor"
    private static let glibs = "GNetworkMonitorNetlink"
    private static let sources = "\(SourceTree.root)/Clients/GLib"
    private static let folder = "\(SourceTree.root)/.build/clients-glib"
    private static let built = Task { try await make("programs") }

    private static func make(_ target: String, _ settings: String...) async throws {
        let machine = try await Namespace.create("a compiler's")
        _ = try await machine.command(["make", "-C", sources, "BUILD=\(folder)", target] + settings)
    }

    @Test func `the documented table is what GLib and Dialtone say`() async throws {
        try await Self.built.value
        let machine = try await Namespace.island()
        let printed = try await machine.command(
            ["\(Self.sources)/tests/cases", Self.folder, LabAgent.program("dialtoned")])
        let page = try String(contentsOfFile: "\(SourceTree.root)/docs/gio.md", encoding: .utf8)
        let table = page.split(separator: "\n").filter { $0.hasPrefix("|") }.joined(separator: "\n")
        #expect(printed == table)
    }

    @Test func `without an agent GLib has its own monitor`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let report = try await Self.spawn(["report"], on: machine, home)
        expect(try await report.exit(), is: .status(0))
        #expect(report.text(of: .output) == "\(Self.glibs): available=no metered=no connectivity=local")
    }

    /// A machine whose only way out is in a table that no rule uses: GLib takes it for one, and an agent does not.
    private static func misleading() async throws -> Namespace {
        let machine = try await Namespace.island()
        try await machine.landBridge()
        try await machine.ip("route delete default")
        try await machine.ip("route add default via 198.51.100.1 table 100")
        return machine
    }

    @Test func `while the agent is away GLib's own monitor answers`() async throws {
        let (machine, home) = (try await Self.misleading(), try DaemonHome())
        let agent = try await home.start(on: machine)
        let report = try await Self.spawn(["report", "--watch", "203.0.113.7"], on: machine, home)
        let known = try await report.line(containing: "available=no")
        #expect(
            known.text == "\(Self.ours): available=no metered=no connectivity=local "
                + "203.0.113.7=Host unreachable: noRoute")

        _ = try await agent.killNow()
        let lost = try await report.line(after: known, containing: "notified of network-available")
        let guess = try await report.line(after: lost, containing: "\(Self.ours): available=")
        #expect(guess.text.hasSuffix("available=yes metered=no connectivity=full 203.0.113.7=yes"), "\(guess.text)")
        // It is no last word of GLib's either.
        try await machine.ip("route delete default table 100")
        let gone = try await report.line(after: guess, containing: "available=no")
        #expect(gone.text.hasSuffix("203.0.113.7=Host unreachable"), "\(gone.text)")
        try await machine.ip("route add default via 198.51.100.1 table 100")
        let again = try await report.line(after: gone, containing: "available=yes")

        _ = try await home.start(on: machine)
        let back = try await report.line(after: again, containing: "available=no")
        #expect(back.text.hasSuffix("203.0.113.7=Host unreachable: noRoute"), "\(back.text)")
        // From then on GLib's own has no say.
        try await machine.ip("route delete default table 100")
        try await machine.ip("route add default via 198.51.100.1 table 100")
        try await machine.ip("route add default via 198.51.100.1")
        let found = try await report.line(after: back, containing: "available=yes")
        #expect(found.text.hasSuffix("203.0.113.7=yes"), "\(found.text)")
    }

    @Test func `while the agent hangs GLib's own monitor says whether a host can be reached`() async throws {
        let (machine, home) = (try await Self.misleading(), try DaemonHome())
        let agent = try await home.start(on: machine)
        let report = try await Self.spawn(["report", "--watch", "203.0.113.7"], on: machine, home)
        let known = try await report.line(containing: "203.0.113.7=Host unreachable: noRoute")
        try await agent.stop()
        report.signal(SIGUSR1)
        let answer = try await report.line(after: known, containing: "asked: ")
        #expect(answer.text.hasSuffix("available=no metered=no connectivity=local 203.0.113.7=yes"), "\(answer.text)")
        let late = try await Self.spawn(["report"], on: machine, home)
        expect(try await late.exit(), is: .status(0))
        #expect(late.text(of: .output) == "\(Self.glibs): available=yes metered=no connectivity=full")
        agent.signal(SIGCONT)
        report.signal(SIGUSR1)
        let woken = try await report.line(after: answer, containing: "asked: ")
        #expect(woken.text.hasSuffix("203.0.113.7=Host unreachable: noRoute"), "\(woken.text)")
    }

    @Test func `once installed it is the monitor of each program, until it is uninstalled`() async throws {
        try await Self.built.value
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let (root, folder) = ("\(home.directory)/root", "/usr/lib/gio/modules")
        let settings = ["DIALTONE_SOCKET": home.socket, "GIO_MODULE_DIR": root + folder]
        try await Self.make("install", "DESTDIR=\(root)", "MODULEDIR=\(folder)")
        let installed = try await machine.outcome(["\(Self.folder)/report"], environment: settings)
        #expect(installed.output == "\(Self.ours): available=no metered=no connectivity=local", "\(installed)")
        try await Self.make("uninstall", "DESTDIR=\(root)", "MODULEDIR=\(folder)")
        let uninstalled = try await machine.outcome(["\(Self.folder)/report"], environment: settings)
        #expect(uninstalled.output == "\(Self.glibs): available=no metered=no connectivity=local", "\(uninstalled)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: root + folder) == [])
    }

    @Test func `a monitor that is dropped leaves nothing open`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let report = try await Self.spawn(["report", "--again", "20"], on: machine, home)
        expect(try await report.exit(), is: .status(0))
        #expect(report.text(of: .output) == "0 descriptors more")
    }

    @Test func `an interface that costs money is metered`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome("[network]\nexpensive = [\"bridge0\"]\n")
        _ = try await home.start(on: machine)
        let report = try await Self.spawn(["report", "--watch", "203.0.113.7"], on: machine, home)
        let first = try await report.line(containing: "available=no metered=no")
        try await machine.landBridge()
        _ = try await report.line(after: first, containing: "notified of network-metered")
        _ = try await report.line(after: first, containing: "available=yes metered=yes")
    }

    @Test(arguments: [("--async", "reachable"), ("--cancel", "cancelled")])
    func `a program can ask without waiting and take that back`(_ option: String, _ answer: String) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.landBridge()
        _ = try await home.start(on: machine)
        let report = try await Self.spawn(["report", option, "203.0.113.7"], on: machine, home)
        expect(try await report.exit(), is: .status(0))
        #expect(report.text(of: .output) == answer)
    }

    @Test(.enabled(if: hasPythonBindings, "python3-gi is not installed"))
    func `a program in Python has the same monitor`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.landBridge()
        _ = try await home.start(on: machine)
        let text = """
            from gi.repository import Gio
            monitor = Gio.NetworkMonitor.get_default()
            host = Gio.NetworkAddress.new("203.0.113.7", 443)
            print(type(monitor).__gtype__.name, monitor.get_network_available(), monitor.can_reach(host, None))
            """
        let program = try await Self.spawn([Self.python, "-c", text], on: machine, home)
        expect(try await program.exit(), is: .status(0))
        #expect(program.text(of: .output) == "\(Self.ours) True True")
    }

    /// The system's, for which Debian has the bindings.
    private static let python = "/usr/bin/python3"
    private static let hasPythonBindings = Program.run(python, ["-c", "from gi.repository import Gio"]).status == 0

    /// Starts a program with the module; the library's own test program by its bare name.
    private static func spawn(
        _ arguments: [String], on machine: Namespace, _ home: DaemonHome
    ) async throws -> LabProcess {
        try await built.value
        let program = arguments[0] == "report" ? "\(folder)/report" : arguments[0]
        return try await machine.spawn(
            [program] + arguments.dropFirst(),
            environment: [
                "DIALTONE_SOCKET": home.socket, "GIO_EXTRA_MODULES": folder, "GIO_USE_NETWORK_MONITOR": "dialtone",
            ])
    }
}
