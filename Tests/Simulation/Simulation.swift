// SPDX-License-Identifier: Apache-2.0

import NetworkPath
import TestSupport

@testable import Connection

/// One agent's connection in a world that misbehaves, in virtual time: the clock jumps to whatever comes next.
///
/// Everything follows from the seed. A ``Checker`` looks at every step; the first invariant that does not hold ends the
/// run with a ``Violation``.
struct Simulation: ~Copyable {
    /// Something of the world that comes at its time.
    struct Pending {
        let due: Duration
        let happening: Happening
    }

    enum Happening {
        case input(ConnectionInput)
        /// The name server's answer arrives; what the kernel would do with a packet to each address is found out then.
        case answer(query: UInt64, NameQuestion)
        /// A host ends a flow that it accepted.
        case kick(epoch: UInt64)
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

    let seed: UInt64
    var random: SplitMix64
    var machineRandom: SplitMix64
    var now: Duration = .seconds(1_000_000)
    var world = World()
    var machine: ConnectionStateMachine
    let checker: Checker
    /// What the world will do, in the order in which it was decided.
    var pending: [Pending] = []
    /// What happened while actions ran, to be told after them.
    var backlog: [ConnectionInput] = []
    /// The keepalives that the driver was asked for.
    var heartbeats: [UInt64: Heartbeat] = [:]
    /// What is under way on the flows.
    var lines: [UInt64: Line] = [:]
    /// The flow whose own path is watched, and where it leads.
    var watchedFlow: WatchedFlow?
    /// Whether a client logs in on every new flow, from the recovery on.
    var isAttended = false
    var steps = 0
    var trace: [String]?

    init(seed: UInt64, traced: Bool = false) {
        self.seed = seed
        random = SplitMix64(seed: seed)
        machineRandom = SplitMix64(seed: ~seed)
        let policy = Simulation.policy(&random)
        machine = ConnectionStateMachine(policy: policy, now: now)
        checker = Checker(policy: policy)
        trace = traced ? [] : nil
        world.isMultihomed = random.chance(50)
        world.hasOneSession = random.chance(50)
        world.services = random.pick(World.Services.allCases)
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
        return policy
    }

    static func opening(_ random: inout SplitMix64) -> Opening {
        Opening((0...random.below(3)).map { _ in .init(send: [1], answer: ExpectedAnswer(BytePattern([2]))) })
    }

    // MARK: - Time

    /// Lets virtual time pass up to `end`, with everything that comes in it.
    mutating func run(until end: Duration) throws {
        while let next = nextDue(), next <= end {
            now = max(now, next)
            try takeNext(due: next)
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
            case .input, .answer, .kick, .beat, .flowPath, .userTimeout: false
            }
        }
        // Whether timers or the word of the resume come first is chance.
        if random.chance(50) { try tell(.resumed) }
        try run(until: now + .milliseconds(1))
        try tell(.resumed)
    }

    func nextDue() -> Duration? {
        let first = pending.lazy.map(\.due).min()
        guard let timer = checker.known.timers.values.min() else { return first }
        return first.map { min($0, timer) } ?? timer
    }

