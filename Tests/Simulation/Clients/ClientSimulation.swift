// SPDX-License-Identifier: Apache-2.0

import NetworkPath
import TestSupport

@testable import Connection

/// A connection with clients that come, read, park and die, programs that are launched and end, and an agent that is
/// killed in between, while its network is as bad as chance has it. In virtual time, by a seed.
struct ClientSimulation: ~Copyable {
    enum Happening {
        case line(ConnectionInput)
        case client(ClientInput)
        /// A process that the agent asked for begins, or does not.
        case launch(WakeAttempt.ID)
        /// The agent hears that a process has ended.
        case end(KnownProcess)
    }

    private static let stepLimit = 20_000

    var random: SplitMix64
    var decisions: SplitMix64
    var now: Duration = .seconds(1_000_000)
    var world = ClientWorld()
    var connection: Connection
    var pending: [(due: Duration, happening: Happening)] = []
    private var backlog: [Happening] = []
    /// The uplink that is used; `nil` for none.
    var link: Int? = 0
    var isClosed = false
    var steps = 0
    /// What came about how often, for who wants to know whether anything did.
    var deeds: [ClientDeed: Int] = [:]
    var trace: [String]?

    init(seed: UInt64, traced: Bool = false) {
        random = SplitMix64(seed: seed)
        decisions = SplitMix64(seed: ~seed)
        var policy = ConnectionPolicy(
            remote: Remote(
                scheme: .tcp, host: .address(World.hosts[0]), port: World.port, isPortWritten: true, resource: ""))
        policy.heartbeat = nil
        policy.keepsAbandonedFlow = random.chance(30)
        policy.redials = random.chance(90)
        if random.chance(30) { policy.opening = Simulation.opening(&random) }
        let isTended = random.chance(60)
        var wakes = Wakes.Settings(
            policy: WakePolicy(), reasons: Set(WakeReason.allCases), isTended: isTended, budget: .seconds(30))
        for means in [WakeMeans.signal, .unit, .exec] {
            let isUsed = random.chance(60)
            if isUsed, wakes.isTended { wakes.policy.means.insert(means) }
        }
        wakes.policy.rounds = 1 + random.below(4)
        if random.chance(20) { wakes.policy.launch = .always }
        if random.chance(20) { wakes.policy.relaunches = false }
        connection = Connection(policy: policy, wakes: wakes, now: now)
        trace = traced ? [] : nil
    }

    var path: Path {
        guard let link else { return Path(status: .unsatisfied, reason: .noRoute, destination: World.hosts[0]) }
        return Path(
            status: .satisfied, interface: World.interfaces[link], source: World.source(of: link, .v4),
            destination: World.hosts[0], supportsIPv4: true, supportsDNS: true)
    }

    // MARK: - Time

    mutating func run(until end: Duration) throws {
        while true {
            let next = [pending.map(\.due).min(), connection.nextDeadline].compactMap(\.self).min()
            guard let next, next <= end else { break }
            now = max(now, next)
            if let index = pending.firstIndex(where: { $0.due <= now }) {
                try happen(pending.remove(at: index).happening)
            } else {
                try decide("the deadline") { connection, world, now, random in
                    connection.deadlinePassed(now: now, facts: world, using: &random)
                }
            }
        }
        now = max(now, end)
    }

    mutating func later(_ delay: Duration, _ happening: Happening) { pending.append((now + delay, happening)) }

    mutating func happen(_ happening: Happening) throws {
        switch happening {
        case .line(let input): try tell(input)
        case .client(let input): try tell(input)
        case .launch(let attempt): try begin(attempt)
        case .end(let process): try tellEnd(of: process)
        }
    }

    // MARK: - The connection and its driver

    mutating func tell(_ input: ConnectionInput) throws {
        noteSession(input)
        try decide("\(input)") { connection, world, now, random in
            connection.process(input, now: now, facts: world, using: &random)
        }
    }

    mutating func tell(_ input: ClientInput) throws {
        try decide("\(input)") { connection, world, now, random in
            connection.process(input, now: now, facts: world, using: &random)
        }
    }

    mutating func decide(
        _ what: @autoclosure () -> String,
        _ body: (inout Connection, ClientWorld, Duration, inout SplitMix64) -> [ConnectionEffect]
    ) throws {
        steps += 1
        if steps > Self.stepLimit { throw Violation(invariant: .attemptsBounded, detail: "\(steps) steps") }
        let effects = body(&connection, world, now, &decisions)
        trace?.append("\(now) \(what())\n    -> \(effects)")
        for effect in effects { try run(effect) }
        while !backlog.isEmpty { try happen(backlog.removeFirst()) }
        try checkReaders()
        try checkWakes()
    }

