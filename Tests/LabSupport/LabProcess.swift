// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A program that runs in a namespace of the Lab, with its output captured line by line.
///
/// It does not outlive its namespace: closing the Lab ends it, and should the test process crash, the kernel kills it.
package final class LabProcess: Sendable {
    /// How a process ended.
    package enum Exit: Hashable, Sendable, CustomStringConvertible {
        /// By returning this status.
        case status(CInt)
        /// By this signal.
        case signal(CInt)

        /// The end of a sentence whose subject is the command.
        package var description: String {
            switch self {
            case .status(let status): "ended with status \(status)"
            case .signal(let number): "was ended by signal \(number)"
            }
        }
    }

    /// Where a line came from.
    package enum Stream: Hashable, Sendable {
        /// Standard output.
        case output
        /// Standard error.
        case error
    }

    /// A line of output.
    package struct Line: Hashable, Sendable {
        /// Counts the lines of the process, both streams together, from zero.
        package let number: Int
        /// Which stream it was written to.
        package let stream: Stream
        /// The line without its end.
        package let text: String
        /// When it was read, on `BootClock`.
        package let time: Duration
    }

    /// The process's number.
    package let processID: CInt
    /// The command line, for messages.
    package let command: String
    /// Told at each line and at the end of the process.
    package let changes = ChangeSignal()

    private struct State: ~Copyable {
        var lines: [Line] = []
        var exit: Exit?
        var input: OwnedDescriptor?
    }

    private let state: Lock<State>

    private init(processID: CInt, command: String, input: consuming OwnedDescriptor) {
        self.processID = processID
        self.command = command
        self.state = Lock(State(input: input))
    }

    /// Starts `arguments` as a child of the thread and in its namespaces.
    ///
    /// - Throws: the kernel's refusal: `ENOENT` for a program that is not there.
    static func start(_ arguments: [String], on thread: NamespaceThread) async throws -> LabProcess {
        let (process, output, error) = try await thread.run { try start(arguments) }
        await process.watch(output: output, error: error)
        return process
    }

    /// Starts the process from the calling thread; returns also the descriptors to read its output from.
    private static func start(_ arguments: [String]) throws -> (process: LabProcess, output: CInt, error: CInt) {
        let command = arguments.joined(separator: " ")
        // A socket pair, not a pipe, because a write to a process that is gone must be an error and not a SIGPIPE.
        let input = try DescriptorPair("making the standard input of `\(command)`") {
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, $0)
        }
        let output = try DescriptorPair("making the standard output of `\(command)`") { pipe2($0, O_CLOEXEC) }
        let error = try DescriptorPair("making the standard error of `\(command)`") { pipe2($0, O_CLOEXEC) }
        let pid = withCStrings(arguments) {
            clab_spawn($0, input.second.number, output.second.number, error.second.number)
        }
        guard pid > 0 else { throw SystemError.last("starting `\(command)`") }
        let process = LabProcess(processID: pid, command: command, input: input.first)
        return (process, output.first.release(), error.first.release())
    }

    /// Captures the output and waits for the end. The handler keeps this object alive until then.
    @AgentQueue
    private func watch(output: CInt, error: CInt) {
        do {
            let readers = [
                try LineReader(OwnedDescriptor(output)) { self.append($0, from: .output) },
                try LineReader(OwnedDescriptor(error)) { self.append($0, from: .error) },
            ]
            let descriptor = try retryingInterrupts("watching process \(processID)") { clab_watch_exit(processID) }
            var registration: Poller.Registration?
            registration = try Poller.shared.register(descriptor, .readable) { _ in
                // What the process wrote is in the pipes by now. A child of its own that still holds them is not
                // waited for: it is no concern of whoever started this one.
                for reader in readers { reader.finish() }
                registration?.cancel()
                registration = nil
                close(descriptor)
                self.reap()
            }
        } catch {
            // Out of descriptors or of epoll watches: no test of this run has a meaning any more.
            preconditionFailure("\(error)")
        }
    }

    private func append(_ text: String, from stream: Stream) {
        let time = BootClock.now()
        state.withLock { state in
            state.lines.append(Line(number: state.lines.count, stream: stream, text: text, time: time))
        }
        changes.notify()
    }

    private func reap() {
        state.withLock { state in
            var status: CInt = 0
            // Under the lock, so that ``signal(_:)`` never hits a later owner of the number.
            waitpid(processID, &status, 0)
            let signal = status & 0x7f
            state.exit = signal == 0 ? .status((status >> 8) & 0xff) : .signal(signal)
            state.input = nil
        }
        changes.notify()
    }
}

