// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneProcesses
package import DialtoneConnection
package import DialtonePlatform
internal import Glibc

/// A program that was launched, until its end. Letting go of it does not end the program.
@AgentQueue
package final class LaunchedProgram {
    /// How long a program may take to begin, with its wait for leave: its file may be on a network that hangs. It is
    /// killed then.
    nonisolated static let startLimit = Duration.seconds(10)

    /// Called when it is known whether the program runs: with `nil`, or with what is wrong.
    private var started: (@AgentQueue (SystemError?) -> Void)?
    /// Called when it has ended.
    private var ended: (@AgentQueue (ProgramEnd) -> Void)?
    /// The process, for signals.
    package let process: ProcessHandle
    private let path: String
    private var report: ReportPipe?
    /// By what the process has leave to become the program; with its end, which comes with that of this process, there
    /// is no program. `nil` once that is decided.
    var leave: OwnedDescriptor?
    private var timer: Timers.Timer?

    private final class ReportPipe {
        let descriptor: OwnedDescriptor
        var registration: Poller.Registration?
        init(_ number: CInt) { descriptor = OwnedDescriptor(number) }
    }

    /// Launches a program. Its process does nothing before `began` has returned, and ends if this process ends before:
    /// what runs is what somebody knows of.
    ///
    /// - Parameters:
    ///   - socket: the connection's socket, which stays the caller's; `nil` for a connection that has none. Reads of it
    ///     wait from then on, in this process as well.
    ///   - output: what the program writes to its standard error goes there, and its standard output unless that is the
    ///     socket; stays the caller's.
    ///   - began: is called once, at once, with the process that is to become the program.
    ///   - started: is called once, later, with `nil` when the program runs, else with what is wrong.
    ///   - ended: is called once when a program that ran has ended.
    /// - Throws: what keeps this process from having another.
    package init(
        _ request: ProgramRequest, socket: CInt?, output: CInt,
        began: @AgentQueue (LaunchedProgram) -> Void = { _ in },
        started: @escaping @AgentQueue (SystemError?) -> Void, ended: @escaping @AgentQueue (ProgramEnd) -> Void
    ) throws(SystemError) {
        path = request.command.first ?? ""
        self.started = started
        self.ended = ended
        Self.reapDiscarded()
        var pipes: (report: CInt, leave: CInt) = (-1, -1)
        let identifier = try Self.start(request, socket, output, &pipes)
        let pipe = ReportPipe(pipes.report)
        leave = OwnedDescriptor(pipes.leave)
        do throws(SystemError) {
            // It is this process's child, so the number is its own until it is reaped.
            process = try ProcessHandle(identifier)
            report = pipe
            pipe.registration = try Poller.shared.register(pipes.report, .readable) { [weak self] _ in self?.hear() }
            // Keeps this until then, whoever else lets go of it: a child is to be reaped.
            try process.onEnd { [self] in reap() }
        } catch {
            // No descriptor left to hold it by.
            Self.discard(identifier)
            throw error
        }
        timer = Timers.shared.schedule(after: Self.startLimit) { [weak self] in self?.giveUp() }
        began(self)
        giveLeave()
    }

    private func giveLeave() {
        // Where the process has ended already, its end is heard of.
        switch leave {
        case .some(let leave): _ = activation_give_leave(leave.number)
        case .none: return
        }
        leave = nil
    }

    isolated deinit { closeReport() }

    /// Children that were killed and have not been reaped, with no descriptor to hear of their end by.
    private static var discarded: [pid_t] = []
    /// How long the kernel mostly needs to end one.
    private static let endingTime = Duration.seconds(1)

    /// Ends a child that nobody can watch. It is not waited for, since its file may be on a network that hangs: it is
    /// reaped a little later, or else with the next one.
    static func discard(_ identifier: pid_t) {
        kill(identifier, SIGKILL)
        discarded.append(identifier)
        _ = Timers.shared.schedule(after: endingTime) { reapDiscarded() }
    }

    private static func reapDiscarded() { discarded.removeAll { waitpid($0, nil, WNOHANG) != 0 } }

    private static func start(
        _ request: ProgramRequest, _ socket: CInt?, _ output: CInt, _ pipes: inout (report: CInt, leave: CInt)
    ) throws(SystemError) -> pid_t {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        if null < 0 { throw .last("opening /dev/null") }
        defer { close(null) }
        var places = [null, output, output]
        var blocking: CInt = -1
        if let socket {
            switch request.streams {
            case .standard: (places, blocking) = ([socket, socket, output], 0)
            case .passed: (places, blocking) = ([null, output, output, socket], 3)
            }
        }
        let prefix = "LISTEN_PID="
        let arguments = CStrings(request.command)
        // Room behind it for the largest number.
        let environment = CStrings(
            ["\(prefix)          "] + request.environment(withSocket: socket != nil))
        let directory = CStrings([request.identity.home])
        guard let path = arguments.first, let home = directory.first else {
            throw SystemError("launching a program without a name", code: EINVAL)
        }
        let identity = request.identity
        let passes = socket != nil && request.streams == .passed
        let identifier = places.withUnsafeBufferPointer { places in
            identity.groups.withUnsafeBufferPointer { groups in
                var program = activation_program()
                program.path = UnsafePointer(path)
                program.arguments = UnsafePointer(arguments.pointers)
                // Without a socket the first one, LISTEN_PID, is passed over.
                program.environment = UnsafePointer(passes ? environment.pointers : environment.pointers + 1)
                program.process_identifier = passes ? environment.first.map { $0 + prefix.utf8.count } : nil
                program.directory = UnsafePointer(home)
                program.descriptors = places.baseAddress
                program.descriptor_count = UInt32(places.count)
                program.blocking = blocking
                program.changes_user = identity.user == geteuid() ? 0 : 1
                (program.uid, program.gid) = (identity.user, identity.group)
                (program.groups, program.group_count) = (groups.baseAddress, UInt32(groups.count))
                return activation_start(&program, &pipes.report, &pipes.leave)
            }
        }
        if identifier < 0 { throw .last("launching \(request.command[0])") }
        return identifier
    }

    /// The end of the pipe: the program runs. Something in it: it does not.
    private func hear() {
        guard let report else { return }
        var failure = activation_failure()
        let count = read(report.descriptor.number, &failure, MemoryLayout.size(ofValue: failure))
        if count < 0, errno == EAGAIN { return }
        closeReport()
        guard count == MemoryLayout.size(ofValue: failure) else { return tell(nil) }
        tell(SystemError(Self.operation(failure.step, path), code: failure.code))
    }

    private static func operation(_ step: CInt, _ path: String) -> String {
        switch activation_step(UInt32(bitPattern: step)) {
        case activation_step_session: "beginning a session for \(path)"
        case activation_step_descriptors: "passing its descriptors to \(path)"
        case activation_step_user: "becoming the owner, for \(path)"
        case activation_step_privileges: "giving up privileges, for \(path)"
        case activation_step_leave: "waiting for leave to run \(path)"
        default: "running \(path)"
        }
    }

    /// It has had its time to begin.
    func giveUp() {
        // It may have begun in this moment, and nobody heard of that yet.
        if report != nil { hear() }
        guard started != nil else { return }
        closeReport()
        try? process.signal(SIGKILL)
        tell(SystemError("running \(path)", code: ETIMEDOUT))
    }

    private func tell(_ failure: SystemError?) {
        // It never was a program: its end is nobody's concern.
        if failure != nil { ended = nil }
        let handler = started
        started = nil
        handler?(failure)
    }

    private func closeReport() {
        timer?.cancel()
        timer = nil
        report?.registration?.cancel()
        report = nil
        leave = nil
    }

    private func reap() {
        // What the pipe says comes first, whichever of the two the poller saw first.
        if report != nil { hear() }
        var killed: CInt = 0
        var status: CInt = 0
        let result = process.withNumber { activation_reap($0, &killed, &status) }
        // Somebody else took it, who had no business to: how it ended is not known.
        let end: ProgramEnd =
            result != 1 ? .exited(status: 1) : killed != 0 ? .killed(signal: status) : .exited(status: status)
        let handler = ended
        ended = nil
        handler?(end)
    }
}

/// Strings as C has them, with a null at the end.
private final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ strings: [String]) {
        count = strings.count
        pointers = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() { (pointers + index).initialize(to: strdup(string)) }
        (pointers + count).initialize(to: nil)
    }

    deinit {
        for index in 0..<count { free(pointers[index]) }
        pointers.deallocate()
    }

    var first: UnsafeMutablePointer<CChar>? { pointers[0] }
}
