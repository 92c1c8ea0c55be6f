// SPDX-License-Identifier: Apache-2.0

internal import Platform

/// A real server, as Debian ships it, on a machine of the Lab.
public final class LabServer: Sendable {
    /// Which server, and how it is configured.
    public struct Recipe: Sendable {
        /// Where it listens, on every address of the machine.
        public let port: UInt16
        fileprivate let launch: @Sendable (Namespace) async throws -> LabProcess

        /// A way to run a server on `port`. `launch` starts it, and returns when it accepts connections.
        public init(port: UInt16, launch: @escaping @Sendable (Namespace) async throws -> LabProcess) {
            self.port = port
            self.launch = launch
        }
    }

    /// The machine it runs on.
    public let machine: Namespace
    /// Where it listens, on every address of the machine.
    public var port: UInt16 { recipe.port }

    private let recipe: Recipe
    private let process: Lock<LabProcess>

    private init(_ recipe: Recipe, on machine: Namespace, process: LabProcess) {
        self.recipe = recipe
        self.machine = machine
        self.process = Lock(process)
    }

    /// Starts a server and returns when it accepts connections.
    public static func start(_ recipe: Recipe, on machine: Namespace) async throws -> LabServer {
        LabServer(recipe, on: machine, process: try await recipe.launch(machine))
    }

    /// Its process since the last start; what it logs are lines of it.
    public var log: LabProcess { process.withLock { $0 } }

    /// Asks it to end, and waits until it has: connections are closed by the server.
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
        let started = try await recipe.launch(machine)
        process.withLock { $0 = started }
    }
}
