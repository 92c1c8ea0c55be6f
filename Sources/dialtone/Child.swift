// SPDX-License-Identifier: Apache-2.0

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

    /// What a command's name stands for.
    enum Finding {
        case program(String)
        case missing
        case forbidden(String)
    }

    /// The path of the program, which the command's name may be looked for on `$PATH`.
    let program: String
    /// The command as it was given.
    let arguments: [String]
    let connection: ConnectionsAPI.Connection
    let epoch: Int
    let streams: Streams

    /// Looks for a command as a shell does.
    static func find(_ command: String) -> Finding {
        let places =
            command.contains("/")
            ? [command]
            : (Output.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
                .map { "\($0)/\(command)" }
        if let program = places.first(where: { isFile($0) && access($0, X_OK) == 0 }) { return .program(program) }
        return places.first { access($0, F_OK) == 0 }.map { .forbidden($0) } ?? .missing
    }

    private static func isFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Runs the command with the flow's socket, passes signals on to it, and returns its exit status when it has ended;
    /// 128 and the signal's number when a signal ended it.
    @AgentQueue
    func run(with flow: consuming TakenFlow) async throws(SystemError) -> Int32 {
        let socket = OwnedDescriptor(flow.release())
        // The command reads and writes as with any file, and O_NONBLOCK is shared by all who have the socket.
        let flags = try retryingInterrupts("asking for a socket's flags") { fcntl(socket.number, F_GETFL) }
        if flags & O_NONBLOCK != 0 {
            try retryingInterrupts("making a socket blocking") { fcntl(socket.number, F_SETFL, flags & ~O_NONBLOCK) }
        }
        let signals = try PassedSignals()
        let process = try start(socket.number)
        socket.close()
        signals.pass(to: process)
        try await Spawn.awaitEnd(of: process)
        return try Spawn.exitStatus(of: process)
    }

    private func start(_ socket: CInt) throws(SystemError) -> pid_t {
        // Out of the way of the numbers that it is to have.
        let number = fcntl(socket, F_DUPFD_CLOEXEC, 10)
        if number < 0 { throw .last("duplicating a descriptor") }
        let copy = OwnedDescriptor(number)
        let command = streams.command(program, arguments)
        return try Spawn.start(
            "starting \(program)", command[0], command, environment: environment,
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
    fileprivate func command(_ program: String, _ arguments: [String]) -> [String] {
        switch self {
        case .standard: [program] + arguments.dropFirst()
        case .passed:
            ["/bin/sh", "-c", #"export LISTEN_PID="$$"; exec "$@""#, "sh", program] + arguments.dropFirst()
        }
    }
}