    private mutating func takeNext(due: Duration) throws {
        if let (timer, _) = checker.known.timers.filter({ $0.value == due }).min(by: { "\($0.key)" < "\($1.key)" }) {
            return try tell(.timerFired(timer))
        }
        guard let position = pending.firstIndex(where: { $0.due == due }) else { return }
        switch pending.remove(at: position).happening {
        case .input(let input):
            try tell(input)
        case .answer(let query, let question):
            switch world.answer(to: question) {
            case .success(let answer): try tell(.resolved(query: query, answer))
            case .failure(let failure): try tell(.resolutionFailed(query: query, failure))
            case nil: break
            }
        case .kick(let epoch):
            // With TLS 1.3 a server may say only now that it wants a certificate.
            let failures = [FlowFailure.reset, .tls(.truncated), .tls(.clientCertificateRequired)]
            try tell(
                random.chance(50) ? .remoteClosed(epoch: epoch) : .flowFailed(epoch: epoch, random.pick(failures)))
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

    // MARK: - The machine and its driver

    /// Tells the machine something and does what it answers; what that brings about at once is told afterwards.
    mutating func tell(_ input: ConnectionInput) throws {
        backlog.append(input)
        guard backlog.count == 1 else { return }
        while let input = backlog.first {
            try step(input)
            backlog.removeFirst()
        }
    }

    private mutating func step(_ input: ConnectionInput) throws {
        steps += 1
        if steps > Self.stepLimit { throw Violation(invariant: .attemptsBounded, detail: "\(steps) steps") }
        let actions = machine.process(
            input, now: now, dialsFrom: checker.dialsFrom, using: &machineRandom)
        let status = machine.status
        noteHands(input)
        trace?.append("\(now) \(input)\n    -> \(actions)\n    \(status.state)")
        try checker.follow(input, answeredWith: actions, status: status, world: world, now: now)
        for action in actions { run(action) }
    }

    private mutating func run(_ action: ConnectionAction) {
        switch action {
        case .observePath:
            backlog.append(.pathChanged(world.path()))
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
            backlog.append(.detourFound(remote, world.detour(to: remote.address, around: interface)))
        case .openSocket(let request):
            connect(request)
        case .keepAlive(let epoch, let heartbeat):
            heartbeats[epoch] = heartbeat
            lines[epoch]?.awaited = 0
            scheduleBeat(epoch)
        case .probe(let epoch):
            probe(epoch)
        case .closeSocket(let epoch, _, _):
            heartbeats[epoch] = nil
            lines[epoch] = nil
            pending.removeAll { if case .beat(epoch) = $0.happening { true } else { false } }
            // Half of the words that are under way come all the same, late.
            if random.chance(50) { pending.removeAll { $0.concerns(epoch: epoch) } }
        case .emit(let event):
            if isAttended, event.kind == .stateChanged, event.status.ownership == .new {
                backlog += [.taken(epoch: event.status.epoch), .parked(epoch: event.status.epoch)]
            }
        case .playOpening(let epoch, let opening):
            later(.milliseconds(random.below(400)), .login(epoch: epoch, step: 1, of: opening.steps.count, begun: now))
        case .giveUpAnswers(let epoch):
            lines[epoch]?.awaited = 0
        case .watchInput, .stopObservingPath, .cancelResolution, .configureSocket, .scheduleTimer,
            .cancelTimer:
            break
        }
    }

    /// Whether what a flow's server says comes through.
    func hears(_ epoch: UInt64) -> Bool {
        guard let socket = checker.known.sockets[epoch], let local = socket.local else { return false }
        return world.carries(socket.request, from: local.address)
    }

    /// The server hears a step of an opening, and answers.
    private mutating func login(_ epoch: UInt64, _ step: Int, of count: Int, _ begun: Duration) throws {
        guard hears(epoch), let host = host(of: epoch), world.hosts[host] != .silent, world.hosts[host] != .hangs else {
            return
        }
        if world.hasOneSession, step == 1 {
            let others = checker.known.sockets.filter { $0.key != epoch && $0.value.connectedAt != nil }.keys
            for other in others { later(.milliseconds(random.below(50)), .input(.remoteClosed(epoch: other))) }
        }
        switch world.login {
        case .silent: break
        case .hangsUp: try tell(.remoteClosed(epoch: epoch))
        case .refuses:
            let cause: OpeningFailure.Cause = random.chance(80) ? .mismatch : .tooLong
            let busy = LoginRefusal("busy", mayPass: true, pause: random.chance(30) ? .seconds(120) : nil)
            let refusal = random.chance(50) ? busy : random.chance(20) ? LoginRefusal("no", pause: .seconds(9)) : nil
            try tell(.openingFailed(epoch: epoch, .init(step: step, cause: cause, refusal: refusal)))
        case .accepts:
            try tell(.openingAnswered(epoch: epoch, awaiting: min(step + 1, count), begun: begun))
            if step == count { return try tell(.sessionOpened(epoch: epoch)) }
            later(.milliseconds(random.below(9000)), .login(epoch: epoch, step: step + 1, of: count, begun: now))
        }
    }

    func host(of epoch: UInt64) -> Int? {
        checker.known.sockets[epoch].flatMap { World.hosts.firstIndex(of: $0.request.remote.address) }
    }

    /// The client logs in on a flow, whoever has it.
    mutating func login(_ epoch: UInt64) throws {
        try tell(.taken(epoch: epoch))
        try tell(.parked(epoch: epoch))
    }

    private mutating func connect(_ request: FlowRequest) {
        let epoch = request.epoch
        let failed = { (failure: FlowFailure) in ConnectionInput.dialFailed(epoch: epoch, failure) }
        let own = World.interfaces.firstIndex { $0.index == request.interfaceIndex }
        guard let uplink = request.isBoundToInterface ? own : world.usedUplink else {
            return backlog.append(failed(.networkUnreachable))
        }
        let source = request.source ?? World.source(of: uplink, request.remote.address.family)
        guard world.isPresent(source) else { return backlog.append(failed(.addressNotAvailable)) }
        guard let host = World.hosts.firstIndex(of: request.remote.address) else { return }
        var latency = Duration.milliseconds(random.below(600))
        if World.uplink(of: source).map(world.deadUplinks.contains) ?? false {
            // A router may say so.
            return random.chance(30) ? later(latency, .input(failed(.hostUnreachable))) : ()
        }
        let local = Endpoint(address: source, port: UInt16(40_000 + epoch % 20_000))
        if request.tls != nil, world.hosts[host].accepts {
            later(latency, .input(.handshakeBegan(epoch: epoch, local: local)))
            latency += .milliseconds(1 + random.below(200))
            if world.hosts[host] == .stallsHandshake { return }
            let problem = FlowFailure.tls(.certificate(.selfSigned(subject: "a stranger")))
            if world.hosts[host] == .isStranger { return later(latency, .input(failed(problem))) }
        }
        switch world.hosts[host] {
        case .accepts, .kicks, .hangs, .isStranger, .stallsHandshake:
            later(latency, .input(.dialSucceeded(epoch: epoch, local: local, remote: request.remote)))
            guard world.hosts[host] == .kicks else { return }
            later(latency + .milliseconds(random.below(90_000)), .kick(epoch: epoch))
        case .refuses:
            later(latency, .input(failed(.refused)))
        case .unreachable:
            later(latency, .input(failed(.hostUnreachable)))
        case .silent:
            break
        }
    }
}

extension Simulation.Pending {
    fileprivate func concerns(epoch: UInt64) -> Bool {
        switch happening {
        case .kick(let kicked): kicked == epoch
        case .reply(let replied, _): replied == epoch
        case .beat(let beaten): beaten == epoch
        case .login(let opened, _, _, _): opened == epoch
        case .input(.dialSucceeded(let dialled, _, _, _)): dialled == epoch
        case .input(.handshakeBegan(let dialled, _)): dialled == epoch
        case .input(.dialFailed(let dialled, _)): dialled == epoch
        case .userTimeout(let timed, _): timed == epoch
        case .input, .answer, .flowPath: false
        }
    }
}
