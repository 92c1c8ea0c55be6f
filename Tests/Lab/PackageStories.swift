// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// The Debian packages: what is in them, and what they do to a machine that systemd booted.
@Suite(
    "Packages", .booted, .enabled(if: Packages.obstacle == nil, Packages.obstacle ?? "packages can be built"),
    .serialized, .timeLimit(.minutes(15)))
struct PackageStories {
    @Test func `lintian finds nothing in them but what is of a debug build`() async throws {
        let ofDebug = [
            "custom-library-search-path", "hardening-no-bindnow", "unstripped-binary-or-object",
            "unstripped-static-library", "uses-no-compression-for-control-tarball",
            "uses-no-compression-for-data-tarball",
        ].joined(separator: ",")
        let packages = try await Packages.all()
        let found = try await Namespace.island().outcome(
            [
                "sh", "-c", "exec lintian --allow-root --display-info --suppress-tags \(ofDebug) \"$0\"/*.changes",
                packages.directory,
            ], within: .seconds(600))
        // Its notes count the overrides.
        #expect(found.output.split(separator: "\n").filter { !$0.hasPrefix("N:") } == [], "\(found)")
        #expect(found.exit == .status(0), "\(found)")
    }

    @Test
    func `installed, upgraded under traffic, removed and purged, the agent loses no connection and leaves nothing`()
        async throws
    {
        let packages = try await Packages.all()
        let machine = try await BootedMachine.bootWhole(with: packages)
        let (before, accounts) = (machine.changed(), try await machine.accounts())
        try await machine.install(packages.agent)
        try await Self.checkInstalled(machine)
        try await Self.checkLibrary(machine)

        let plain = try await SleepingClients.start(3, on: machine)
        try await Self.upgrade(machine, to: packages.next, under: plain)
        for name in try await machine.client.connections().map(\.name) { _ = try await machine.client.close(name) }
        let secured = try await SleepingClients.start(3, secured: true, on: machine)
        try await Self.upgrade(machine, to: packages.agent, under: secured)

        // Somebody may use the agent, which keeps the group from going with the user.
        try await machine.run("usermod", "--append", "--groups", "dialtone", "nobody")
        try await machine.run("dpkg", "--remove", "dialtone")
        #expect(try await secured.haveEnded())
        expect(try await machine.run("sh", "-c", "pgrep --list-full dialtone || true"), is: "")
        #expect(machine.changed().contains("etc/dialtone/dialtone.toml"), "what was configured is kept until purge")
        try await machine.run("dpkg", "--purge", "dialtone")
        let left = machine.changed().subtracting(before)
        #expect(left.filter { !Self.mayStay($0) }.sorted() == [])
        try await Self.checkGone(machine, accounts)
        try await Self.checkForeignUser(machine, packages.agent)
        try await machine.turnOff()
    }

    /// Nothing is left in the memory of the machine, and of its accounts.
    static func checkGone(_ machine: BootedMachine, _ accounts: String) async throws {
        // The manager may still know that units that are gone were wanted.
        let states = "--state=loaded,active,failed"
        expect(try await machine.run("systemctl", "list-units", states, "--no-legend", "dialtone*"), is: "")
        let files = "systemctl list-unit-files --no-legend 'dialtone*' || true"
        expect(try await machine.run("sh", "-c", files), is: "")
        expect(try await machine.run("sh", "-c", "grep --no-filename dialtone /proc/[0-9]*/comm || true"), is: "")
        expect(try await machine.run("sh", "-c", "ls -d /run/dialtone* /etc/dialtone 2>/dev/null || true"), is: "")
        expect(try await machine.accounts(), is: accounts)
    }

    /// A user of the agent's name that somebody else made is used, and outlives purge.
    private static func checkForeignUser(_ machine: BootedMachine, _ package: String) async throws {
        try await machine.run("useradd", "--system", "--user-group", "--comment", "Somebody's", "dialtone")
        let user = try await machine.run("getent", "passwd", "dialtone")
        try await machine.install(package)
        expect(try await machine.property("ActiveState"), is: "active")
        try await machine.run("dpkg", "--purge", "dialtone")
        expect(try await machine.run("getent", "passwd", "dialtone"), is: user)
        expect(try await machine.run("sh", "-c", "getent passwd dialtone-tls || echo gone"), is: "gone")
    }

    /// It runs at once and after the next boot, and a name of its unit is that of the package.
    private static func checkInstalled(_ machine: BootedMachine) async throws {
        try await machine.run("systemctl", "start", "dialtone")
        expect(try await machine.property("ActiveState"), is: "active")
        for unit in ["dialtoned.service", "dialtoned.socket", "dialtone-launcher.socket", "dialtone-tls.socket"] {
            expect(try await machine.run("systemctl", "is-enabled", unit), is: "enabled")
            expect(try await machine.run("sh", "-c", "systemctl --global is-enabled \(unit) || true")) {
                $0 != "enabled"
            }
        }
        expect(try await machine.run("dialtone", "status")) { $0.contains("No connections.") }
        try await machine.run(
            "dialtoned", "--check-config", "--config", "/usr/share/doc/dialtone/examples/dialtone.toml")
    }

    /// A program in C that is built with the library's packages, as the guide has it, asks the agent.
    private static func checkLibrary(_ machine: BootedMachine) async throws {
        try await machine.install("libdialtone*.deb")
        let ask = """
            cc -o /run/path /usr/share/doc/libdialtone-dev/examples/path.c $(pkg-config --cflags --libs dialtone)
            read -r verdict < <(exec /run/path 127.0.0.1)
            kill $!
            echo $verdict
            """
        expect(try await machine.run("bash", "-euc", ask), is: "satisfied")
        try await machine.run("dpkg", "--purge", "libdialtone-dev", "libdialtone1")
    }

    /// Another version takes the place of the one that runs, and of the clients that sleep none notices.
    private static func upgrade(
        _ machine: BootedMachine, to package: String, under traffic: SleepingClients
    ) async throws {
        let process = try await machine.property("MainPID")
        let version = try await machine.version()
        try await machine.install(package)
        try await traffic.finish()
        await traffic.check(machine)
        expect(try await machine.property("MainPID")) { $0 != process && $0 != "0" }
        expect(try await machine.version()) { $0 != version }
    }

    /// Whether a path is one that the machine's tools and services write by themselves, or for every package.
    static func mayStay(_ path: String) -> Bool {
        !path.contains("dialtone")
            && [
                "var/", "run/", "etc/ld.so.cache", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/subuid",
                "etc/subgid", "etc/.pwd.lock", "usr/local/lib/pkgconfig",
            ].contains(where: path.hasPrefix)
    }
}

extension BootedMachine {
    /// Installs packages as the guide says, whatever version is there. What they depend on must be there already.
    fileprivate func install(_ pattern: String) async throws {
        try await run("sh", "-c", "apt-get install --yes --allow-downgrades \(Self.packages)/\(pattern)")
    }

    /// The version that is installed.
    fileprivate func version() async throws -> String {
        try await run("dpkg-query", "--show", "--showformat=${Version}", "dialtone")
    }
}
