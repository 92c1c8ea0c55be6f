// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A machine that systemd booted: this one's own /usr, everything else empty and in memory (systemd-nspawn(1),
/// `--volatile=yes`), in the network of a namespace of the Lab. The units of the agent are installed as they are
/// shipped.
final class BootedMachine: Sendable {
    /// The network it is in.
    let network: Namespace
    /// Talks to its agent.
    let client: DialtoneClient
    /// What keeps it running, in the mount namespace that it was booted from.
    let nspawn: LabProcess
    /// Its first process, seen from here.
    private let leader: CInt
    /// What it is made of, which goes with it.
    let directory: String

    /// Why no machine can be booted here; `nil` if one can.
    static let obstacle: Comment? = {
        guard LabSandbox.isInside else { return "outside of the Lab's sandbox" }
        guard geteuid() == 0 else { return "only root can boot a system in a container" }
        guard access("/usr/bin/systemd-nspawn", X_OK) == 0 else {
            return "there is no systemd-nspawn (Debian's systemd-container)"
        }
        guard access("/usr/lib/systemd/systemd", X_OK) == 0 else { return "there is no systemd to boot" }
        // Containers give root away and keep what it takes.
        let probe = Program.run("/usr/bin/unshare", ["--mount", "--pid", "--fork", "--ipc", "--uts", "true"])
        return probe.status == 0 ? nil : "root of this container has no namespaces to give: \(probe.error)"
    }()

