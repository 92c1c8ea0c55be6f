// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneNetworkPath
import DialtoneTestSupport

@testable import DialtoneConnection

// The end of a sequence: the world heals and the connection must follow; the user closes and nothing must be left.

extension Simulation {
    /// Heals the world, all at once or all but the network before the network, and waits for `ready` within the bound.
    mutating func recover() throws {
        let byPath = random.chance(50)
        if byPath, world.link != .none { try move(to: .none) }
        world.hosts = world.hosts.map { _ in .accepts }
        // Some of the addresses may be dead; the walk has to get past them.
        for host in 0..<3 where random.chance(30) {
            world.hosts[host] = random.pick([.refuses, .silent, .isStranger, .stallsHandshake])
        }
        world.nameServer = .answers
        world.answer = [0, 1, 2, 3].filter { _ in random.chance(60) } + [3]
        if case .address = checker.known.policy.remote.host { world.hosts[0] = .accepts }
        world.services = random.pick([.none, .two, .byRule])
        world.login = .accepts
        world.supportsDNS = true
        world.endsSecuring = false
        world.patience = nil
        world.hasAddress = [true, true]
        world.deadUplinks = []
        let policy = checker.known.policy
        let showsUplink = if case .uplink = world.link { true } else { byPath }
        if showsUplink, policy.mayDetour, random.chance(30) {
            world.deadUplinks = [random.below(2)]
        }
        pending.removeAll {
            switch $0.happening {
            case .kick, .impatience: true
            default: false
            }
        }
        if let standing = checker.known.standing, random.chance(50) { world.forgotten.insert(standing) }
        isAttended = true
        backlog.append(.attend)
        try takeBacklog()
        // One may have ended with its flow.
        if isOver { return }
        var bound = dialBound
        if byPath {
            try move(to: .uplink(random.below(2)))
        } else {
            let way = watchedFlow.map { $0.path(in: world) }
            if checker.known.path != world.path() || checker.known.flowPath != way { try tellPath() }
            if !checker.known.hasPath { try move(to: .uplink(0)) }
            bound += waitBound
        }
        // Where an attempt may take no longer than the patience with a silent way, a whole dial fails first.
        if !world.deadUplinks.isEmpty { bound += dialBound + max(policy.backoff.ceiling, .seconds(1800)) }
        try waitUntilReady(within: bound)
        if isOver { return }
        try expectCalm()
        try expectReturn()
    }

    /// A flow over another uplink goes back to the first one when that works again.
    private mutating func expectReturn() throws {
        guard checker.known.isDetour, checker.known.mayGoBack else { return }
        world.deadUplinks = []
        let pauses = Duration.seconds(1800) + checker.known.policy.backoff.ceiling
        try run(until: now + pauses + dialBound)
        if checker.known.isDetour, checker.known.mayGoBack {
            throw Violation(invariant: .detoursInNeed, detail: "does not go back")
        }
    }

    /// How long a dial takes at most once it may begin, and what the budget may put before it.
    private var dialBound: Duration {
        // A flow that stood may be kept alone, so the walk is bounded by the answer's length.
        // Each of the addresses may time out twice: connecting, and in the handshake.
        DialBudget.interval + .milliseconds(600) + (checker.known.policy.connectTimeout * 2 + .milliseconds(800)) * 5
            + pauseBound + refusalBound + max(checker.dialsFrom - now, .zero)
    }

    /// How long the server's wish may still hold, with the wait of one's own behind it.
    private var pauseBound: Duration {
        guard let until = checker.leftAloneUntil, until > now else { return .zero }
        return until - now + checker.known.policy.backoff.ceiling
    }

    /// How long a login that was refused may still wait.
    private var refusalBound: Duration {
        checker.known.refusal.map { max(checker.refusalHolds($0).upperBound - now, .zero) } ?? .zero
    }

    /// How long a wait that was begun before the world healed may still last, and what the dial that ran may fail of.
    private var waitBound: Duration {
        let wait = connection.status.state == .failed ? Duration.seconds(1800) : checker.known.policy.backoff.ceiling
        // A query or a connect that was lost in the broken world runs into its deadline first; its failure waits too.
        return wait + .seconds(15) + dialBound + max(checker.known.policy.backoff.ceiling, .seconds(1800))
    }

