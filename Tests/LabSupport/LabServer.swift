// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import Glibc
internal import Platform
internal import Synchronization

/// A real MQTT server: mosquitto, as Debian ships it.
public final class Broker: Sendable {
    /// The machine it runs on.
    public let machine: Namespace
    /// Where it listens, on every address of the machine.
    public let port: UInt16

    private let process: Mutex<LabProcess>

    private init(machine: Namespace, port: UInt16, process: LabProcess) {
        self.machine = machine
        self.port = port
        self.process = Mutex(process)
    }

    /// Starts a broker and returns when it accepts connections.
    public static func start(on machine: Namespace, port: UInt16 = 1883) async throws -> Broker {
        Broker(machine: machine, port: port, process: try await launch(on: machine, port: port))
    }

    /// Its process since the last start; what it logs are lines of it.
    public var log: LabProcess { process.withLock { $0 } }

    /// Asks it to end, and waits until it has: connections are closed by the broker.
    public func stop() async throws {
        try await log.terminate()
    }

    /// Kills it: connections are closed by the kernel.
    public func kill() async throws {
        try await log.killNow()
    }

    /// Starts it again, stopping it first if it runs; returns when it accepts connections.
    public func restart() async throws {
        if log.isRunning { try await stop() }
        let started = try await Self.launch(on: machine, port: port)
        process.withLock { $0 = started }
    }

    private static func launch(on machine: Namespace, port: UInt16) async throws -> LabProcess {
        // `user root`, since in a user namespace there is nobody else to become; no persistence, so that nothing of a
        // former run comes back.
        let configuration = """
            listener \(port)
            allow_anonymous true
            user root
            persistence false
            log_dest stderr
            log_type all
            """
        // From a shell's here-document, so that no file is left behind.
        let process = try await machine.spawn(["sh", "-c", "exec mosquitto -c /dev/fd/3 3<<END\n\(configuration)\nEND"])
        _ = try await process.line(containing: "running")
        // It says so shortly before its loop begins, and a signal in between is lost. Whom it has accepted knows.
        let probe = try await machine.run { try TCPSocket.connected(to: "127.0.0.1", port) }
        _ = try await process.line(containing: "New connection from 127.0.0.1:\(try probe.port())")
        return process
    }
}
