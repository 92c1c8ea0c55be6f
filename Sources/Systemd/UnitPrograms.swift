// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtonePlatform
internal import Glibc

/// Has the service manager run programs, each as a transient unit (`StartTransientUnit`, org.freedesktop.systemd1(5)),
/// and tells how they ended.
///
/// It is connected to the bus while a program runs, and hears of the units of these alone, beside the jobs of all.
@AgentQueue
package final class UnitPrograms {
    /// A program that began: its process, by number, and whether it has ended already and been reaped.
    package struct Start: Sendable {
        /// The number of its process.
        package var process: Int32
        /// Whether the number may be another's by now.
        package var isOver: Bool
    }

    /// How long the manager may take over its part, beyond what the program may.
    private static let patience = Duration.seconds(20)

    @AgentQueue
    private final class Running {
        let program: UnitProgram
        let socket: OwnedDescriptor?
        var began: (@AgentQueue (Result<Start, UnitManager.Failure>) -> Void)?
        var ended: (@AgentQueue (UnitProgram.End) -> Void)?
        var job = ManagerJob()
        var follows: BusConnection.Subscription?
        var timer: Timers.Timer?
        /// Whether the manager was asked to begin it.
        var isRequested = false

        var unit: String { "\(program.name).service" }

        init(
            _ program: UnitProgram, _ socket: consuming OwnedDescriptor?,
            began: @escaping @AgentQueue (Result<Start, UnitManager.Failure>) -> Void,
            ended: @escaping @AgentQueue (UnitProgram.End) -> Void
        ) {
            self.program = program
            self.socket = socket
            self.began = began
            self.ended = ended
        }

        func write(_ arguments: BusArguments) {
            arguments.string(unit)
            arguments.string("fail")
            arguments.array(of: "(sv)") {
                switch socket {
                case .some(let socket): program.write(arguments, socket: socket.number)
                case .none: program.write(arguments, socket: nil)
                }
            }
            // No unit beside it.
            arguments.array(of: "(sa(sv))") {}
        }
    }

    /// What the manager says of a unit's main process.
    private struct State {
        var process: UInt32 = 0
        var formerProcess: UInt32 = 0
        /// `CLD_EXITED` and its kin (waitid(2)); 0 while it runs.
        var code: Int32 = 0
        var status: Int32 = 0

        var end: UnitProgram.End? {
            code == 0 ? nil : code == CInt(CLD_EXITED) ? .exited(status) : .killed(status)
        }
    }

    private let bus: ManagerBus
    private var running: [Running] = []
    /// The units that were given up when the bus went, before the manager's answer: their programs may run.
    private var unanswered: [String] = []

    /// - Parameter address: where the bus is, in D-Bus's form; `nil` for the system's.
    package init(address: String? = nil) {
        bus = ManagerBus(address: address)
        bus.client = self
    }

    /// Runs a program.
    ///
    /// - Parameters:
    ///   - socket: its standard input, and output where it says so; stays the caller's.
    ///   - began: is called once, later, when it runs, or with what is wrong.
    ///   - ended: is called once when a program that ran has ended.
    package func start(
        _ program: UnitProgram, socket: CInt?,
        began: @escaping @AgentQueue (Result<Start, UnitManager.Failure>) -> Void,
        ended: @escaping @AgentQueue (UnitProgram.End) -> Void
    ) {
        var copy: OwnedDescriptor?
        if let socket {
            let number = fcntl(socket, F_DUPFD_CLOEXEC, 0)
            guard number >= 0 else {
                let text = "\(SystemError.last("passing the socket"))"
                return AgentQueue.async { began(.failure(.init(text: text))) }
            }
            copy = OwnedDescriptor(number, sharedWith: program.user)
        }
        let new = Running(program, copy, began: began, ended: ended)
        running.append(new)
        new.timer = Timers.shared.schedule(after: program.startLimit + Self.patience) { [weak self] in
            self?.fail(new, "the service manager took too long")
        }
        bus.connect()
        if bus.isConnected { send(new) }
    }

    private func send(_ program: Running) {
        program.isRequested = true
        bus.callForJob("StartTransientUnit", filling: program.write) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .success(let message):
                guard let job = message.string() else { return fail(program, "the service manager named no job") }
                if let result = program.job.isNamed(job) { jobEnded(of: program, result) }
            case .failure(let failure): fail(program, "\(failure)")
            }
        }
    }

    private func jobEnded(of program: Running, _ result: String) {
        guard program.began != nil else { return }
        // Before it is looked at, so that no change is missed in between.
        program.follows = bus.followProperties(at: Self.path(of: program.unit)) { [weak self] _ in
            self?.look(at: program)
        }
        look(at: program) { [weak self] state in
            if result == "done" { self?.begin(program, state) } else { self?.fail(program, Self.text(result, state)) }
        }
    }

    private func begin(_ program: Running, _ state: State) {
        guard state.end != nil || state.process != 0 else { return fail(program, "systemd tells of no process of it") }
        let began = program.began.take()
        program.timer?.cancel()
        let process = Int32(clamping: state.end == nil ? state.process : state.formerProcess)
        began?(.success(Start(process: process, isOver: state.end != nil)))
        if let end = state.end { self.end(program, end) }
    }

    /// What a start failed of. The manager's own statuses are those of systemd.exec(5), "Process Exit Codes".
    private static func text(_ result: String, _ state: State) -> String {
        switch state.status {
        case 203: "systemd could not run the program (203/EXEC); see its journal"
        case 216, 217: "systemd could not become its user (\(state.status)); see its journal"
        case 200...245: "systemd could not begin it (status \(state.status) of systemd.exec(5)); see its journal"
        default: "the start of its unit ended as \"\(result)\""
        }
    }

    private func look(at program: Running) {
        guard program.began == nil else { return }
        look(at: program) { [weak self] state in
            if let end = state.end { self?.end(program, end) }
        }
    }

    private func look(at program: Running, _ completion: @escaping @AgentQueue (State) -> Void) {
        let types = ["MainPID": "u", "ExecMainPID": "u", "ExecMainCode": "i", "ExecMainStatus": "i"]
        bus.properties(of: "org.freedesktop.systemd1.Service", at: Self.path(of: program.unit)) { answer in
            var state = State()
            if case .success(let message) = answer {
                message.forEachProperty(types) { name in
                    switch name {
                    case "MainPID": state.process = message.uint32() ?? 0
                    case "ExecMainPID": state.formerProcess = message.uint32() ?? 0
                    case "ExecMainCode": state.code = message.int32() ?? 0
                    default: state.status = message.int32() ?? 0
                    }
                }
            }
            completion(state)
        }
    }

    private static func path(of unit: String) -> String {
        BusConnection.path(of: unit, below: "\(ManagerBus.root)/unit") ?? ManagerBus.root
    }

    private func fail(_ program: Running, _ reason: String) {
        guard let began = program.began.take() else { return }
        program.ended = nil
        // One that begins too late is not to run beside the next.
        bus.call("StopUnit", [program.unit, "replace"]) { _ in }
        letGo(program)
        AgentQueue.async { began(.failure(.init(text: reason))) }
    }

    private func end(_ program: Running, _ end: UnitProgram.End) {
        guard let ended = program.ended.take() else { return }
        letGo(program)
        AgentQueue.async { ended(end) }
    }

    private func letGo(_ program: Running) {
        program.timer?.cancel()
        program.follows = nil
        running.removeAll { $0 === program }
        bus.call("UnrefUnit", [program.unit]) { _ in }
        // Not from within a message of its own; and what was just said is to be sent.
        _ = Timers.shared.schedule(after: .seconds(1)) { [weak self] in self?.bus.release() }
    }
}

extension UnitPrograms: ManagerClient {
    var isWaiting: Bool { !running.isEmpty }

    func busConnected() {
        // None of them is to run beside the next.
        for unit in unanswered { bus.call("StopUnit", [unit, "replace"]) { _ in } }
        unanswered = []
        for program in running { send(program) }
    }

    func busLost(_ reason: String) {
        for program in running {
            if program.isRequested, program.began != nil { unanswered.append(program.unit) }
            fail(program, reason)
            end(program, .unseen)
        }
    }

    func jobEnded(_ job: String, of unit: String, _ result: String) {
        guard let program = running.first(where: { $0.unit == unit }),
            let result = program.job.ended(job, result)
        else { return }
        jobEnded(of: program, result)
    }
}
