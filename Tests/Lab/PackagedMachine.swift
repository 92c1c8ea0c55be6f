// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// The Debian packages as `scripts/deb` makes them of the programs under test, and the agent's as a later version.
struct Packages {
    /// Where they lie.
    let directory: String
    /// The agent's package: this version, and one that dpkg takes for a later one.
    let (agent, next): (String, String)

    /// Why none can be built here, or installed on a machine that is a layer over this one; `nil` if they can.
    static let obstacle: Comment? = {
        for tool in ["dh", "dpkg-buildpackage", "lintian", "cmark-gfm", "mandoc"]
        where access("/usr/bin/\(tool)", X_OK) != 0 {
            return "there is no /usr/bin/\(tool): scripts/install-dependencies test"
        }
        guard getpwnam("dialtone") == nil else { return "the agent is installed here, as its user shows" }
        let layer = "mount -t tmpfs tmpfs /mnt; cd /mnt; mkdir upper work root; \(mountLayer(over: "/"))"
        let probe = Program.run("/usr/bin/unshare", ["--mount", "sh", "-euc", layer])
        return probe.status == 0 ? nil : "no layer can be mounted over this machine's files: \(probe.error)"
    }()

    /// Mounts a layer over the files in a folder, from the directories of the layer.
    fileprivate static func mountLayer(over folder: String) -> String {
        "mount -t overlay -o lowerdir='\(folder)',upperdir=upper,workdir=work overlay root"
    }

    private static let built = Task { try await build() }

    /// The packages, built once for all tests.
    static func all() async throws -> Packages { try await built.value }

    private static func build() async throws -> Packages {
        let machine = try await Namespace.island()
        let programs = URL(filePath: LabAgent.program("dialtoned")).deletingLastPathComponent().path
        let directory = "\(programs)/packages"
        try? FileManager.default.removeItem(atPath: directory)
        try await machine.command(["\(SourceTree.root)/scripts/deb", programs, directory], within: .seconds(600))
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        let agent = try #require(files.first { $0.hasPrefix("dialtone_") && $0.hasSuffix(".deb") }, "\(files)")
        let next = "next.deb"
        try await machine.command([
            "sh", "-euc",
            """
            cd "$0"
            dpkg-deb --raw-extract "$1" next
            sed -i 's/^Version: .*/&+next/' next/DEBIAN/control
            dpkg-deb --root-owner-group -Znone --build next "$2"
            rm -r next
            """, directory, agent, next,
        ])
        return Packages(directory: directory, agent: agent, next: next)
    }
}

/// A machine on which packages can be installed, since it keeps to itself what is written.
extension BootedMachine {
    /// Where it finds packages.
    static let packages = "/opt/packages"

    /// Boots one that has all that this one has, with packages at hand.
    static func bootWhole(with packages: Packages) async throws -> BootedMachine {
        // What this machine says of its services (policy-rc.d), and what agents left here, is not of the other one. The
        // test is in another network than that one.
        try await boot(
            over: "/", with: packages, files: ["etc/dialtone/dialtone.toml": LabAgent.admission],
            without: ["usr/sbin/policy-rc.d", "etc/dialtone", "var/lib/dialtone"])
    }

    /// Boots one from a folder, whose files stay as they are, with packages at hand.
    ///
    /// - Parameters:
    ///   - preparation: becomes the command that follows it.
    ///   - files: further files, by their paths.
    ///   - others: files of the folder that the machine does not have.
    static func boot(
        over folder: String, preparation: [String] = [], with packages: Packages, files: [String: String],
        without others: [String] = []
    ) async throws -> BootedMachine {
        let directory = newDirectory()
        // As in `install(into:)`: it sees nothing of the machine but what it is linked with.
        let libraries = runtimeLibraries()
        let seen = libraries.map { "BindReadOnlyPaths=\($0)\n" }.joined()
        let units = "etc/systemd/system"
        let all = files.merging([
            "\(units)/\(target)": bootUnit, "\(units)/dialtone-tls.service.d/test.conf": "[Service]\n\(seen)",
        ]) { mine, _ in mine }
        for (path, text) in all {
            let file = URL(filePath: "\(directory)/files/\(path)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try write(text, file.path)
        }
        try FileManager.default.createDirectory(atPath: "\(directory)/layer", withIntermediateDirectories: true)
        // The layer's own mounts end with the machine.
        let layer = """
            mount -t tmpfs -o mode=755 tmpfs "$0/layer"
            cd "$0/layer"
            mkdir upper work root
            \(Packages.mountLayer(over: folder))
            (cd root && rm -rf \(others.joined(separator: " ")))
            mkdir -p root\(BootedMachine.packages)
            cp -r "$0/files/." root
            exec "$@"
            """
        let machine = try await boot(
            directory, preparation: preparation + ["sh", "-euc", layer, directory],
            arguments: [
                "--directory=\(directory)/layer/root", "--resolv-conf=off", "--timezone=off",
                "--bind-ro=\(packages.directory):\(BootedMachine.packages)",
            ] + libraries.map { "--bind-ro=\($0)" }, until: "/run/systemd/private")
        // It says "degraded" with a status of its own where a service of this machine's finds no hardware.
        try await machine.run("sh", "-c", "systemctl is-system-running --wait || true")
        return machine
    }

    /// Copies files and folders of the source, as a clone has them, into a folder of the machine.
    func copySource(_ paths: String, to folder: String) async throws {
        let copy = """
            cd "$0"
            git -c safe.directory="$0" ls-files --cached --others --exclude-standard -z -- \(paths) |
                tar --create --null --files-from=- | "$@"
            """
        let unpack = inside + ["tar", "--extract", "--no-same-owner", "--directory=\(folder)"]
        try await network.command(["sh", "-euc", copy, SourceTree.root] + unpack)
    }

    /// Every path that was written, made or removed on its disk since it was booted from a folder.
    func changed(over folder: String = "/") -> Set<String> {
        // It is mounted only where the machine was booted from.
        let upper = "/proc/\(nspawn.processID)/root\(directory)/layer/upper"
        let paths = FileManager.default.enumerator(atPath: upper)?.compactMap { $0 as? String } ?? []
        // The layer has each directory, too, in which something was.
        return Set(paths.filter { !Self.isDirectory("\(upper)/\($0)") || !Self.isDirectory("\(folder)/\($0)") })
    }

    /// Users, and groups with their members.
    func accounts() async throws -> String { try await run("sh", "-c", "getent passwd; getent group") }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
