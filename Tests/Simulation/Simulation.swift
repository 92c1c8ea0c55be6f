// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport

@testable import DialtoneConnection

/// One agent's connection, with its clients and programs, in a world that misbehaves; the agent is killed in between.
/// In virtual time: the clock jumps to whatever comes next.
///
/// Everything follows from the seed. A ``Checker`` follows the line at every step, and what was given to clients is
/// held against what they did with it (``ClientWorld``). The first invariant that does not hold ends the run with a
/// ``Violation``.
struct Simulation: ~Copyable {
    /// Something of the world that comes at its time.
    struct Pending {
        let due: Duration
        let happening: Happening
    }

    enum Happening {
        case input(ConnectionInput)
        case client(ClientInput)
        /// A process that the agent asked for begins, or does not.
        case launch(WakeAttempt.ID)
        /// The agent hears whether an attempt of its last run has a program.
        case find(WakeAttempt.ID)
        /// The process that is to become a program does so, or fails to.
        case program(KnownProcess, WakeAttempt.ID, runs: Bool)
        /// The agent hears that a process has ended.
        case end(KnownProcess)
        /// Whoever has something reads it and gives it back, and somebody comes for what nobody has.
        case attend
        /// The name server's answer arrives; what the kernel would do with a packet to each address is found out then.
        case answer(query: UInt64, NameQuestion)
        /// A host ends a flow that it accepted.
        case kick(epoch: UInt64)
        /// The server has waited for a login for as long as it does.
        case impatience(epoch: UInt64)
        /// The first word of the path to a flow's other end.
        case flowPath(epoch: UInt64)
        /// It is time for a keepalive on a flow.
        case beat(epoch: UInt64)
        /// The server is to answer a step of an opening, counted from 1, that was sent at `begun`.
        case login(epoch: UInt64, step: Int, of: Int, begun: Duration)
        /// The answer to a keepalive, or the acknowledgement of a probe, arrives if the line carries it.
        case reply(epoch: UInt64, ConnectionInput)
        /// The kernel gives up a flow whose bytes nobody has acknowledged since then.
        case userTimeout(epoch: UInt64, since: Duration)
    }

    /// What is asked about the path of a flow.
    struct WatchedFlow {
        let epoch: UInt64
        let address: IPAddress
        /// The uplink that it goes by, where that is not the kernel's choice.
        let uplink: Int?

        func path(in world: World) -> Path {
            uplink.map { world.path(to: address, by: $0) } ?? world.path(to: address)
        }
    }

    /// What a deadlock or a storm would exceed; the longest honest run is far below.
    private static let stepLimit = 40_000

    var random: SplitMix64
    private var decisions: SplitMix64
    var now: Duration = .seconds(1_000_000)
    var world = World()
    /// The sockets as the kernel has them, and who reads them.
    var clients = ClientWorld()
    var connection: Connection
    var checker: Checker
    /// What the world will do, in the order in which it was decided.
    var pending: [Pending] = []
    /// What happened while effects were carried out, to be told after them.
    var backlog: [Happening] = []
    /// The keepalives that the driver was asked for.
    var heartbeats: [UInt64: Heartbeat] = [:]
    /// What is under way on the flows.
    var lines: [UInt64: Line] = [:]
    /// The flow whose own path is watched, and where it leads.
    var watchedFlow: WatchedFlow?
    /// Whether a client logs in on every new flow and reads what comes, from the recovery on.
    var isAttended = false
    var isClosed = false
    /// Whether it begins with a flow that a client brings.
    let isBrought: Bool
    var steps = 0
    /// What came about, but for what the checker has seen.
    var seen = Coverage()
    var coverage: Coverage {
        var all = seen
        all.formUnion(checker.seen)
        return all
    }

    var trace: [String]?

    init(seed: UInt64, traced: Bool = false) {
        random = SplitMix64(seed: seed)
        decisions = SplitMix64(seed: ~seed)
        var policy = Simulation.policy(&random)
        let isBrought = random.chance(10)
        self.isBrought = isBrought
        // One that is its flow and nothing more begins with that.
        if isBrought { policy.redials = random.chance(50) }
        connection = Connection(policy: policy, wakes: Simulation.wakes(&random), now: now)
        connection.exchanges = []
        checker = Checker(policy: policy)
        trace = traced ? [] : nil
        world.isMultihomed = random.chance(50)
        world.hasOneSession = random.chance(50)
        if random.chance(30) { world.patience = .seconds(61 + Int(random.below(200))) }
        world.services = random.pick(World.Services.allCases)
    }

