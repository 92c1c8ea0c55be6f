// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// One machine of the Lab: a network namespace, with a thread that lives in it.
package final class Namespace: Sendable {
    /// What the machine is called in messages.
    package let name: String
    /// Told at each change of the namespace's links, addresses, routes and rules.
    package let changes = ChangeSignal()

    private let thread: NamespaceThread
    private let processes = Lock<[LabProcess]>([])
    private let monitor: KernelMonitor
    private let registration: Poller.Registration

    /// A new namespace with only a loopback interface in it.
    package static func create(_ name: String) async throws -> Namespace {
        try await Namespace(name, in: .new)
    }

    init(_ name: String, in location: NamespaceThread.Location) async throws {
        self.name = name
        thread = try await NamespaceThread.start(in: location)
        monitor = try await thread.run { try KernelMonitor() }
        registration = try await monitor.start(changes)
    }

    deinit {
        // The monitor's descriptor stays open until its registration is cancelled.
        AgentQueue.async { [monitor, registration] in
            registration.cancel()
            withExtendedLifetime(monitor) {}
        }
    }

    /// The number by which `ip link … netns NUMBER` finds the namespace.
    package var threadID: CInt { thread.threadID }

    /// Ends every process that runs in the namespace. The namespace itself goes with the last reference to it.
    package func close() async {
        let running = processes.withLock { processes in
            defer { processes = [] }
            return processes.filter(\.isRunning)
        }
        for process in running { process.signal(SIGTERM) }
        // One that is stopped, or passes over the signal, is not waited for.
        for process in running { _ = try? await process.terminate(patience: .seconds(10)) }
    }
}

extension Namespace {
    /// Runs `body` on the namespace's own thread. Sockets that it opens belong to the namespace for good, wherever they
    /// are used afterwards. It may block for a while; what else wants the thread (starting a process, say) waits.
    ///
    /// It opens sockets and little else: work it gives to Dispatch, or a task, may start a thread of the pool, and that
    /// thread would stay in this namespace. Code that does so runs in ``LabNetwork/withThisProcessAsHost(_:)``.
    package func run<T: ~Copyable & Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await thread.run(body)
    }

    /// Starts a program that runs until it ends by itself, is ended, or the Lab is closed.
    ///
    /// - Throws: the kernel's refusal: `ENOENT` for a program that is not installed.
    package func spawn(_ arguments: [String], environment: [String: String] = [:]) async throws -> LabProcess {
        let settings = environment.map { "\($0)=\($1)" }.sorted()
        let arguments = settings.isEmpty ? arguments : ["env"] + settings + arguments
        let process = try await LabProcess.start(arguments, on: thread)
        processes.withLock { processes in
            processes.removeAll { !$0.isRunning }
            processes.append(process)
        }
        return process
    }

    /// Runs a program to its end and returns its standard output.
    ///
    /// - Parameters:
    ///   - input: what it reads on its standard input.
    ///   - limit: how long it may take, on a busy machine.
    /// - Throws: ``LabError/commandFailed(command:exit:standardError:)`` unless it ended with status 0.
    @discardableResult
    package func command(
        _ arguments: [String], input: String? = nil, within limit: Duration = ChangeSignal.generousLimit
    ) async throws -> String {
        let process = try await spawn(arguments)
        if let input { try process.send(input) }
        process.closeInput()
        let exit = try await process.exit(within: limit)
        guard exit == .status(0) else {
            throw LabError.commandFailed(
                command: process.command + (input.map { " <<\n\($0)" } ?? ""), exit: exit,
                standardError: process.text(of: .error))
        }
        return process.text(of: .output)
    }

    /// What an `ip neighbour` command says so that the kernel keeps the entry. It removes those that have failed every
    /// 15 s while there are more than 128 in all namespaces together (`neigh_periodic_work` in net/core/neighbour.c),
    /// and each namespace of the Lab has some twenty.
    package static let isKept = "extern_learn"

    /// Runs `ip` with these arguments, separated by blanks as in a shell.
    @discardableResult
    package func ip(_ arguments: String) async throws -> String {
        try await command(["ip"] + arguments.split(separator: " ").map(String.init))
    }

    /// Runs many `ip` commands, one a line, in one process; the first that fails ends it.
    ///
    /// - Parameter family: for commands that do not tell it by an address, such as those about rules.
    package func ip(batch commands: [String], _ family: Family? = nil) async throws {
        let arguments = ["ip"] + (family.map { [$0.rawValue] } ?? []) + ["-batch", "-"]
        try await command(arguments, input: commands.joined(separator: "\n") + "\n")
    }

    /// Sets kernel parameters of the namespace, by sysctl(8)'s names: `("net.ipv4.conf.wan0.forwarding", "0")`.
    package func sysctl(_ settings: [(String, String)]) async throws {
        try await thread.run {
            for (name, value) in settings {
                let file = try openParameter(name, O_WRONLY)
                var value = value
                try retryingInterrupts("setting \(name) to \(value)") {
                    value.withUTF8 { write(file.number, $0.baseAddress, $0.count) }
                }
            }
        }
    }

    /// Reads a kernel parameter of the namespace.
    package func sysctl(_ name: String) async throws -> String {
        try await thread.run {
            let file = try openParameter(name, O_RDONLY)
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = try retryingInterrupts("reading \(name)") { read(file.number, &buffer, buffer.count) }
            return String(decoding: buffer.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }
}

/// A kernel parameter of the namespace that the calling thread is in: `/proc/sys` shows whoever opens it his own.
private func openParameter(_ name: String, _ mode: CInt) throws(SystemError) -> OwnedDescriptor {
    let path = "/proc/sys/" + name.split(separator: ".").joined(separator: "/")
    return OwnedDescriptor(try retryingInterrupts("opening \(path)") { open(path, mode | O_CLOEXEC) })
}
