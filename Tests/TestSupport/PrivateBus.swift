// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// A D-Bus bus of a test's own, with a folder of service files by which it starts programs.
package final class PrivateBus: Sendable {
    /// Whose program it is.
    package enum Kind: String, Sendable, CaseIterable {
        /// The reference implementation's.
        case daemon = "dbus-daemon"
        /// `dbus-broker`, which has systemd start programs: there is none on this bus, so each start fails.
        case broker = "dbus-broker"

        /// Whether it can be started here.
        package var isThere: Bool {
            switch self {
            case .daemon: systemProgram("dbus-daemon") != nil
            case .broker:
                systemProgram("dbus-broker-launch") != nil && systemProgram("systemd-socket-activate") != nil
                    && systemProgram("unshare") != nil && systemProgram("python3") != nil && geteuid() == 0
            }
        }
    }

    /// Those that can be started here; tells aloud of those that cannot.
    package static let kinds: [Kind] = Kind.allCases.filter { kind in
        if !kind.isThere { print("SKIPPED: tests on \(kind.rawValue), which is not there, or takes root") }
        return kind.isThere
    }

    private let kind: Kind
    private let place = TemporaryDirectory()
    private var directory: String { place.path }
    private let process = Lock<Int32?>(nil)

    /// Where it is, in D-Bus's form.
    package var address: String { "unix:path=\(directory)/bus" }

    /// A file of this test's, beside the bus.
    package func file(_ name: String) -> String { "\(directory)/\(name)" }

    /// A bus that does not run yet.
    package init(_ kind: Kind) throws {
        self.kind = kind
        mkdir("\(directory)/services", 0o700)
        write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
              "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>\(address)</listen>
              <servicedir>\(directory)/services</servicedir>
              <policy context="default">
                <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
              </policy>
            </busconfig>
            """, to: "bus.conf")
    }

    deinit { stop() }

    /// Says how a program of this name is started. A bus that runs is to be started anew.
    package func addService(_ name: String, _ command: String) {
        write("[D-BUS Service]\nName=\(name)\nExec=\(command)\n", to: "services/\(name).service")
    }

    /// Writes a file beside the bus.
    package func write(_ text: String, to name: String) {
        guard let stream = fopen(file(name), "w") else { preconditionFailure("\(SystemError.last("writing \(name)"))") }
        fputs(text, stream)
        fclose(stream)
    }

    /// Starts it, and returns when it takes connections.
    package func start() async throws {
        unlink(file("bus"))
        let path = file("bus")
        let command: [String]
        switch kind {
        case .daemon: command = ["dbus-daemon", "--config-file=\(file("bus.conf"))", "--nofork", "--nopidfile"]
        case .broker:
            write(Self.launcher, to: "broker.py")
            // Its launcher wants journald's socket, which not every machine has, and an end of its own of a bus.
            command = [
                "systemd-socket-activate", "-E", "DBUS_SESSION_BUS_ADDRESS=\(address)", "-l", path, "unshare",
                "--mount", "sh", "-c",
                "mount -t tmpfs tmpfs /run && exec \(systemProgram("python3") ?? "") '\(file("broker.py"))' "
                    + "'\(file("bus.conf"))'",
            ]
        }
        let null = open("/dev/null", O_RDWR)
        defer { close(null) }
        let started = try Spawn.start(
            "starting the bus", systemProgram(command[0]) ?? command[0], command,
            environment: ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"], inOwnGroup: true,
            descriptors: [(0, .descriptor(null)), (1, .descriptor(null)), (2, .descriptor(null))])
        process.withLock { $0 = started }
        try await eventually("\(kind.rawValue) takes connections") {
            access(path, F_OK) == 0
                && Program.run(systemProgram("busctl") ?? "", ["--address=\(address)", "list"]).status == 0
        }
    }

    /// Kills it, with what it started.
    package func stop() {
        guard let process = process.withLock({ $0.take() }) else { return }
        kill(-process, SIGKILL)
        _ = try? Spawn.exitStatus(of: process)
    }

    private static let launcher = """
        import os, socket, sys
        os.makedirs("/run/systemd/journal")
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        log.bind("/run/systemd/journal/socket")
        os.set_inheritable(log.fileno(), True)
        os.execvp("dbus-broker-launch", ["dbus-broker-launch", "--scope", "user", "--config-file=" + sys.argv[1]])
        """
}

/// Where a program of the system is; `nil` where it is not.
package func systemProgram(_ name: String) -> String? {
    ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin"].map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}