    static func wakes(_ random: inout SplitMix64) -> Wakes.Settings {
        var wakes = Wakes.Settings(
            policy: WakePolicy(), reasons: Set(WakeReason.allCases), isTended: random.chance(60), budget: .seconds(30))
        for means in [WakeMeans.signal, .unit, .exec] {
            let isUsed = random.chance(60)
            if isUsed, wakes.isTended { wakes.policy.means.insert(means) }
        }
        wakes.policy.rounds = 1 + random.below(4)
        if random.chance(20) { wakes.reasons = [.data] }
        if random.chance(20) { wakes.policy.launch = .always }
        if random.chance(20) { wakes.policy.relaunches = false }
        return wakes
    }

    /// A remote by address or by name, of either family of back-off, with shorter or longer figures.
    static func policy(_ random: inout SplitMix64) -> ConnectionPolicy {
        let scheme = random.pick([Remote.Scheme.tcp, .mqtt, .sip, .tls, .sips])
        let host = random.chance(40) ? Target.Host.address(World.hosts[0]) : .name("sip.example.com")
        let remote = Remote(
            scheme: scheme, host: host, port: World.port,
            isPortWritten: scheme.serviceLabels == nil || random.chance(50), resource: "")
        var policy = ConnectionPolicy(remote: remote)
        if random.chance(20) { policy.stableAfter = .seconds(10 + random.below(300)) }
        if random.chance(20) { policy.connectTimeout = .seconds(1 + random.below(30)) }
        if random.chance(20) {
            policy.backoff = BackoffPolicy(
                base: .milliseconds(100 + random.below(5000)), multiplier: Double(12 + random.below(30)) / 10,
                ceiling: .seconds(10 + random.below(600)), jitter: random.pick([.full, .half]))
        }
        let kind = random.pick([KeepaliveProtocol.crlf, .mqtt, .xmppPing, .whitespace])
        policy.heartbeat = random.chance(60) ? Heartbeat(kind) : nil
        policy.movesToBetterPath = random.chance(80)
        if random.chance(30) { policy.grace = random.pick([.zero, .seconds(1), .seconds(20)]) }
        if random.chance(50) { policy.opening = opening(&random) }
        policy.triesOtherUplinks = random.chance(80)
        policy.keepsAbandonedFlow = random.chance(30)
        if random.chance(50) { policy.answers = answers(&random) }
        return policy
    }

    static func answers(_ random: inout SplitMix64) -> AnsweredMessages {
        let count = random.chance(50) ? UInt32(random.below(9)) : nil
        return AnsweredMessages(
            random.pick([[], [.websocket], [.xmpp(handled: count)], [.websocket, .xmpp(handled: count)]]))
    }

    static func opening(_ random: inout SplitMix64) -> Opening {
        let send = random.chance(50) ? [1] : Array("<resume/>".utf8)
        return Opening((0...random.below(3)).map { _ in .init(send: send, answer: ExpectedAnswer(BytePattern([2]))) })
    }

    // MARK: - Time

    /// Lets virtual time pass up to `end`, with everything that comes in it.
    mutating func run(until end: Duration) throws {
        while let next = nextDue(), next <= end {
            now = max(now, next)
            if let deadline = connection.nextDeadline, deadline <= next {
                try decide("the deadline") { connection, clients, now, from, random in
                    connection.deadlinePassed(now: now, dialsFrom: from, facts: clients, using: &random)
                }
            } else if let position = pending.firstIndex(where: { $0.due == next }) {
                try happen(pending.remove(at: position).happening)
                if !backlog.isEmpty { try takeBacklog() }
            }
        }
        now = max(now, end)
    }

    /// The machine sleeps: what would have come in between comes late, and what was on the wire is lost.
    mutating func suspend(_ duration: Duration) throws {
        now += duration
        checker.wokeAt = now
        pending.removeAll { pending in
            switch pending.happening {
            case .reply, .login: pending.due <= now
            case .input, .client, .launch, .find, .program, .end, .attend, .answer, .kick, .impatience, .beat,
                .flowPath, .userTimeout:
                false
            }
        }
        // Whether timers or the word of the resume come first is chance.
        if random.chance(50) { try tell(.resumed) }
        try run(until: now + .milliseconds(1))
        try tell(.resumed)
    }

    func nextDue() -> Duration? {
        [pending.lazy.map(\.due).min(), connection.nextDeadline].compactMap(\.self).min()
    }

