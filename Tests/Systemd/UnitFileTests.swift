// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

/// The files in `systemd/`, as systemd itself reads them.
struct UnitFileTests {
    /// The units as `make install` leaves them, with a program where they expect one.
    private final class Installation {
        private let place = TemporaryDirectory()
        var directory: String { place.path }
        static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("systemd")

        init() throws {
            for program in ["dialtone", "dialtoned", "dialtone-launcher", "dialtone-tls"] {
                try place.write("#!/bin/sh\n", to: "bin/\(program)")
                chmod("\(directory)/bin/\(program)", 0o755)
            }
            for unit in [
                "dialtoned", "dialtone-hooks", "dialtone-launcher", "dialtone-reachable@", "dialtone-tls",
                "user/dialtoned",
                "user/dialtone-hooks", "user/dialtone-reachable@", "user/dialtone-tls",
            ] {
                let service = try String(
                    contentsOf: Self.sources.appendingPathComponent("\(unit).service.in"), encoding: .utf8)
                let text = service.replacing(/@(BINDIR|LIBEXECDIR)@/, with: "\(directory)/bin")
                try place.write(text, to: "\(unit).service")
                for kind in ["socket", "target"] {
                    let file = Self.sources.appendingPathComponent("\(unit).\(kind)").path
                    guard FileManager.default.fileExists(atPath: file) else { continue }
                    try FileManager.default.copyItem(atPath: file, toPath: "\(directory)/\(unit).\(kind)")
                }
            }
        }

        /// Runs a tool of systemd's and returns all that it said.
        func run(_ tool: String, _ arguments: String...) throws -> (status: Int32, output: String) {
            let paths = ["/usr/bin/\(tool)", "/bin/\(tool)"]
            guard let path = paths.first(where: FileManager.default.isExecutableFile) else {
                try Test.cancel("this machine has no \(tool)")
            }
            // The analysis of a user's units asks for the session's directory and reads nothing of it.
            let result = Program.run(
                path, arguments,
                environment: [
                    "XDG_RUNTIME_DIR": directory, "HOME": directory, "PATH": "/usr/bin:/bin", "LC_ALL": "C",
                ])
            return (result.status, result.output + result.error)
        }
    }

    // The manual pages are made by `make install` and need not be there yet.

    @Test func `the system units verify`() throws {
        let installed = try Installation()
        let result = try installed.run(
            "systemd-analyze", "verify", "--man=no", "\(installed.directory)/dialtoned.service",
            "\(installed.directory)/dialtoned.socket", "\(installed.directory)/dialtone-launcher.service",
            "\(installed.directory)/dialtone-launcher.socket", "\(installed.directory)/dialtone-tls.service",
            "\(installed.directory)/dialtone-tls.socket", "\(installed.directory)/dialtone-hooks.service",
            "\(installed.directory)/dialtone-reachable@192.0.2.7.service",
            "\(installed.directory)/dialtone-reachable@192.0.2.7.target")
        #expect(result == (0, ""))
    }

    @Test func `the units of a user session verify`() throws {
        let installed = try Installation()
        let result = try installed.run(
            "systemd-analyze", "--user", "verify", "--man=no", "\(installed.directory)/user/dialtoned.service",
            "\(installed.directory)/user/dialtoned.socket", "\(installed.directory)/user/dialtone-tls.service",
            "\(installed.directory)/user/dialtone-tls.socket", "\(installed.directory)/user/dialtone-hooks.service",
            "\(installed.directory)/user/dialtone-reachable@192.0.2.7.service",
            "\(installed.directory)/user/dialtone-reachable@192.0.2.7.target")
        #expect(result == (0, ""))
    }

    /// What the daemon ends with where a restart would end it the same way: a bad command line, a file that cannot be
    /// made, a bad configuration. The rest of its statuses (EX_OSERR, EX_UNAVAILABLE) may pass.
    @Test(arguments: ["dialtoned", "user/dialtoned"])
    func `a start that cannot succeed is not repeated`(unit: String) throws {
        let text = try String(
            contentsOf: Installation.sources.appendingPathComponent("\(unit).service.in"), encoding: .utf8)
        let line = try #require(text.firstMatch(of: /\nRestartPreventExitStatus=([0-9 ]+)\n/))
        #expect(Set(line.1.split(separator: " ").compactMap { CInt($0) }) == [EX_USAGE, EX_CANTCREAT, EX_CONFIG])
    }

    /// Before version 254 the manager does not tell the service how many descriptors it keeps.
    @Test(arguments: ["dialtoned", "user/dialtoned"])
    func `the daemon is told how many descriptors are kept`(unit: String) throws {
        let text = try String(
            contentsOf: Installation.sources.appendingPathComponent("\(unit).service.in"), encoding: .utf8)
        let limit = try #require(text.firstMatch(of: /\nFileDescriptorStoreMax=(\d+)\n/))
        let told = try #require(text.firstMatch(of: /\nEnvironment=FDSTORE=(\d+)\n/))
        #expect(limit.1 == told.1)
    }

    /// A figure of the unit file, not of this machine: 0 is no exposure at all, 10 a service with no sandbox.
    @Test func `the service is hardly exposed`() throws {
        let (exposure, output) = try exposure(of: "dialtoned.service")
        #expect(exposure <= 1.5, "\(output)")
    }

    private func exposure(of unit: String) throws -> (level: Double, output: String) {
        let installed = try Installation()
        let result = try installed.run(
            "systemd-analyze", "security", "--offline=yes", "--no-pager", "\(installed.directory)/\(unit)")
        let overall = try #require(
            result.output.firstMatch(of: /exposure level for (\S+): (\d+\.\d+)/), "\(result.output)")
        try #require(overall.1 == unit)
        return (try #require(Double(overall.2)), result.output)
    }

    /// It reads what name servers say, and needs nothing else.
    @Test func `the unit that follows a host is confined`() throws {
        let (exposure, output) = try exposure(of: "dialtone-reachable@host.service")
        #expect(exposure <= 1.5, "\(output)")
    }

    /// The launcher is root's; what confines it is inherited by no program, since those are units of their own.
    @Test func `the launcher is confined`() throws {
        let (exposure, output) = try exposure(of: "dialtone-launcher.service")
        #expect(exposure <= 3, "\(output)")
    }

    /// It has the keys, and needs nothing of the machine.
    @Test func `the process that does TLS is not exposed`() throws {
        let (exposure, output) = try exposure(of: "dialtone-tls.service")
        #expect(exposure < 1, "\(output)")
    }

    @Test(arguments: ["dialtoned", "dialtone-tls", "user/dialtone-tls"])
    func `no core dump is made of what holds keys`(unit: String) throws {
        let text = try String(
            contentsOf: Installation.sources.appendingPathComponent("\(unit).service.in"), encoding: .utf8)
        #expect(text.contains("\nLimitCORE=0\n"))
    }

    @Test func `the user and the directories are understood`() throws {
        let installed = try Installation()
        let user = try installed.run(
            "systemd-sysusers", "--dry-run", "--root=\(installed.directory)",
            Installation.sources.appendingPathComponent("dialtone.sysusers").path)
        #expect(user.status == 0 && user.output.contains("Creating user 'dialtone'"), "\(user.output)")
        let directories = try installed.run(
            "systemd-tmpfiles", "--create", "--root=\(installed.directory)",
            Installation.sources.appendingPathComponent("dialtone.tmpfiles").path)
        // Giving a directory to root takes root; that it was made shows that the line was read.
        #expect(FileManager.default.fileExists(atPath: "\(installed.directory)/run/dialtone"), "\(directories.output)")
    }
}