    private mutating func waitUntilReady(within bound: Duration) throws {
        let end = now + bound
        while !connection.status.state.hasFlow, !isOver, let next = nextDue(), next <= end { try run(until: next) }
        if !connection.status.state.hasFlow, !isOver {
            throw Violation(
                invariant: .readyInTime, detail: "\(connection.status.state) \(bound) after the world healed")
        }
    }

    /// A calm world: whatever is owed is proved or found out, and then a flow that works stays, and nothing is told.
    private mutating func expectCalm() throws {
        if let heartbeat = checker.known.policy.heartbeat, !checker.known.isSealed,
            heartbeat.kind.figures.isAnswerMandatory
        {
            // Whatever is dead is noticed by then, dialled anew, and a move that was tried has come about.
            let notice = heartbeat.cadence.interval + heartbeat.kind.figures.answerDeadline
            // A host with a stranger's certificate is not dialled again for so long, and nor are those beside it.
            let refusal: Duration = world.deadUplinks.isEmpty ? .zero : .seconds(1800)
            let pauses = refusal + checker.known.policy.backoff.ceiling
            let bound = notice + dialBound + pauses + .seconds(1)
            try run(until: now + bound)
            // Nothing is sent while a program has the flow that it was launched with.
            for _ in 0..<9 where isHeld || now - (checker.heartbeatChangedAt ?? .zero) <= bound {
                try run(until: now + bound)
            }
            try expectLiving()
        } else {
            try run(until: now + dialBound + checker.known.policy.backoff.ceiling)
        }
        // Only where nothing is left to be found out.
        guard connection.status.state == .ready, isCarried, checker.known.timers[.retry] == nil,
            !checker.known.isDialling, checker.known.play == nil, !isHeld, connection.wakes.deadline == nil,
            !pending.contains(where: { $0.isOfClient || $0.isOfCertificate })
        else { return }
        let (before, flow) = (checker.events, connection.status.epoch)
        try run(until: now + .seconds(checker.known.policy.heartbeat == nil ? 86_400 : 600))
        if checker.events != before || connection.status.epoch != flow || connection.status.state != .ready {
            throw Violation(
                invariant: .staysReady, detail: "\(checker.events - before) events, \(connection.status.state)")
        }
    }

    private var isCarried: Bool {
        guard let epoch = checker.known.standing, let socket = checker.known.sockets[epoch], let local = socket.local,
            let host = World.hosts.firstIndex(of: socket.request.remote.address)
        else { return false }
        return world.carries(socket.request, from: local.address)
            && world.hosts[host] != .silent && world.hosts[host] != .hangs
    }

    private var isHeld: Bool { connection.status.ownership?.holder == .client }

    private func expectLiving() throws {
        if isOver { return }
        if !connection.status.state.hasFlow || !isCarried {
            throw Violation(invariant: .proofsKept, detail: "\(connection.status.state) over a dead line")
        }
    }

    /// Closes, and says everything once more that could be said.
    mutating func close() throws {
        isClosed = true
        try tell(.closeRequested)
        let deadline = connection.nextDeadline
        try require(deadline == nil, .closedForGood, "a deadline at \(String(describing: deadline))")
        let (timers, isOpen) = (checker.known.timers, !checker.known.sockets.isEmpty || checker.known.isDialling)
        if !timers.isEmpty || isOpen { throw Violation(invariant: .closedForGood, detail: "left: \(timers)") }
        let epoch = checker.newestEpoch
        let local = Endpoint(address: World.source(of: 0, .v4), port: 1)
        let last: [ConnectionInput] = [
            .pathChanged(world.path()), .redialRequested(), .dialFailed(epoch: epoch, .refused),
            .dialSucceeded(epoch: epoch, local: local, remote: local), .timerFired(.retry), .timerFired(.dial),
            .timerFired(.proof), .timerFired(.opening), .sessionOpened(epoch: epoch), .openingLeft(nil),
            .answersLeft(AnsweredMessages([.websocket])),
            .resolved(query: checker.newestQuery, .services([])), .probeSent(epoch: epoch), .resumed,
            .serverAsked(.seconds(1)), .closeRequested,
        ]
        for input in last { try tell(input) }
        try run(until: now + .seconds(3600))
        let late = connection.nextDeadline
        try require(late == nil, .closedForGood, "a deadline at \(String(describing: late))")
        try require(clients.sockets.isEmpty, .closedForGood, "open: \(clients.sockets)")
    }
}
