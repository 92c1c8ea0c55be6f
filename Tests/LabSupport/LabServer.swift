// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// A real server, as Debian ships it, on a machine of the Lab.
package final class LabServer: Sendable {
    /// Which server, and how it is configured.
    package struct Recipe: Sendable {
        /// Where it listens, on every address of the machine.
        package let port: UInt16
        fileprivate let launch: @Sendable (Namespace) async throws -> LabProcess

        /// A way to run a server on `port`. `launch` starts it, and returns when it accepts connections.
        package init(port: UInt16, launch: @escaping @Sendable (Namespace) async throws -> LabProcess) {
            self.port = port
            self.launch = launch
        }
    }

    /// The machine it runs on.
    package let machine: Namespace
    /// Where it listens, on every address of the machine.
    package var port: UInt16 { recipe.port }

    private let recipe: Recipe
    private let process: Lock<LabProcess>

    private init(_ recipe: Recipe, on machine: Namespace, process: LabProcess) {
        self.recipe = recipe
        self.machine = machine
        self.process = Lock(process)
    }

    /// Starts a server and returns when it accepts connections.
    package static func start(_ recipe: Recipe, on machine: Namespace) async throws -> LabServer {
        LabServer(recipe, on: machine, process: try await recipe.launch(machine))
    }

    /// Its process since the last start; what it logs are lines of it.
    package var log: LabProcess { process.withLock { $0 } }

    /// Asks it to end, and waits until it has: connections are closed by the server.
    package func stop() async throws {
        try await log.terminate()
    }

    /// Kills it: connections are closed by the kernel.
    package func kill() async throws {
        try await log.killNow()
    }

    /// Starts it again, stopping it first if it runs; returns when it accepts connections.
    package func restart() async throws {
        if log.isRunning { try await stop() }
        let started = try await recipe.launch(machine)
        process.withLock { $0 = started }
    }
}
