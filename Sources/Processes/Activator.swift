// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtoneConnection
package import DialtonePlatform
internal import DialtoneSystemd
internal import Glibc

/// By what a connection's client may be woken, with what belongs to each means.
package struct WakeTargets: Hashable, Sendable {
    /// What is thawed.
    package enum Thaw: Hashable, Sendable {
        /// The control group of the process that parked the flow.
        case ownGroup
        /// A control group, by its directory or its path below the hierarchy's root.
        case group(String)
        /// A unit of the service manager.
        case unit(String)
    }

    /// A program.
    package struct Program: Hashable, Sendable {
        /// Its absolute path, and its arguments.
        package var command: [String]
        /// How it finds the socket.
        package var streams: ProgramRequest.Streams
        /// Whose it is to be.
        package var identity: ProgramIdentity

        /// A program.
        package init(command: [String], streams: ProgramRequest.Streams, identity: ProgramIdentity) {
            self.command = command
            self.streams = streams
            self.identity = identity
        }
    }

    /// The signal for the process that parked the flow.
    package var signal: Int32?
    /// What is thawed.
    package var thaw: Thaw?
    /// The unit that is started.
    package var unit: String?
    /// The program that is launched.
    package var program: Program?

    /// None but the event.
    package init(signal: Int32? = nil, thaw: Thaw? = nil, unit: String? = nil, program: Program? = nil) {
        self.signal = signal
        self.thaw = thaw
        self.unit = unit
        self.program = program
    }

    /// The means that there are.
    package var means: Set<WakeMeans> {
        var means: Set<WakeMeans> = [.event]
        if signal != nil { means.insert(.signal) }
        if thaw != nil { means.insert(.thaw) }
        if unit != nil { means.insert(.unit) }
        if program != nil { means.insert(.exec) }
        return means
    }
}

/// One attempt, with all that it takes.
package struct WakeOrder: Sendable {
    /// The attempt.
    package var attempt: WakeAttempt
    /// By what the client may be woken.
    package var targets: WakeTargets
    /// The connection's name.
    package var connection: String
    /// Its owner: whose processes may be signalled.
    package var owner: UInt32
    /// The number of the flow that stands; 0 without one.
    package var epoch: UInt64
    /// Where the agent serves.
    package var socketPath: String

    /// An order.
    package init(
        _ attempt: WakeAttempt, _ targets: WakeTargets, connection: String, owner: UInt32, epoch: UInt64,
        socketPath: String
    ) {
        self.attempt = attempt
        self.targets = targets
        self.connection = connection
        self.owner = owner
        self.epoch = epoch
        self.socketPath = socketPath
    }

    /// What a launched program finds in its environment of the wake.
    var variables: [String: String] {
        [
            "DIALTONE_NAME": connection, "DIALTONE_EPOCH": "\(epoch)", "DIALTONE_WAKE": "\(attempt.wake)",
            "DIALTONE_REASON": attempt.reasons.map(\.rawValue).joined(separator: ","), "DIALTONE_SOCKET": socketPath,
        ]
    }
}