    private init(network: Namespace, nspawn: LabProcess, leader: CInt, directory: String) {
        self.network = network
        self.nspawn = nspawn
        self.leader = leader
        self.directory = directory
        client = DialtoneClient(path: "/proc/\(leader)/root/run/dialtone/dialtone.sock")
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Boots a machine and returns when its sockets listen.
    ///
    /// - Parameters:
    ///   - settings: lines of the agent's unit that are of the test alone, for a drop-in.
    ///   - configuration: root's file.
    ///   - units: further units, by name.
    ///   - hooks: root's scripts, by name.
    ///   - writable: those of them that everybody can write to.
    static func boot(
        _ settings: String = "", configuration: String = "", units: [String: String] = [:],
        hooks: [String: String] = [:], writable: Set<String> = []
    ) async throws -> BootedMachine {
        let directory = newDirectory()
        try install(into: directory, settings, configuration)
        for (name, text) in units { try write(text, "\(directory)/system/\(name)") }
        for (name, text) in hooks {
            let file = "\(directory)/etc/hooks.d/\(name)"
            try write("#!/bin/sh\n\(text)\n", file)
            chmod(file, writable.contains(name) ? 0o777 : 0o755)
        }
        return try await boot(
            directory,
            arguments: [
                "--directory=/", "--volatile=yes", "--bind-ro=\(directory)/system:/etc/systemd/system",
                "--bind-ro=\(directory)/user:/etc/systemd/user",
                "--bind-ro=\(directory)/dialtone.sysusers:/etc/sysusers.d/dialtone.conf",
                "--bind-ro=\(directory)/dialtone.tmpfiles:/etc/tmpfiles.d/dialtone.conf",
                "--bind-ro=\(directory)/bin:/opt/dialtone", "--bind-ro=\(directory)/etc:/etc/dialtone",
            ] + runtimeLibraries().map { "--bind-ro=\($0)" }, until: "/run/dialtone/dialtone.sock")
    }

    /// The name of a new directory for what a machine is made of.
    static func newDirectory() -> String { NSTemporaryDirectory() + "dialtone-boot.\(UUID().uuidString.prefix(8))" }

    /// Boots a machine from a directory of its own, which goes with it, and returns when it has made a file.
    ///
    /// - Parameters:
    ///   - preparation: words of a command that prepares its file systems and becomes the command that follows it.
    ///   - arguments: what systemd-nspawn(1) is told beside.
    ///   - file: the file, as the machine sees it.
    static func boot(
        _ directory: String, preparation: [String] = [], arguments: [String], until file: String
    ) async throws -> BootedMachine {
        let network = try await Namespace.island()
        let nspawn = try await network.spawn(
            Self.apart + preparation + [
                "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--machine=dialtone-boot",
                "--kill-signal=SIGKILL", "--console=pipe",
            ] + arguments + [
                "--boot", "systemd.firstboot=off", "systemd.show_status=yes", "systemd.unit=\(target)",
            ])
        let leader = try await leader(below: nspawn, until: file)
        return BootedMachine(network: network, nspawn: nspawn, leader: leader, directory: directory)
    }

    /// Turns it off, as pulling the plug does. What waits for the container passes over any other signal.
    func turnOff() async throws {
        try await nspawn.killNow()
        await network.close()
    }

    /// Runs a command in it to its end, and returns what it wrote.
    @discardableResult
    func run(_ command: String...) async throws -> String { try await run(command) }

    /// Runs a command in it to its end, and returns what it wrote.
    @discardableResult
    func run(_ command: [String]) async throws -> String {
        try await network.command(inside + command)
    }

    /// Runs a command in it that goes on, or takes long.
    func start(_ command: String...) async throws -> LabProcess { try await network.spawn(inside + command) }

    /// Becomes the command that follows, in the machine.
    var inside: [String] { ["nsenter", "--target", "\(leader)", "--all", "--"] }

    /// Sends the agent one long message after the other on four connections, as a user of the machine, through every
    /// restart; until it is refused, which it prints, or has had so many answers.
    func flood(as user: String, rounds: Int = 1_000_000) async throws -> LabProcess {
        let script = """
            import os, socket, sys, threading, time
            message = b'{"method":"org.varlink.service.GetInfo",' + b' ' * 60000 + b'"parameters":{}}\\0'
            def run():
                done = 0
                while done < \(rounds):
                    try:
                        agent = socket.socket(socket.AF_UNIX)
                        agent.connect("/run/dialtone/dialtone.sock")
                        while done < \(rounds):
                            agent.sendall(message)
                            answer = b''
                            while not answer.endswith(b'\\0'):
                                piece = agent.recv(65536)
                                if not piece: raise OSError
                                answer += piece
                            if b'"error"' in answer:
                                print(answer[:-1].decode(), flush=True)
                                os._exit(0)
                            done += 1
                    except OSError:
                        time.sleep(0.01)
                print("answered", flush=True)
            for _ in range(\(rounds == 1 ? 1 : 4)): threading.Thread(target=run).start()
            """
        return try await start(
            "setpriv", "--reuid", user, "--regid", "dialtone", "--clear-groups", "/usr/bin/python3", "-c", script)
    }

    /// Answers each connection to a port of the machine with a line, and prints what comes back.
    func bell(_ port: Int) async throws -> LabProcess {
        let script = """
            import socket
            bell = socket.create_server(("127.0.0.1", \(port)))
            print("ready", flush=True)
            while True:
                client = bell.accept()[0]
                client.sendall(b"ring\\n")
                print(client.makefile().readline().strip(), flush=True)
            """
        let bell = try await network.spawn(["python3", "-c", script])
        _ = try await bell.line(containing: "ready")
        return bell
    }

    /// A server with TLS that passes on what comes to a port of the machine, and back, with the end of either.
    func tlsFront(of port: UInt16) async throws -> (process: LabProcess, port: Int) {
        let certificate = TestCertificate(.init("front"))
        let file = "\(directory)/front.pem"
        try Self.write(certificate.pem + certificate.keyText(), file)
        let script = """
            import asyncio, ssl
            async def copy(reader, writer):
                try:
                    while piece := await reader.read(65536):
                        writer.write(piece)
                        await writer.drain()
                    writer.close()
                except OSError:
                    writer.transport.abort()
            async def serve(reader, writer):
                inner, outer = await asyncio.open_connection("127.0.0.1", \(port))
                await asyncio.gather(copy(reader, outer), copy(inner, writer))
            async def main():
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.load_cert_chain("\(file)")
                server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
                print("ready", server.sockets[0].getsockname()[1], flush=True)
                await server.serve_forever()
            asyncio.run(main())
            """
        let front = try await network.spawn(["python3", "-c", script])
        let ready = try await front.line(containing: "ready").text
        guard let port = ready.split(separator: " ").last.flatMap({ Int($0) }) else {
            throw LabError.timedOut(awaited: "the server with TLS", limit: .zero, state: ready)
        }
        return (front, port)
    }

    /// A property of the agent's service.
    func property(_ name: String) async throws -> String {
        try await run("systemctl", "show", "dialtoned.service", "--property=\(name)", "--value")
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Waits until a process of the agent runs that is not the one of so many restarts.
    func restarted(since restarts: String) async throws {
        let deadline = BootClock.now() + .seconds(60)
        // The manager tells of it by D-Bus alone; a look takes it longer than the pause.
        while true {
            let (count, process) = (try await property("NRestarts"), try await property("MainPID"))
            if count != restarts, process != "0" { return }
            guard BootClock.now() < deadline else {
                throw LabError.timedOut(awaited: "a restart", limit: .seconds(60), state: await journal())
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// What the agent wrote into the journal.
    func journal() async -> String {
        (try? await run("journalctl", "--unit=dialtoned.service", "--output=cat", "--no-pager")) ?? "no journal"
    }

    // MARK: - What it is made of

    /// What becomes the command that follows, where it can boot a machine. The Lab's /sys shows its network, and no
    /// control groups; the one below it does. In PIDs of its own, so that nothing of the machine outlives the command.
    private static let apart = [
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
        #"until [ -n "$(ls /sys/fs/cgroup)" ]; do umount /sys || exit; done; exec "$@""#, "sh",
    ]

    /// The units as `make install` leaves them, with what the tests need beside.
    private static func install(into directory: String, _ settings: String, _ configuration: String) throws {
        let files = FileManager.default
        let units = "\(directory)/system"
        for folder in [
            "system/dialtoned.service.d", "system/dialtone-tls.service.d", "system/dialtone-metrics@.service.d",
            "system/sockets.target.wants", "user", "bin", "etc/hooks.d",
        ].map({
            "\(directory)/\($0)"
        }) {
            try files.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        let source = URL(filePath: SourceTree.root).appending(path: "systemd")
        func writeUnit(_ path: String, into folder: String) throws {
            let text = try String(contentsOf: source.appending(path: path), encoding: .utf8)
            let name = URL(filePath: path).lastPathComponent.replacing(/\.in$/, with: "")
            let installed = text.replacing(/@(BINDIR|LIBEXECDIR)@/, with: "/opt/dialtone")
            try write(installed, "\(directory)/\(folder)/\(name)")
        }
        for name in [
            "dialtoned", "dialtone-hooks", "dialtone-launcher", "dialtone-metrics@", "dialtone-reachable@",
            "dialtone-tls",
        ] {
            try writeUnit("\(name).service.in", into: "system")
        }
        for name in try files.contentsOfDirectory(atPath: source.appending(path: "user").path) {
            try writeUnit("user/\(name)", into: "user")
        }
        for name in ["dialtoned", "dialtone-launcher", "dialtone-tls"] {
            try files.createSymbolicLink(
                atPath: "\(units)/sockets.target.wants/\(name).socket", withDestinationPath: "../\(name).socket")
        }
        // The test is in another network than the machine.
        try write(configuration + LabAgent.admission, "\(directory)/etc/dialtone.toml")
        chmod("\(directory)/etc/dialtone.toml", 0o644)
        for file in [
            "system/dialtoned.socket", "system/dialtone-launcher.socket", "system/dialtone-tls.socket",
            "system/dialtone-metrics.socket", "system/dialtone-reachable@.target", "dialtone.sysusers",
            "dialtone.tmpfiles", "bin/dialtone.catalog",
        ] {
            let name = URL(filePath: file).lastPathComponent
            try files.copyItem(atPath: source.appending(path: name).path, toPath: "\(directory)/\(file)")
        }
        for program in ["dialtoned", "dialtone-launcher", "dialtone-tls", "dialtone"] {
            try files.copyItem(atPath: LabAgent.program(program), toPath: "\(directory)/bin/\(program)")
        }
        try write(settings, "\(units)/dialtoned.service.d/test.conf")
        // They see nothing of the machine but what they are linked with.
        let libraries = runtimeLibraries().map { "BindReadOnlyPaths=\($0)\n" }.joined()
        for name in ["dialtone-tls", "dialtone-metrics@"] {
            try write("[Service]\n\(libraries)", "\(units)/\(name).service.d/test.conf")
        }
        // The user and the directories are made by what a machine makes them with at each boot.
        try write(bootUnit, "\(units)/\(target)")
    }

    /// The unit that is booted, and what it says.
    static let target = "lab.target"
    static let bootUnit = "[Unit]\nRequires=sysinit.target sockets.target\nAfter=sysinit.target sockets.target\n"

    static func write(_ text: String, _ path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    /// Where the toolchain's libraries are, which a debug build needs.
    static func runtimeLibraries() -> [String] {
        let listing = Program.run("/usr/bin/ldd", [LabAgent.program("dialtoned")]).output
        return Set(listing.matches(of: /=> (\/\S+)\/libswift\w+\.so/).map { String($0.1) }).sorted()
    }

    /// The machine's first process, once the file is there that its units make.
    private static func leader(below nspawn: LabProcess, until file: String) async throws -> CInt {
        let deadline = BootClock.now() + .seconds(120)
        while true {
            let leader = leader(below: nspawn.processID)
            if let leader, access("/proc/\(leader)/root\(file)", F_OK) == 0 { return leader }
            guard nspawn.isRunning, BootClock.now() < deadline else {
                let output = nspawn.lines.map(\.text).joined(separator: "\n")
                throw LabError.timedOut(awaited: "the machine to boot", limit: .seconds(120), state: output)
            }
            // Nothing tells of a file in another mount namespace.
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private static func leader(below process: CInt) -> CInt? {
        let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        if name == "systemd\n" { return process }
        let children = try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
        return (children ?? "").split(separator: " ").compactMap { CInt($0) }.lazy.compactMap(leader).first
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where no machine can be booted, and says why.
    static var booted: Self {
        .enabled(if: BootedMachine.obstacle == nil, BootedMachine.obstacle ?? "a machine can be booted")
    }
}
