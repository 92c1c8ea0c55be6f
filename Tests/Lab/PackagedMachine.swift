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
        let layer = "mount -t tmpfs tmpfs /mnt; cd /mnt; mkdir upper work root; \(mountLayer)"
        let probe = Program.run("/usr/bin/unshare", ["--mount", "sh", "-euc", layer])
        return probe.status == 0 ? nil : "no layer can be mounted over this machine's files: \(probe.error)"
    }()

    /// Mounts a layer over this machine's files, from the directories of the layer.
    fileprivate static let mountLayer = "mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root"

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

/// A machine that has all that this one has, and keeps to itself what is written: packages can be installed on it.
extension BootedMachine {
    /// Where it finds packages.
    static let packages = "/opt/packages"

    /// Boots one with the packages of a directory at hand.
    ///
    /// - Parameter configuration: root's file, which is there before the package is.
    static func bootWhole(with packages: Packages, configuration: String = "") async throws -> BootedMachine {
        let directory = newDirectory()
        try FileManager.default.createDirectory(atPath: "\(directory)/layer", withIntermediateDirectories: true)
        try write(bootUnit, "\(directory)/\(target)")
        try write(configuration + LabAgent.admission, "\(directory)/dialtone.toml")
        // As in `install(into:)`: it sees nothing of the machine but what it is linked with.
        let libraries = runtimeLibraries()
        let seen = libraries.map { "BindReadOnlyPaths=\($0)\n" }.joined()
        try write("[Service]\n\(seen)", "\(directory)/libraries.conf")
        // The layer's own mounts end with the machine. What this machine says of its services (policy-rc.d), and what
        // agents left here, is not of the other one.
        let layer = """
            mount -t tmpfs -o mode=755 tmpfs "$0"
            cd "$0"
            mkdir upper work root
            \(Packages.mountLayer)
            rm -rf root/usr/sbin/policy-rc.d root/etc/dialtone root/var/lib/dialtone
            mkdir -p root/etc/dialtone root/etc/systemd/system/dialtone-tls.service.d root\(BootedMachine.packages)
            cp "$1/\(target)" root/etc/systemd/system
            cp "$1/libraries.conf" root/etc/systemd/system/dialtone-tls.service.d
            cp "$1/dialtone.toml" root/etc/dialtone
            shift
            exec "$@"
            """
        let machine = try await boot(
            directory, preparation: ["sh", "-euc", layer, "\(directory)/layer", directory],
            arguments: [
                "--directory=\(directory)/layer/root", "--resolv-conf=off", "--timezone=off",
                "--bind-ro=\(packages.directory):\(BootedMachine.packages)",
            ] + libraries.map { "--bind-ro=\($0)" }, until: "/run/systemd/private")
        // It says "degraded" with a status of its own where a service of this machine's finds no hardware.
        try await machine.run("sh", "-c", "systemctl is-system-running --wait || true")
        return machine
    }

    /// Every path that was written, made or removed on its disk since it was booted.
    func changed() -> Set<String> {
        // It is mounted only where the machine was booted from.
        let upper = "/proc/\(nspawn.processID)/root\(directory)/layer/upper"
        let paths = FileManager.default.enumerator(atPath: upper)?.compactMap { $0 as? String } ?? []
        // The layer has each directory, too, in which something was.
        return Set(paths.filter { !Self.isDirectory("\(upper)/\($0)") || !Self.isDirectory("/\($0)") })
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