/// Does what a wake's means says, without waiting for any of it: whoever hangs is given up after a time that is said.
///
/// Each attempt is answered once, in the same turn of the queue or in a later one.
@AgentQueue
package final class Activator {
    /// What came of an attempt.
    package enum Outcome {
        /// It was done.
        case done
        /// The program runs, as this process.
        case launched(ProcessHandle)
        /// It could not be done; why, for the end of a sentence.
        case failed(String)
    }

    private let units: UnitManager
    private let programs: UnitLauncher?
    private let user: UInt32

    /// - Parameters:
    ///   - bus: where the bus of the service manager is that starts units, in D-Bus's form; `nil` for the system's, or
    ///     the session's in the agent of a user.
    ///   - user: whose rights this process has, if not its own user's.
    ///   - passer: `dialtoned`, where programs are to be units of the service manager and no children of this process.
    package init(bus: String? = nil, user: UInt32? = nil, programsAsUnitsBy passer: String? = nil) {
        let user = user ?? geteuid()
        self.user = user
        programs = passer.map { UnitLauncher(bus: bus, passer: $0) }
        units = UnitManager(address: bus ?? (user == 0 ? nil : BusConnection.sessionAddress))
    }

    /// Attempts to wake a client.
    ///
    /// - Parameters:
    ///   - process: the process that parked the flow, or was launched for it.
    ///   - socket: the connection's socket, for a program that is launched; stays the caller's.
    ///   - began: is called with the process that is to become a program, before it does: what is written down of it
    ///     by then is there whatever runs. Of a unit of the service manager there is none to be known before it runs.
    ///   - ended: is called when a program that was launched has ended.
    package func perform(
        _ order: WakeOrder, process: ProcessHandle?, socket: CInt?,
        began: @AgentQueue (ProcessHandle) -> Void = { _ in }, ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Outcome) -> Void
    ) {
        switch order.attempt.means {
        case .event: completion(.done)
        case .signal: completion(signal(order, process))
        case .thaw: thaw(order, process, completion)
        case .unit:
            guard let unit = order.targets.unit else { return completion(.failed("there is no unit")) }
            units.start(unit) { completion($0.activation) }
        case .exec: launch(order, socket, began, ended, completion)
        }
    }

    /// Whether an attempt takes rights that this process has not got: those of root, or of the owner.
    package func lacksRights(for order: WakeOrder) -> Bool {
        guard user != 0 else { return false }
        return switch order.attempt.means {
        case .event: false
        case .signal, .thaw, .unit: order.owner != user
        case .exec: order.targets.program?.identity.user != user
        }
    }

    // MARK: - Signals

    private func signal(_ order: WakeOrder, _ process: ProcessHandle?) -> Outcome {
        guard let signal = order.targets.signal else { return .failed("there is no signal") }
        guard let process else { return .failed("no process has parked it") }
        return Self.attempting { () throws(SystemError) in
            try Self.check(process, belongsTo: order.owner)
            try process.signal(signal)
            // A stopped process takes no other signal than this one.
            if signal != SIGCONT, process.isStopped { try process.signal(SIGCONT) }
        }
    }

    /// A client can have its own processes woken, and those alone: not what one of them became by running a set-user-ID
    /// program. Which process it is, is the word of the agent, which may be less than root is.
    private static func check(_ process: ProcessHandle, belongsTo owner: UInt32) throws(SystemError) {
        guard let users = process.users else { throw SystemError("looking at process \(process.number)", code: ESRCH) }
        // What acts as root is root's only where root began it.
        guard users.real == owner || owner != 0 && users.saved == owner else {
            throw SystemError("waking process \(process.number), another user's", code: EPERM)
        }
    }

    /// Why a group is not thawed for a user; `nil` if it is. It was frozen by its manager: the user's own, or root's,
    /// whose file has it thawed. What another user manages is not for this one to wake.
    private static func refusal(
        to group: ControlGroup, of process: ProcessHandle, for owner: UInt32
    ) -> String? {
        do throws(SystemError) {
            try check(process, belongsTo: owner)
        } catch {
            return "\(error)"
        }
        guard let manager = group.owner else { return "the process's control group is gone" }
        return manager == 0 || manager == owner
            ? nil : "the control group of process \(process.number) is another user's"
    }

    private static func attempting(_ body: () throws(SystemError) -> Void) -> Outcome {
        do throws(SystemError) {
            try body()
            return .done
        } catch {
            return .failed("\(error)")
        }
    }

    // MARK: - Thawing

    private func thaw(
        _ order: WakeOrder, _ process: ProcessHandle?, _ completion: @escaping @AgentQueue (Outcome) -> Void
    ) {
        let finish: @AgentQueue (Outcome) -> Void = { outcome in
            guard case .done = outcome, let process, process.isStopped else { return completion(outcome) }
            // Frozen and stopped: thawed, it is still stopped.
            completion(
                Self.attempting { () throws(SystemError) in
                    try Self.check(process, belongsTo: order.owner)
                    try process.signal(SIGCONT)
                })
        }
        switch order.targets.thaw {
        case nil: finish(.failed("nothing is to be thawed"))
        case .unit(let unit)?: units.thaw(unit) { finish($0.activation) }
        case .group(let path)?: Thaw.begin(ControlGroup(at: path), finish)
        case .ownGroup?:
            guard let process else { return finish(.failed("no process has parked it")) }
            guard let group = process.group else { return finish(.failed("the process has no control group")) }
            if let refusal = Self.refusal(to: group, of: process, for: order.owner) { return finish(.failed(refusal)) }
            Thaw.begin(group, finish)
        }
    }

    // MARK: - Programs

    private func launch(
        _ order: WakeOrder, _ socket: CInt?, _ began: @AgentQueue (ProcessHandle) -> Void,
        _ ended: @escaping @AgentQueue (ProgramEnd) -> Void, _ completion: @escaping @AgentQueue (Outcome) -> Void
    ) {
        guard let program = order.targets.program else { return completion(.failed("there is no program")) }
        guard program.identity.user == user || user == 0 else {
            return completion(.failed("only root can launch a program of user \(program.identity.user)"))
        }
        let request = ProgramRequest(
            command: program.command, identity: program.identity, streams: program.streams,
            connection: order.connection, variables: order.variables)
        if let programs { return programs.launch(request, socket: socket, ended: ended, completion) }
        do throws(SystemError) {
            let output = try Self.output(of: request)
            // Known only when it runs, which is told later.
            let launched = LaunchBox()
            _ = try LaunchedProgram(request, socket: socket, output: output.number) { new in
                launched.program = new
                began(new.process)
            } started: { failure in
                let program = launched.program
                launched.program = nil
                if let failure { return completion(.failed("\(failure)")) }
                if let program { completion(.launched(program.process)) }
            } ended: { end in
                ended(end)
            }
        } catch {
            completion(.failed("\(error)"))
        }
    }

    private final class LaunchBox {
        var program: LaunchedProgram?
    }

    /// Where a program writes what it has to say: the journal, where the agent's own goes there; else the agent's own,
    /// as far as it is the same user's.
    private static func output(of request: ProgramRequest) throws(SystemError) -> OwnedDescriptor {
        if case .journal = LogOutput.detect(),
            let stream = try? JournalStream.open(identifier: "dialtone-\(request.connection)")
        {
            return stream
        }
        let own = request.identity.user == geteuid() ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1
        if own >= 0 { return OwnedDescriptor(own) }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        if null < 0 { throw .last("opening /dev/null") }
        return OwnedDescriptor(null)
    }
}

extension UnitManager.Outcome {
    fileprivate var activation: Activator.Outcome {
        switch self {
        case .success: .done
        case .failure(let failure): .failed(failure.text)
        }
    }
}
