// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import Glibc

/// A command that is run with a connection's socket, and waited for.
struct Child: Sendable {
    /// How the command finds the socket.
    enum Streams {
        /// As its standard input and output.
        case standard
        /// As descriptor 3, in the convention of sd_listen_fds(3).
        case passed
    }

    let command: ForegroundCommand
    let connection: ConnectionsAPI.Connection
    let epoch: Int
    let streams: Streams

    /// Runs the command with the flow's socket, and returns its exit status (``ForegroundCommand/run(_:)``).
    @AgentQueue
    func run(with flow: consuming TakenFlow) async throws(ExitCode) -> CInt {
        var socket: OwnedDescriptor? = OwnedDescriptor(flow.release())
        return try await command.run { () throws(SystemError) in
            // Once, and there it is.
            guard let socket = socket.take() else { preconditionFailure("a command was started twice") }
            return try start(socket)
        }
    }

    private func start(_ socket: consuming OwnedDescriptor) throws(SystemError) -> pid_t {
        // The command reads and writes as with any file, and O_NONBLOCK is shared by all who have the socket.
        let flags = try retryingInterrupts("asking for a socket's flags") { fcntl(socket.number, F_GETFL) }
        if flags & O_NONBLOCK != 0 {
            try retryingInterrupts("making a socket blocking") { fcntl(socket.number, F_SETFL, flags & ~O_NONBLOCK) }
        }
        // Out of the way of the numbers that it is to have.
        let number = fcntl(socket.number, F_DUPFD_CLOEXEC, 10)
        if number < 0 { throw .last("duplicating a descriptor") }
        let copy = OwnedDescriptor(number)
        let words = streams.command(command)
        return try Spawn.start(
            "starting \(command.program)", words[0], words, environment: environment,
            descriptors: streams.places.map { ($0, .descriptor(copy.number)) })
    }

    /// This process's environment, and what the command is to know.
    private var environment: [String] {
        var all = Output.environment
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { all[name] = nil }
        all["DIALTONE_NAME"] = connection.name
        all["DIALTONE_OWNER"] = connection.owner.map { "\($0)" }
        all["DIALTONE_EPOCH"] = "\(epoch)"
        switch streams {
        case .standard: break
        case .passed:
            all["LISTEN_FDS"] = "1"
            // A colon parts one name from the next.
            all["LISTEN_FDNAMES"] = String(connection.name.map { $0 == ":" ? "_" : $0 })
        }
        return all.map { "\($0.key)=\($0.value)" }
    }
}

extension Child.Streams {
    /// The descriptors that the socket becomes.
    fileprivate var places: [CInt] {
        switch self {
        case .standard: [STDIN_FILENO, STDOUT_FILENO]
        case .passed: [3]
        }
    }

    /// What is run. `$LISTEN_PID` is to be the number of the command's own process, which nobody knows before there is
    /// one: a shell sets it and becomes the command.
    fileprivate func command(_ command: ForegroundCommand) -> [String] {
        let words = [command.program] + command.arguments.dropFirst()
        return switch self {
        case .standard: words
        case .passed: ["/bin/sh", "-c", #"export LISTEN_PID="$$"; exec "$@""#, "sh"] + words
        }
    }
}
