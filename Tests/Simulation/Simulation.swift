// SPDX-License-Identifier: Apache-2.0

import NetworkPath

@testable import Supervisor

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
        /// A host ends a flow that it accepted.
        case kick(epoch: UInt64)
    }

    /// What a deadlock or a storm would exceed; the longest honest run is far below.
    private static let stepLimit = 20_000

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
    }

    /// A remote by address or by name, of either family of back-off, with shorter or longer figures.
    static func policy(_ random: inout SplitMix64) -> ConnectionPolicy {
        let scheme = random.pick([Remote.Scheme.tcp, .mqtt, .sip, .tls, .sips])
        let host = random.chance(40) ? Target.Host.address(World.hosts[0]) : .name("sip.example.com")
        var policy = ConnectionPolicy(remote: Remote(scheme: scheme, host: host, port: World.port, resource: ""))
        if random.chance(20) { policy.stableAfter = .seconds(10 + random.below(300)) }
        if random.chance(20) { policy.connectTimeout = .seconds(1 + random.below(30)) }
        if random.chance(20) {
            policy.backoff = BackoffPolicy(
                base: .milliseconds(100 + random.below(5000)), multiplier: Double(12 + random.below(30)) / 10,
                ceiling: .seconds(10 + random.below(600)), jitter: random.pick([.full, .half]))
        }
        return policy
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

    func nextDue() -> Duration? {
        let first = pending.lazy.map(\.due).min()
        guard let timer = checker.known.timers.values.min() else { return first }
        return first.map { min($0, timer) } ?? timer
    }

    private mutating func takeNext(due: Duration) throws {
        if let (timer, _) = checker.known.timers.first(where: { $0.value == due }) {
            return try tell(.timerFired(timer))
        }
        guard let position = pending.firstIndex(where: { $0.due == due }) else { return }
        switch pending.remove(at: position).happening {
        case .input(let input):
            try tell(input)
        case .kick(let epoch):
            // With TLS 1.3 a server may say only now that it wants a certificate.
            let failures = [FlowFailure.reset, .tls(.truncated), .tls(.clientCertificateRequired)]
            try tell(
                random.chance(50) ? .remoteClosed(epoch: epoch) : .flowFailed(epoch: epoch, random.pick(failures)))
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
        let actions = machine.process(input, now: now, using: &machineRandom)
        let status = machine.status
        trace?.append("\(now) \(input)\n    -> \(actions)\n    \(status.state)")
        try checker.follow(input, answeredWith: actions, status: status, world: world, now: now)
        for action in actions { run(action) }
    }

    private mutating func run(_ action: ConnectionAction) {
        switch action {
        case .observePath:
            backlog.append(.pathChanged(world.path()))
        case .resolve(let query, _):
            ask(query)
        case .openSocket(let request):
            connect(request)
        case .closeSocket(let epoch, _):
            // Half of the words that are under way come all the same, late.
            if random.chance(50) { pending.removeAll { $0.concerns(epoch: epoch) } }
        case .stopObservingPath, .cancelResolution, .configureSocket, .scheduleTimer, .cancelTimer, .emit:
            break
        }
    }

    private mutating func ask(_ query: UInt64) {
        let reply: ConnectionInput
        if world.usedUplink == nil || !world.supportsDNS {
            reply = .resolutionFailed(query: query, .temporary)
        } else {
            switch world.nameServer {
            case .answers: reply = .dialResolved(query: query, addresses: world.answer.map { World.hosts[$0] })
            case .temporary: reply = .resolutionFailed(query: query, .temporary)
            case .noSuchName: reply = .resolutionFailed(query: query, .noSuchName)
            case .empty: reply = .dialResolved(query: query, addresses: [])
            case .silent: return
            }
        }
        later(.milliseconds(random.below(200)), .input(reply))
    }

    private mutating func connect(_ request: FlowRequest) {
        let failed = { (failure: FlowFailure) in ConnectionInput.dialFailed(epoch: request.epoch, failure) }
        guard let uplink = world.usedUplink else { return backlog.append(failed(.networkUnreachable)) }
        let source = request.source ?? World.source(of: uplink)
        guard world.isPresent(source) else { return backlog.append(failed(.addressNotAvailable)) }
        guard let host = World.hosts.firstIndex(of: request.remote.address) else { return }
        var latency = Duration.milliseconds(random.below(200))
        let local = Endpoint(address: source, port: UInt16(40_000 + request.epoch % 20_000))
        if request.tls != nil, world.hosts[host].accepts {
            later(latency, .input(.handshakeBegan(epoch: request.epoch, local: local)))
            latency += .milliseconds(1 + random.below(200))
            if world.hosts[host] == .stallsHandshake { return }
            let problem = FlowFailure.tls(.certificate(.selfSigned(subject: "a stranger")))
            if world.hosts[host] == .isStranger { return later(latency, .input(failed(problem))) }
        }
        switch world.hosts[host] {
        case .accepts, .kicks, .isStranger, .stallsHandshake:
            later(latency, .input(.dialSucceeded(epoch: request.epoch, local: local, remote: request.remote)))
            guard world.hosts[host] == .kicks else { return }
            later(latency + .milliseconds(random.below(90_000)), .kick(epoch: request.epoch))
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
        case .input(.dialSucceeded(let dialled, _, _, _)): dialled == epoch
        case .input(.handshakeBegan(let dialled, _)): dialled == epoch
        case .input(.dialFailed(let dialled, _)): dialled == epoch
        case .input: false
        }
    }
}