    private mutating func happen(_ happening: Happening) throws {
        switch happening {
        case .input(let input):
            try tell(input)
        case .client(let input):
            try tell(input)
        case .launch(let attempt):
            try begin(attempt)
        case .find(let attempt):
            try find(attempt)
        case .program(let program, let attempt, let runs):
            try becomeProgram(program, attempt, runs: runs)
        case .end(let process):
            try tellEnd(of: process)
        case .attend:
            try attend()
        case .answer(let query, let question):
            switch world.answer(to: question) {
            case .success(let answer): try tell(.resolved(query: query, answer))
            case .failure(let failure): try tell(.resolutionFailed(query: query, failure))
            case nil: break
            }
        case .kick(let epoch):
            // With TLS 1.3 a server may say only now that it wants a certificate.
            var failures = [FlowFailure.reset, .tls(.truncated), .tls(.clientCertificateRequired)]
            if connection.policy.remote.needsTLS { failures += [.securingEnded, .securingEnded] }
            try tell(
                random.chance(50) ? .remoteClosed(epoch: epoch) : .flowFailed(epoch: epoch, random.pick(failures)))
        case .impatience(let epoch):
            if checker.known.standing == epoch, checker.known.ownership.session == .none {
                try tell(.remoteClosed(epoch: epoch))
            }
        case .flowPath(let epoch):
            if let watched = watchedFlow, watched.epoch == epoch {
                try tell(.flowPathChanged(epoch: epoch, watched.path(in: world)))
            }
        case .beat(let epoch):
            try beat(epoch)
        case .reply(let epoch, let input):
            guard hears(epoch), isAwaited(input, on: epoch) else { return }
            try tell(input)
        case .userTimeout(let epoch, let since):
            if timesOut(epoch, since: since) { try tell(.flowFailed(epoch: epoch, .timedOut)) }
        case .login(let epoch, let step, let count, let begun):
            try login(epoch, step, of: count, begun)
        }
    }

    mutating func later(_ delay: Duration, _ happening: Happening) {
        pending.append(Pending(due: now + delay, happening: happening))
    }

    // MARK: - The connection and its driver

    mutating func tell(_ input: ConnectionInput) throws {
        noteSession(input)
        try decide("\(input)") { connection, clients, now, from, random in
            connection.process(input, now: now, dialsFrom: from, facts: clients, using: &random)
        }
    }

    mutating func tell(_ input: ClientInput) throws {
        try decide("\(input)") { connection, clients, now, from, random in
            connection.process(input, now: now, dialsFrom: from, facts: clients, using: &random)
        }
    }

    /// Has the connection decide something, and carries out what it answers; what that brings about at once is told
    /// afterwards.
    mutating func decide(
        _ what: @autoclosure () -> String,
        _ body: (inout Connection, ClientWorld, Duration, Duration, inout SplitMix64) -> [ConnectionEffect]
    ) throws {
        steps += 1
        if steps > Self.stepLimit { throw Violation(invariant: .attemptsBounded, detail: "\(steps) steps") }
        let effects = body(&connection, clients, now, checker.dialsFrom, &decisions)
        trace?.append("\(now) \(what())\n    -> \(effects)\n    \(connection.status.state)")
        for exchange in connection.exchanges ?? [] {
            try checker.follow(
                exchange.input, answeredWith: exchange.actions, status: exchange.status, world: world, now: now)
        }
        connection.exchanges = []
        for effect in effects { try run(effect) }
        try takeBacklog()
    }

