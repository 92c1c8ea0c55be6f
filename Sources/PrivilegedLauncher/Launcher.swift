// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneVarlink
internal import Dispatch
internal import Logging

/// The daemon's launcher: wakes the clients of connections that root's configuration names, and nobody else's.
///
/// It reads the files anew for each wake: what root has written by then holds. One program at a time runs for each
/// connection, and no more are launched in a time than a daemon in its right mind would: another launch waits.
@AgentQueue
final class Launcher {
    /// Programs that are launched at once for one connection, and the time in which one more may be.
    private static let burst = 30
    private static let refill = Duration.seconds(2)
    /// How long it stays with nothing to do.
    private static let idleTime = Duration.seconds(10)
    /// Ends of programs that nobody has asked for yet.
    private static let mostEnds = 1024

    /// Where files are read.
    private static let loader = DispatchQueue(label: "org.dialtone.configuration")

    /// Reads root's configuration for a daemon of this user; called on a queue of its own.
    typealias Loader = @Sendable (UInt32) throws(ConfigurationError) -> Configuration

    /// What a caller asked for, until it has its answer.
    @AgentQueue
    private final class Request {
        let exchange: VarlinkExchange<LauncherAPI.Wake>
        let connection: String
        let owner: Int
        let attempt: WakeAttempt
        let epoch: UInt64
        let process: ProcessHandle?
        let socket: OwnedDescriptor?