    mutating func run(_ effect: ConnectionEffect) throws {
        switch effect {
        case .network(let action): try run(action)
        case .close(let epoch, _): try close(epoch, isDelivered: false)
        case .letGo(let epoch, _): try close(epoch, isDelivered: true)
        case .retire(let epoch, let survivesAgent, let isHeld):
            world.sockets[epoch]?.isRetired = true
            world.sockets[epoch]?.survivesAgent = survivesAgent
            world.sockets[epoch]?.isWatched = false
            if !isHeld { try takeBack(epoch) }
        case .rest(let epoch):
            try takeBack(epoch)
        case .linger: break
        case .tell: break
        case .attempt(let attempt, _):
            guard random.chance(90) else { return }
            let outcome = random.chance(80) ? WakeOutcome.done : .failed("chance")
            random.chance(50)
                ? backlog.append(.client(.attempted(attempt.id, outcome)))
                : later(.milliseconds(random.below(40_000)), .client(.attempted(attempt.id, outcome)))
        case .launch(let attempt, let offer):
            if let offer { try hand(offer.epoch, to: .launch(attempt.id)) }
            later(.milliseconds(random.below(random.chance(80) ? 50 : 60_000)), .launch(attempt.id))
        case .awaitBytes(let epoch, let count):
            world.sockets[epoch]?.awaitedBeyond = count
        }
    }

    private mutating func run(_ action: ConnectionAction) throws {
        switch action {
        case .observePath: backlog.append(.line(.pathChanged(path)))
        case .openSocket(let request):
            let local = Endpoint(address: request.source ?? World.source(of: 0, .v4), port: 40_000)
            let outcome: ConnectionInput =
                random.chance(80)
                ? .dialSucceeded(epoch: request.epoch, local: local, remote: request.remote)
                : .dialFailed(epoch: request.epoch, .refused)
            world.sockets[request.epoch] = .init()
            later(.milliseconds(random.below(500)), .line(outcome))
        case .watchInput(let epoch, let isWatched):
            world.sockets[epoch]?.isWatched = isWatched
            guard isWatched else { return }
            try takeBack(epoch)
            if world.unreadBytes(on: epoch) > 0 { backlog.append(.line(.arrived(epoch: epoch))) }
        case .playOpening(let epoch, _):
            let outcome: ConnectionInput =
                random.chance(80)
                ? .sessionOpened(epoch: epoch) : .openingFailed(epoch: epoch, .init(step: 1, cause: .mismatch))
            later(.milliseconds(random.below(9000)), .line(outcome))
        case .probe(let epoch):
            later(.milliseconds(random.below(900)), .line(.acknowledged(epoch: epoch, begun: now)))
        case .stopObservingPath, .observeFlowPath, .stopObservingFlowPath, .resolve, .cancelResolution, .findDetour,
            .configureSocket, .keepAlive, .giveUpAnswers, .closeSocket, .scheduleTimer, .cancelTimer, .emit:
            break
        }
    }

    private mutating func noteSession(_ input: ConnectionInput) {
        switch input {
        case .sessionOpened(let epoch): world.sockets[epoch]?.hasSession = true
        case .remoteClosed(let epoch), .flowFailed(let epoch, .reset): world.sockets[epoch]?.hasEnded = true
        case .openingFailed(let epoch, _): world.sockets[epoch]?.hasEnded = true
        default: break
        }
    }

    // MARK: - Programs

    private mutating func begin(_ attempt: WakeAttempt.ID) throws {
        let isKnownEarly = random.chance(60)
        let fails = random.chance(20)
        guard !fails || isKnownEarly else { return try failLaunch(attempt, nil) }
        let program = world.newProcess(isProgram: true)
        for epoch in world.sockets.keys where world.sockets[epoch]?.owner == .launch(attempt) {
            world.sockets[epoch]?.owner = .program(program)
        }
        if isKnownEarly { try tell(.launchBegan(attempt, program)) }
        if fails {
            world.processes[program]?.isAlive = false
            world.processes[program]?.isEndTold = true
            return try failLaunch(attempt, program)
        }
        try tell(.launched(attempt, program))
        deeds[.launched, default: 0] += 1
    }