extension LabProcess {
    /// The lines so far, both streams in the order they were read.
    package var lines: [Line] { state.withLock { $0.lines } }

    /// Whether the process has not ended yet.
    package var isRunning: Bool { state.withLock { $0.exit == nil } }

    /// What the process wrote to a stream so far.
    package func text(of stream: Stream) -> String {
        lines.filter { $0.stream == stream }.map(\.text).joined(separator: "\n")
    }

    /// Waits for the end of the process.
    package func exit(within limit: Duration = ChangeSignal.generousLimit) async throws -> Exit {
        try await changes.wait(for: "the end of `\(command)`", within: limit, describe: outputSoFar) {
            state.withLock { $0.exit }
        }
    }

    /// Waits for a line of either stream that `matches`; lines that came already count.
    ///
    /// - Parameters:
    ///   - earlier: only lines after this one count.
    ///   - awaited: what is waited for, for the error's sentence.
    /// - Throws: ``LabError``, also when the process ends first.
    package func line(
        after earlier: Line? = nil, _ awaited: String, within limit: Duration = ChangeSignal.generousLimit,
        where matches: (Line) -> Bool
    ) async throws -> Line {
        var next = earlier.map { $0.number + 1 } ?? 0
        return try await changes.wait(for: "`\(command)` to print \(awaited)", within: limit, describe: outputSoFar) {
            let (lines, exit) = state.withLock { state in (Array(state.lines[next...]), state.exit) }
            next += lines.count
            if let line = lines.first(where: matches) { return line }
            if let exit {
                throw LabError.ended(command: command, exit: exit, awaited: awaited, output: outputSoFar())
            }
            return nil
        }
    }

    /// Waits for a line of either stream that contains `text`.
    package func line(
        after earlier: Line? = nil, containing text: String, within limit: Duration = ChangeSignal.generousLimit
    ) async throws -> Line {
        try await line(after: earlier, "a line with \"\(text)\"", within: limit) { $0.text.contains(text) }
    }

    private func outputSoFar() -> String {
        lines.map(\.text).joined(separator: "\n")
    }
}

extension LabProcess {
    /// Writes `text` to the process's standard input.
    package func send(_ text: String) throws {
        let operation = "writing to `\(command)`"
        try state.withLock { state in
            guard let number = state.input?.number else { throw SystemError(operation, code: EPIPE) }
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = try retryingInterrupts(operation) {
                    bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
                }
                bytes = bytes.dropFirst(count)
            }
        }
    }

    /// Ends the process's standard input.
    package func closeInput() {
        state.withLock { $0.input = nil }
    }

    /// Sends a signal, if the process has not ended.
    package func signal(_ number: CInt) {
        state.withLock { state in
            if state.exit == nil { _ = kill(processID, number) }
        }
    }

    /// Asks the process to end with `SIGTERM`, and kills it if it has not within `patience`.
    @discardableResult
    package func terminate(patience: Duration = ChangeSignal.generousLimit) async throws -> Exit {
        signal(SIGTERM)
        if let exit = try? await exit(within: patience) { return exit }
        return try await killNow()
    }

    /// Ends the process with `SIGKILL`, which it cannot see coming, and waits until it is gone.
    @discardableResult
    package func killNow() async throws -> Exit {
        signal(SIGKILL)
        return try await exit()
    }
}
