// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

extension PackageStories {
    @Test(.bareDebian)
    func `on a bare Debian apt and the guides bring all that it takes, and purge leaves nothing`() async throws {
        let machine = try await BareDebian.boot(with: try await Packages.all())
        let reader = try await Reader(on: machine)
        let packages = "dpkg-query --show --showformat='${binary:Package}\\n' | LC_ALL=C sort"
        try await reader.types("\(packages) >packages")
        let (before, accounts) = (machine.changed(over: BareDebian.folder), try await machine.accounts())

        let install = try GuidePage("docs/packages.md").commands
        try await reader.types(try #require(install.first { $0.contains("usermod") }))
        try await reader.types("sudo systemctl start dialtone")
        let status = try await reader.types(try #require(install.first { $0 == "dialtone status" }))
        #expect(status.contains("No connections."), "\(status)")

        try await machine.network.landBridge()
        // Of each page, what installs from the packages stands before what installs from the source.
        let (c, python) = (try ClientTutorial("docs/clients-c.md"), try ClientTutorial("docs/clients-python.md"))
        for tutorial in [c, python] {
            try await reader.types(tutorial.page.commands[0])
            try await tutorial.tellPaths(on: machine.network, by: reader.starts)
            try await tutorial.answer(on: machine.network, by: reader.starts)
            try await reader.types("dialtone close chat")
        }

        try await Self.checkLibrariesFromSource(machine, reader, c, python)

        try await reader.types("sudo apt install ./dialtone-gio_*.deb ./dialtone-doc_*.deb")
        // GLib's own package has read it.
        try await reader.types("grep libgiodialtone.so /usr/lib/*/gio/modules/giomodule.cache")
        try await reader.types("sudo apt purge 'dialtone*' 'libdialtone*' python3-dialtone-client")
        // Without the rest that came with them: what is different then is theirs.
        try await reader.types("sudo apt purge $(\(packages) | LC_ALL=C comm -13 packages -)")
        let left = machine.changed(over: BareDebian.folder).subtracting(before)
        #expect(left.filter { !$0.hasPrefix("home/alice/") && !Self.mayStay($0) }.sorted() == [])
        try await Self.checkGone(machine, accounts)
        try await machine.turnOff()
    }

    /// What the pages say of the libraries without our packages works, too.
    private static func checkLibrariesFromSource(
        _ machine: BootedMachine, _ reader: Reader, _ c: ClientTutorial, _ python: ClientTutorial
    ) async throws {
        try await machine.copySource("VERSION Clients", to: "/home/alice")
        try await machine.run("chown", "--recursive", "alice", "/home/alice")
        try await reader.types(c.page.commands[1])
        let build = "cc -o path Clients/C/examples/path.c $(pkg-config --cflags --libs dialtone); ldd path"
        #expect(try await reader.types(build).contains("/usr/local/lib/libdialtone.so"))
        try await c.tellPaths(on: machine.network, by: reader.starts)
        try await reader.types("sudo make -C Clients/C uninstall")

        // What Debian has of PyPI is enough for pip.
        try await reader.types("sudo apt install python3-wheel-whl")
        let offline = "export PIP_NO_INDEX=yes PIP_FIND_LINKS=/usr/share/python-wheels"
        try await reader.types("\(offline)\n\(python.page.commands[1])")
        try await python.tellPaths(on: machine.network) { command in
            try await reader.starts("venv/bin/python Clients/Python/examples/\(command)")
        }
    }
}

/// A Debian of this machine's release with little more than what every Debian has, which `scripts/bare-debian` made.
enum BareDebian {
    private static let home = "\(SourceTree.root)/.build/bare-debian"
    /// Its files.
    static let folder = "\(home)/root"

    /// Boots a machine of it, which has no network, with packages at hand.
    static func boot(with packages: Packages) async throws -> BootedMachine {
        // The script makes none anew meanwhile.
        try await BootedMachine.boot(
            over: folder, preparation: ["flock", "--shared", "\(home).lock"], with: packages,
            files: ["etc/sudoers.d/alice": "alice ALL=(ALL) NOPASSWD: ALL\n"])
    }
}

/// Who reads the documentation: the user alice of a machine, who may use sudo, and has the packages in her home.
private struct Reader {
    private let machine: BootedMachine

    init(on machine: BootedMachine) async throws {
        self.machine = machine
        try await machine.run("useradd", "--create-home", "--shell", "/bin/bash", "alice")
        try await machine.run("sh", "-c", "ln -s \(BootedMachine.packages)/*.deb ~alice")
    }

    /// She logs in, types commands, answers every question with yes, and returns what was printed.
    @discardableResult
    func types(_ commands: String) async throws -> String {
        let shell = try await login("set -e\n\(commands)")
        let exit = try await shell.exit(within: .seconds(300))
        let printed = shell.lines.map(\.text).joined(separator: "\n")
        guard exit == .status(0) else {
            throw LabError.commandFailed(command: commands, exit: exit, standardError: printed)
        }
        return printed
    }

    /// She logs in and runs a program that goes on.
    func starts(_ command: String) async throws -> LabProcess { try await login("exec \(command)") }

    private func login(_ commands: String) async throws -> LabProcess {
        try await machine.start("sh", "-c", "yes | runuser --login alice --command \"$0\"", commands)
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where there is no bare Debian to boot.
    static var bareDebian: Self {
        .enabled(
            if: FileManager.default.fileExists(atPath: "\(BareDebian.folder)/sbin/init"),
            "there is no bare Debian here: scripts/bare-debian makes it, or says why it cannot")
    }
}