    private mutating func failLaunch(_ attempt: WakeAttempt.ID, _ program: KnownProcess?) throws {
        let readers = [Reader.launch(attempt)] + (program.map { [.program($0)] } ?? [])
        for epoch in world.sockets.keys where world.sockets[epoch]?.owner.map(readers.contains) ?? false {
            world.release(epoch)
        }
        try tell(.launchFailed(attempt, program))
        try tell(.attempted(attempt, .failed("chance")))
    }

    /// A process ends; the agent hears of it now or later.
    mutating func end(_ process: KnownProcess) throws {
        guard world.isAlive(process) else { return }
        let isProgram = world.processes[process]?.isProgram ?? false
        let failures: [ProgramEnd] = [.exited(status: 1), .killed(signal: 9), .unseen]
        let end = !isProgram ? .unseen : random.chance(40) ? .exited(status: 0) : random.pick(failures)
        world.processes[process]?.isAlive = false
        world.processes[process]?.end = end
        for epoch in world.sockets(of: process) {
            // What a program took by itself, and was not launched with, it has to park.
            guard end != .exited(status: 0) || world.sockets[epoch]?.owner != .program(process) else {
                world.sockets[epoch]?.isGivenUp = true
                continue
            }
            let isTorn = world.sockets[epoch]?.isTouched ?? false
            world.sockets[epoch]?.isTorn = isTorn
        }
        later(.milliseconds(random.chance(50) ? 0 : random.below(5000)), .end(process))
    }

    mutating func tellEnd(of process: KnownProcess) throws {
        guard let known = world.processes[process], !known.isAlive, !known.isEndTold else { return }
        world.processes[process]?.isEndTold = true
        for epoch in world.sockets(of: process) { world.release(epoch) }
        try tell(.processEnded(process, known.end))
    }

    // MARK: - Hands

    /// The agent has it again, or what is left of it: then nobody else may have it.
    private mutating func takeBack(_ epoch: UInt64) throws {
        guard let socket = world.sockets[epoch] else { return }
        let isDead = socket.owner?.process.map { !world.isAlive($0) } ?? false
        try require(
            socket.owner == nil || isDead, .oneReader,
            "\(epoch) is taken back from \(String(describing: socket.owner)), who has it")
        world.sockets[epoch]?.handed = nil
        world.release(epoch)
    }

    mutating func hand(_ epoch: UInt64, to reader: Reader) throws {
        guard let socket = world.sockets[epoch] else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is given out, and closed")
        }
        let isSame = socket.owner == reader || (reader.process != nil && socket.owner?.process == reader.process)
        // Of one that cannot be watched nobody knows whether it ever got what had ended.
        let isOrphan = socket.isRetired && socket.owner == .unknown
        try require(
            socket.owner == nil || isSame || isOrphan, .oneReader,
            "\(epoch) is given to \(reader), and \(String(describing: socket.owner)) has it")
        try require(
            isSame || isOrphan || !socket.isTorn || connection.policy.keepsAbandonedFlow || socket.isForgotten,
            .nobodyReadsOn, "\(epoch) is given to \(reader) in the middle of what another one read")
        // A program that takes again what it was launched with is that program still.
        if !isSame || reader.process == nil { world.sockets[epoch]?.owner = reader }
        if socket.handed == nil { world.sockets[epoch]?.handed = (socket.read, socket.writes) }
    }

    private mutating func close(_ epoch: UInt64, isDelivered: Bool) throws {
        guard let socket = world.sockets.removeValue(forKey: epoch) else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is closed twice")
        }
        guard socket.unread > 0, !isClosed else { return }
        let hasReader = socket.owner.map { $0.process.map { world.isAlive($0) } ?? ($0 == .unknown) } ?? false
        // What a reader has it reads, and what one left torn is of use to nobody.
        if hasReader && isDelivered || socket.isTorn { return }
        // A program that ends with 0 has read what it wanted of what has ended.
        if socket.isGivenUp && (socket.isRetired || socket.hasEnded) { return }
        // Of what a client had when the agent was killed, nobody knows how far it read.
        if socket.isForgotten, !socket.isRetired { return }
        // A greeting comes again; what the server said before it hung up is kept until a flow stands.
        if !socket.hasSession { return }
        // Nine losses of the line with nobody who came.
        if world.sockets.values.count(where: \.isRetired) >= Ownership.most - 1, socket.isRetired { return }
        throw Violation(invariant: .restKept, detail: "\(socket.unread) bytes on \(epoch) are lost: \(socket)")
    }
}