    /// Tells what has happened meanwhile; what must hold of clients holds then.
    mutating func takeBacklog() throws {
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
            leave(epoch)
            try retire(epoch, survivesAgent: survivesAgent, isHeld: isHeld)
        case .rest(let epoch): try takeBack(epoch)
        case .linger(let epoch): leave(epoch)
        case .tell(let event, _, _):
            if isAttended, event.kind == .stateChanged, event.status.ownership == .new { backlog.append(.attend) }
        case .attempt(let attempt, _):
            guard random.chance(90) else { return }
            let outcome = random.chance(80) ? WakeOutcome.done : .failed("chance")
            let answer = Happening.client(.attempted(attempt.id, outcome))
            random.chance(50) ? backlog.append(answer) : later(.milliseconds(random.below(40_000)), answer)
        case .launch(let attempt, let offer):
            try require(!clients.hasProgram, .oneProgram, "\(attempt.id) beside one that runs")
            try require(clients.launching == nil, .oneProgram, "\(attempt.id) beside one that is on its way")
            clients.launching = attempt.id
            if let offer { try hand(offer.epoch, to: .launch(attempt.id)) }
            later(.milliseconds(random.below(random.chance(80) ? 50 : 60_000)), .launch(attempt.id))
        case .find(let attempt):
            try require(clients.launching == nil, .oneProgram, "\(attempt) beside one that is on its way")
            clients.launching = attempt
            later(.milliseconds(random.below(random.chance(80) ? 50 : 60_000)), .find(attempt))
        case .awaitBytes(let epoch, let count):
            clients.sockets[epoch]?.awaitedBeyond = count
        case .objection(let text): throw Violation(invariant: .toldWhatCanBe, detail: text)
        }
    }

    private mutating func run(_ action: ConnectionAction) throws {
        switch action {
        case .observePath(let target):
            if case .name = target.host { world.isNamed = true } else { world.isNamed = false }
            backlog.append(.input(.pathChanged(world.path())))
        case .observeFlowPath(let epoch, let target):
            guard case .address(let address) = target.host else { return }
            let uplink = World.interfaces.firstIndex { $0.name == target.interface }
            watchedFlow = WatchedFlow(epoch: epoch, address: address, uplink: uplink)
            // Told in a turn of its own; other words may come before it.
            later(.milliseconds(random.below(2)), .flowPath(epoch: epoch))
        case .stopObservingFlowPath:
            watchedFlow = nil
        case .resolve(let query, let question):
            later(.milliseconds(random.below(200)), .answer(query: query, question))
        case .findDetour(let remote, let interface):
            backlog.append(.input(.detourFound(remote, world.detour(to: remote.address, around: interface))))
        case .openSocket(let request):
            clients.sockets[request.epoch] = .init(survivesAgent: true)
            connect(request)
        case .keepAlive(let epoch, let heartbeat):
            heartbeats[epoch] = heartbeat
            lines[epoch]?.awaited = 0
            scheduleBeat(epoch)
        case .probe(let epoch):
            probe(epoch)
        case .watchInput(let epoch, let isWatched):
            clients.sockets[epoch]?.isWatched = isWatched
            guard isWatched else { return }
            try takeBack(epoch)
            if clients.unreadBytes(on: epoch) > 0 { backlog.append(.input(.arrived(epoch: epoch))) }
        case .playOpening(let epoch, let opening):
            later(.milliseconds(random.below(400)), .login(epoch: epoch, step: 1, of: opening.steps.count, begun: now))
        case .giveUpAnswers(let epoch):
            lines[epoch]?.awaited = 0
        case .stopObservingPath, .cancelResolution, .configureSocket, .answerMessages:
            break
        case .closeSocket, .scheduleTimer, .cancelTimer, .emit:
            throw Violation(invariant: .stateHoldsWhatItNeeds, detail: "\(action) is not the network's")
        }
    }

    /// Nothing more is done on a flow.
    mutating func leave(_ epoch: UInt64) {
        heartbeats[epoch] = nil
        lines[epoch] = nil
        pending.removeAll { if case .beat(epoch) = $0.happening { true } else { false } }
        // Half of the words that are under way come all the same, late.
        if random.chance(50) { pending.removeAll { $0.concerns(epoch: epoch) } }
    }
}

extension Simulation.Pending {
    /// Whether it tells that the server's certificate ends soon, which is an event in a calm world too.
    var isOfCertificate: Bool { if case .input(.certificateEnds) = happening { true } else { false } }

    /// Whether it is what a client or a program does.
    var isOfClient: Bool {
        switch happening {
        case .client, .launch, .find, .program, .end, .attend: true
        case .input, .answer, .kick, .impatience, .flowPath, .beat, .login, .reply, .userTimeout: false
        }
    }

    fileprivate func concerns(epoch: UInt64) -> Bool {
        switch happening {
        case .kick(let kicked), .impatience(let kicked): kicked == epoch
        case .reply(let replied, _): replied == epoch
        case .beat(let beaten): beaten == epoch
        case .login(let opened, _, _, _): opened == epoch
        case .input(.dialSucceeded(let dialled, _, _, _)): dialled == epoch
        case .input(.handshakeBegan(let dialled, _)): dialled == epoch
        case .input(.dialFailed(let dialled, _)): dialled == epoch
        case .userTimeout(let timed, _): timed == epoch
        case .input, .client, .launch, .find, .program, .end, .attend, .answer, .flowPath: false
        }
    }
}