        init(_ parameters: LauncherAPI.Wake.Parameters, _ exchange: VarlinkExchange<LauncherAPI.Wake>)
            throws(VarlinkFailure)
        {
            guard let means = WakeMeans(rawValue: parameters.means), means != .event else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "means"))
            }
            self.exchange = exchange
            connection = parameters.connection
            owner = parameters.owner
            attempt = WakeAttempt(
                wake: UInt64(clamping: parameters.wake), attempt: parameters.attempt, means: means,
                reasons: parameters.reasons.compactMap { WakeReason(rawValue: $0) })
            epoch = UInt64(clamping: parameters.epoch)
            if let place = parameters.process {
                process = try? ProcessHandle.passed(try exchange.takeDescriptor(place, parameter: "process"))
            } else {
                process = nil
            }
            if let place = parameters.fileDescriptor {
                socket = try exchange.takeDescriptor(place, parameter: "fileDescriptor")
            } else {
                socket = nil
            }
        }

        var socketNumber: CInt? {
            switch socket {
            case .some(let socket): socket.number
            case .none: nil
            }
        }

        func fail(_ reason: String) { exchange.fail(VarlinkFailure(LauncherAPI.Failed(reason: reason))) }
    }

    /// A program that was launched, for the attempt that was answered with it last.
    private struct Program {
        let process: ProcessHandle
        let owner: Int
        let epoch: UInt64
        var attempt: WakeAttempt.ID
    }

    /// A launch that is under way, and who waits for it.
    private struct Launch {
        let epoch: UInt64
        /// The first one has it done. The others ask for the same one: the daemon that asked before was killed.
        var requests: [Request]
        var searches: [VarlinkExchange<LauncherAPI.Find>] = []
    }

    private let activator: Activator
    private let load: Loader
    private let socketPath: String
    private let logger: Logger
    private var running: [String: Program] = [:]
    /// Those that ended last, where nobody has asked yet how.
    private var unheard: [String: Program] = [:]
    private var launching: [String: Launch] = [:]
    private var budgets: [String: TokenBucket] = [:]
    private var ends: [Int32: ProgramEnd] = [:]
    private var waiting: [Int32: VarlinkExchange<LauncherAPI.Await>] = [:]
    private var requests = 0
    private var timer: Timers.Timer?
    private let onIdle: @AgentQueue () -> Void

    /// A launcher with nothing to do yet.
    ///
    /// - Parameters:
    ///   - socketPath: where the daemon serves, for programs.
    ///   - onIdle: is called when there has been nothing to do for a while.
    init(
        _ activator: Activator, socketPath: String, _ logger: Logger, load: @escaping Loader,
        onIdle: @escaping @AgentQueue () -> Void
    ) {
        self.activator = activator
        self.socketPath = socketPath
        self.logger = logger
        self.load = load
        self.onIdle = onIdle
        rest()
    }

    /// Adds the interface and its methods to `service`.
    func register(in service: VarlinkService) {
        service.add(interface: LauncherAPI.name, description: LauncherAPI.description)
        service.handleLater(LauncherAPI.Wake.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            begin(try Request(parameters, exchange))
        }
        service.handleLater(LauncherAPI.Find.self) { [unowned self] parameters, exchange in
            requests += 1
            timer?.cancel()
            // Behind what was asked for before: an attempt whose files are still being read may launch a program.
            Self.loader.async { AgentQueue.async { [self] in find(parameters, exchange) } }
        }
        service.handleLater(LauncherAPI.Await.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            guard let number = Int32(exactly: parameters.number) else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "number"))
            }
            if let end = ends.removeValue(forKey: number) { return exchange.reply(.init(end)) }
            guard running.values.contains(where: { $0.process.number == number }) else {
                throw VarlinkFailure(LauncherAPI.Failed(reason: "no such program was launched"))
            }
            exchange.onCancel = { [weak self, weak exchange] in
                if let self, waiting[number] === exchange { waiting[number] = nil }
            }
            waiting[number] = exchange
        }
    }

    private func begin(_ request: Request) {
        requests += 1
        timer?.cancel()
        let (load, user) = (load, request.exchange.peer.uid)
        Self.loader.async {
            let result = Result<Configuration, ConfigurationError> { () throws(ConfigurationError) in try load(user) }
            AgentQueue.async { [self] in decide(request, result) }
        }
    }

    private func decide(_ request: Request, _ result: Result<Configuration, ConfigurationError>) {
        let (name, means) = (request.connection, request.attempt.means)
        guard case .success(let configuration) = result else {
            return finish(request, .failed("root's configuration is not valid"))
        }
        guard let settings = configuration.connections.first(where: { $0.name == name }), let wake = settings.wake,
            wake.targets.means.contains(means)
        else { return finish(request, .failed("root's configuration names no \(means.rawValue) for \(name)")) }
        let owner = settings.owner ?? request.exchange.peer.uid
        guard request.owner == Int(owner) else {
            return finish(request, .failed("root's configuration gives \(name) to user \(owner)"))
        }
        if means == .exec, let program = running[name], program.epoch == request.epoch,
            waiting[program.process.number] == nil
        {
            // Nobody waits for its end: who had it launched was gone before it heard of it.
            running[name]?.attempt = request.attempt.id
            tell(request, of: program.process)
            requests -= 1
            return rest()
        }
        if means == .exec, launching[name]?.epoch == request.epoch {
            launching[name]?.requests.append(request)
            return
        }
        if means == .exec, let refusal = refusal(to: name) { return finish(request, .failed(refusal)) }
        let process = known(request.process, of: name)
        if process == nil, request.process != nil, wake.targets.takesProcess(for: means) {
            return finish(request, .failed("nothing shows that the process took the connection from the agent"))
        }
        if means == .exec { launching[name] = Launch(epoch: request.epoch, requests: [request]) }
        let order = WakeOrder(
            request.attempt, wake.targets, connection: name, owner: owner,
            epoch: request.epoch, socketPath: socketPath)
        inTime(for: name, by: means) { [self] in
            activator.perform(
                order, process: process, socket: request.socketNumber,
                ended: { [self] in ended(name, $0) },
                { [self] outcome in
                    let launch = means == .exec ? launching.removeValue(forKey: name) : nil
                    for request in launch?.requests ?? [request] { finish(request, outcome) }
                    for search in launch?.searches ?? [] { finish(search, running[name]?.process) }
                })
        }
    }

    /// Does something when it may be done: a launch waits for its turn. The daemon that asks may be a new one, which
    /// does not know what the one before it had launched.
    private func inTime(for name: String, by means: WakeMeans, _ body: @escaping @AgentQueue () -> Void) {
        guard means == .exec else { return body() }
        let now = BootClock.now()
        var budget = budgets[name] ?? TokenBucket(burst: Self.burst, refill: Self.refill, now: now)
        let instant = budget.earliest
        budget.spend(now: now)
        budgets[name] = budget
        guard instant > now else { return body() }
        _ = Timers.shared.schedule(at: instant, body)
    }

    /// The process, if the kernel says that it connected to the agent, or if it is the program that was launched for
    /// the connection. An agent that was taken over has any process that it likes, and could have all of an owner's
    /// signalled.
    private func known(_ process: ProcessHandle?, of name: String) -> ProcessHandle? {
        // Nobody signals the service manager, whatever it connected to.
        guard let process, process.number > 1 else { return nil }
        let isProgram = running[name]?.process.isSame(as: process) ?? false
        return isProgram || process.hasConnected(to: socketPath) ? process : nil
    }

    /// Why another program is not launched for a connection.
    private func refusal(to name: String) -> String? {
        if running[name] != nil { return "the program that was launched before still runs" }
        return launching[name] != nil ? "a program is being launched" : nil
    }

    private func finish(_ request: Request, _ outcome: Activator.Outcome) {
        let metadata: Logger.Metadata = [
            "connection": "\(request.connection)", "means": "\(request.attempt.means.rawValue)",
        ]
        switch outcome {
        case .done:
            logger.info("woken", metadata: metadata)
            request.exchange.reply(.init())
        case .launched(let process):
            logger.info("launched", metadata: metadata)
            running[request.connection] = Program(
                process: process, owner: request.owner, epoch: request.epoch, attempt: request.attempt.id)
            unheard[request.connection] = nil
            // Of another one with this number, which nobody asked for.
            ends[process.number] = nil
            unheard = unheard.filter { $0.value.process.number != process.number }
            tell(request, of: process)
        case .failed(let reason):
            logger.warning("a client was not woken: \(reason)", metadata: metadata)
            request.fail(reason)
        }
        requests -= 1
        rest()
    }

    private func tell(_ request: Request, of process: ProcessHandle) {
        let descriptors = VarlinkDescriptors()
        var place: Int?
        if let descriptor = try? process.duplicateDescriptor() { place = descriptors.append(descriptor) }
        request.exchange.reply(.init(process: place, number: Int(process.number)), descriptors)
    }

    /// Answers with the program of an attempt, once it is known whether there is one.
    private func find(_ parameters: LauncherAPI.Find.Parameters, _ exchange: VarlinkExchange<LauncherAPI.Find>) {
        let name = parameters.connection
        let attempt = WakeAttempt.ID(wake: UInt64(clamping: parameters.wake), attempt: parameters.attempt)
        let isMeant = { (request: Request) in request.owner == parameters.owner && request.attempt.id == attempt }
        if launching[name]?.requests.contains(where: isMeant) ?? false {
            launching[name]?.searches.append(exchange)
            return
        }
        let isKnown = unheard[name].map { ends[$0.process.number] != nil } ?? false
        let program = running[name] ?? (isKnown ? unheard[name] : nil)
        finish(exchange, program?.owner == parameters.owner && program?.attempt == attempt ? program?.process : nil)
    }

    private func finish(_ search: VarlinkExchange<LauncherAPI.Find>, _ process: ProcessHandle?) {
        let descriptors = VarlinkDescriptors()
        var place: Int?
        if let descriptor = try? process?.duplicateDescriptor() { place = descriptors.append(descriptor) }
        search.reply(.init(process: place, number: process.map { Int($0.number) }), descriptors)
        requests -= 1
        rest()
    }

    private func ended(_ name: String, _ end: ProgramEnd) {
        guard let program = running.removeValue(forKey: name) else { return }
        let number = program.process.number
        if let exchange = waiting.removeValue(forKey: number) {
            exchange.reply(.init(end))
        } else if ends.count < Self.mostEnds {
            ends[number] = end
            unheard[name] = program
        }
        rest()
    }

    /// Whether there is nothing to do.
    var isIdle: Bool { requests == 0 && running.isEmpty }

    /// Goes when there is nothing to do for a while.
    private func rest() {
        timer?.cancel()
        guard isIdle else { return }
        timer = Timers.shared.schedule(after: Self.idleTime) { [weak self] in self?.onIdle() }
    }
}

extension WakeTargets {
    /// Whether it is the process itself that is woken.
    fileprivate func takesProcess(for means: WakeMeans) -> Bool {
        switch means {
        case .signal: true
        case .thaw: thaw == .ownGroup
        case .event, .unit, .exec: false
        }
    }
}

extension LauncherAPI.Await.Reply {
    fileprivate init(_ end: ProgramEnd) {
        switch end {
        case .exited(let status): self.init(status: Int(status), signal: nil)
        case .killed(let signal): self.init(status: nil, signal: Int(signal))
        case .unseen: self.init(status: nil, signal: nil)
        }
    }
}
