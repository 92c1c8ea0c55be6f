// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport

@testable import DialtoneConnection

/// What can go wrong, and what users, clients and programs do meanwhile.
enum Deed: CaseIterable {
    // The network.
    case pathGoes, pathComes, pathMoves, pathUnknown, pathUnresolved, pathFlaps, pathRepeats
    case overrun
    case addressRemovedBeforeThePath, addressRemovedAfterThePath
    case uplinkDies, lineForgotten, suspend
    // Name servers and servers.
    case nameServersOutOfReach, nameServerChanges, answerChanges, servicesChange
    case hostsChange, serverRestarts, silentDeath, serverAsks, loginChanges
    case send, answerHidden, hangUp, reset, openedFlowEnds
    // Users.
    case redial, redialStorm, policyChanges, wakesChange, budgetUsedUp, openingLeft
    // Drivers that are late, or early.
    case lateWords, earlyTimer
    // Clients and programs.
    case take, takeAgain, takeUnseen, read, readAll, write, park, end, acknowledge, watchersCome, keepaliveDue
    case killAgent
    case calm

    static let ofClients: [Deed] = [
        .take, .takeAgain, .takeUnseen, .read, .readAll, .write, .park, .end, .acknowledge, .watchersCome,
        .keepaliveDue, .send, .send, .hangUp, .reset, .redial, .wakesChange, .pathGoes, .pathComes, .killAgent, .calm,
    ]
}

extension Simulation {
    /// Lives through a whole sequence: a start, some deeds with pauses between them, a recovery, a close.
    mutating func live() throws {
        world.link = random.chance(80) ? .uplink(0) : .none
        if isBrought { try bring() } else { try tell(.opened) }
        // Some are mostly about clients, who do more in a shorter time.
        let share = random.pick([10, 10, 50, 90])
        let count = share == 10 ? 3 + random.below(10) : 10 + random.below(share / 2)
        for _ in 0..<count {
            let isOfClients = random.chance(share)
            try run(until: now + (isOfClients ? random.pause() / 4 : random.pause()))
            try apply(random.pick(isOfClients ? Deed.ofClients : Deed.allCases))
        }
        try run(until: now + random.pause())
        if !isOver, random.chance(80) { try recover() }
        try close()
    }

    /// Whether the connection has ended with its flow.
    var isOver: Bool { connection.status.state == .closed }

    private mutating func apply(_ deed: Deed) throws {
        trace?.append("\(now) deed \(deed)")
        seen.deeds.insert(deed)
        switch deed {
        case .pathGoes: try move(to: .none)
        case .pathComes, .pathMoves: try move(to: .uplink(random.below(2)))
        case .pathUnknown: try move(to: .unknown)
        case .pathUnresolved: try move(to: .unresolved(random.below(2)))
        case .pathFlaps: try flap()
        case .pathRepeats: try tellPath()
        case .overrun: try overrun()
        case .addressRemovedBeforeThePath: try removeAddress(pathFirst: false)
        case .addressRemovedAfterThePath: try removeAddress(pathFirst: true)
        case .uplinkDies: world.deadUplinks.formSymmetricDifference([random.below(2)])
        case .lineForgotten: world.forgotten.formUnion(checker.known.sockets.keys)
        case .suspend: try suspend(.seconds(1 + random.below(30_000)))
        case .nameServersOutOfReach:
            world.supportsDNS.toggle()
            try tellPath()
        case .nameServerChanges: world.nameServer = random.pick(World.NameServer.allCases)
        case .answerChanges: world.answer = (0...random.below(4)).map { _ in random.below(4) }
        case .servicesChange: world.services = random.pick(World.Services.allCases)
        case .hostsChange: changeHosts()
        case .serverRestarts: try restartServer()
        case .silentDeath: try fallSilent()
        case .serverAsks: try askForPause()
        case .loginChanges: world.login = random.pick(World.Login.allCases)
        case .send: if let epoch = checker.known.standing { try receive(1 + random.below(5), on: epoch) }
        case .answerHidden: try hideAnswer()
        case .hangUp: try withFlow { .remoteClosed(epoch: $0) }
        case .reset: try withFlow { .flowFailed(epoch: $0, .reset) }
        case .openedFlowEnds: if let play = checker.known.play { try tell(.remoteClosed(epoch: play.epoch)) }
        case .redial: try tell(.redialRequested())
        case .redialStorm: for _ in 0..<random.below(60) { try tell(.redialRequested()) }
        case .policyChanges: try changePolicy()
        case .wakesChange: try changeWakes()
        case .budgetUsedUp: try useUpBudget()
        case .openingLeft: try leaveOpening()
        case .lateWords: try sayLateWords()
        case .earlyTimer:
            let timer = ConnectionTimer.allCases.first { checker.known.timers[$0] != nil }
            if let timer { try tell(.timerFired(timer)) }
        case .take: try take(by: clients.newProcess())
        case .takeAgain: if let process = anybody() { try take(by: process) }
        case .takeUnseen: if random.chance(20) { try take(by: nil) }
        case .read: read { 1 + $0.below(3) }
        case .readAll: read { _ in .max }
        case .write: write()
        case .park: try parkSomething()
        case .end: if let process = anybody() { try end(process) }
        case .acknowledge: try acknowledge()
        case .watchersCome: try changeWatchers()
        case .keepaliveDue: try tell(.keepaliveDue(isCalled: random.chance(50)))
        case .killAgent: if !isOver || connection.ownership.isWaiting { try restart() }
        case .calm: try run(until: now + .seconds(checker.known.policy.heartbeat == nil ? 3600 : 600))
        }
    }

    // MARK: - The network

    mutating func tellPath() throws {
        world.generation += 1
        // Of the two that are watched, either may be told first.
        let ownFirst = random.chance(50)
        if ownFirst { try tellFlowPath() }
        try tell(.pathChanged(world.path()))
        if !ownFirst { try tellFlowPath() }
    }

    private mutating func tellFlowPath() throws {
        guard let watched = watchedFlow else { return }
        try tell(.flowPathChanged(epoch: watched.epoch, watched.path(in: world)))
    }

    /// Moves to another way; an uplink that is moved to gets its address back.
    mutating func move(to link: World.Link) throws {
        if case .uplink(let uplink) = link { world.hasAddress[uplink] = true }
        world.link = link
        try tellPath()
    }

    private mutating func flap() throws {
        let pause = Duration.milliseconds(1 + random.below(2000))
        let other: World.Link = random.chance(50) ? .none : .uplink(1)
        for round in 0..<(2 + random.below(40)) {
            try move(to: round.isMultiple(of: 2) ? other : .uplink(0))
            try run(until: now + pause)
        }
    }

    /// The kernel's buffer overran: a verdict that may be old, until the re-read gives the true one.
    private mutating func overrun() throws {
        var guess = random.chance(50) ? world.path() : Path(status: .unsatisfied, reason: .noRoute)
        guess.isCoherent = false
        try tell(.pathChanged(guess))
        if let watched = watchedFlow {
            if guess.status == .satisfied, watched.uplink != nil { guess = watched.path(in: world) }
            (guess.isCoherent, guess.destination) = (false, watched.address)
            try tell(.flowPathChanged(epoch: watched.epoch, guess))
        }
        try run(until: now + .milliseconds(random.below(3000)))
        try tellPath()
    }

    private mutating func removeAddress(pathFirst: Bool) throws {
        let uplink = random.below(2)
        world.hasAddress[uplink] = false
        let isUsed = world.link == .uplink(uplink) || world.link == .unresolved(uplink)
        let other: World.Link = world.hasAddress[1 - uplink] ? .uplink(1 - uplink) : .none
        if isUsed, pathFirst { try move(to: other) }
        for family in [IPAddress.Family.v4, .v6] {
            try tell(.localAddressRemoved(World.source(of: uplink, family)))
        }
        if isUsed, !pathFirst {
            try run(until: now + .milliseconds(random.below(50)))
            // Sometimes the address is back before anybody looked.
            try move(to: random.chance(30) ? .uplink(uplink) : other)
        }
    }

    // MARK: - The other end

    private mutating func changeHosts() {
        for host in world.hosts.indices where random.chance(60) {
            world.hosts[host] = random.pick(World.Host.allCases)
        }
    }

    private mutating func fallSilent() throws {
        let failure = random.pick([FlowFailure.timedOut, .hostUnreachable, .networkUnreachable])
        try withFlow { .flowFailed(epoch: $0, failure) }
    }

    private mutating func askForPause() throws {
        if random.chance(30) { return try tell(.redialRequested(after: .seconds(random.below(120)))) }
        try tell(.serverAsked(.seconds(random.below(120))))
        if random.chance(70) { try withFlow { .remoteClosed(epoch: $0) } }
    }

    /// Bytes for the client come as if by chance in the moment of a keepalive.
    private mutating func hideAnswer() throws {
        guard let epoch = checker.known.standing else { return }
        try beat(epoch)
        if checker.known.standing == epoch { try receive(1, on: epoch) }
    }

    private mutating func restartServer() throws {
        let before = world.hosts
        world.hosts = [World.Host](repeating: .refuses, count: before.count)
        let isOrderly = random.chance(50)
        try withFlow { isOrderly ? .remoteClosed(epoch: $0) : .flowFailed(epoch: $0, .reset) }
        try run(until: now + random.pause())
        world.hosts = before
    }

    private mutating func withFlow(_ input: (UInt64) -> ConnectionInput) throws {
        if let epoch = checker.known.standing { try tell(input(epoch)) }
    }

    private mutating func sayLateWords() throws {
        var epoch = checker.newestEpoch - min(checker.newestEpoch, UInt64(1 + random.below(3)))
        // One that is over, and a question that waits for nothing any more.
        while checker.known.sockets[epoch] != nil { epoch -= 1 }
        var query = checker.newestQuery - min(checker.newestQuery, UInt64(random.below(3)))
        while checker.known.queries[query] != nil { query -= 1 }
        let local = Endpoint(address: World.source(of: 0, .v4), port: 1)
        try tell(.handshakeBegan(epoch: epoch, local: local))
        try tell(.dialSucceeded(epoch: epoch, local: local, remote: local))
        try tell(.dialFailed(epoch: epoch, .refused))
        try tell(.remoteClosed(epoch: epoch))
        try tell(.flowFailed(epoch: epoch, .timedOut))
        try tell(.flowPathChanged(epoch: epoch, world.path()))
        try tell(.probeSent(epoch: epoch))
        try tell(.answered(epoch: epoch, count: 1))
        try tell(.acknowledged(epoch: epoch, begun: now))
        let words = [
            ConnectionInput.arrived, { ConnectionInput.taken(epoch: $0, by: .unknown) },
            { ConnectionInput.parked(epoch: $0, handled: 1) }, ConnectionInput.returned,
            { ConnectionInput.abandoned(epoch: $0, isUntouched: false, isAlone: true) },
        ]
        for word in words {
            try tell(word(epoch))
        }
        try tell(.openingAnswered(epoch: epoch, awaiting: 1, begun: now))
        try tell(.openingFailed(epoch: epoch, .init(step: 1, cause: .mismatch)))
        try tell(.sessionOpened(epoch: epoch))
        try tell(.resolved(query: query, .addresses(World.hosts.map { .init($0, source: nil) })))
        try tell(.resolutionFailed(query: query, .noSuchName))
        // A timer that was cancelled when its word was under way already.
        for timer in ConnectionTimer.allCases where checker.known.timers[timer] == nil { try tell(.timerFired(timer)) }
    }

    // MARK: - Users

    private mutating func changeWakes() throws {
        var settings = connection.wakes.settings
        settings.policy.rounds = 1 + random.below(4)
        try tell(.wakesChanged(settings))
    }

    private mutating func useUpBudget() throws {
        checker.dialsFrom = now + .milliseconds(1 + random.below(60_000))
        if random.chance(50) { try withFlow { .remoteClosed(epoch: $0) } }
    }

    private mutating func leaveOpening() throws {
        let left = random.chance(70) ? Simulation.opening(&random) : nil
        try tell(.openingLeft(random.chance(80) ? left : Opening([])))
    }

    private mutating func changePolicy() throws {
        // Nobody has another one for a connection that is its flow and nothing more.
        guard checker.known.policy.redials else { return }
        var policy = random.chance(50) ? Simulation.policy(&random) : checker.known.policy
        if random.chance(30) { policy.keepalive = nil }
        if random.chance(30) { policy.heartbeat = random.chance(50) ? Heartbeat(.mqtt) : nil }
        if random.chance(30) { policy.movesToBetterPath.toggle() }
        if random.chance(30) { policy.triesOtherUplinks.toggle() }
        if random.chance(30) { policy.keepsAbandonedFlow.toggle() }
        if random.chance(30) { policy.opening = random.chance(50) ? Simulation.opening(&random) : nil }
        if random.chance(30) { policy.answers = Simulation.answers(&random) }
        if random.chance(30) { policy.mark = UInt32(random.below(3)) }
        try tell(.policyChanged(policy))
    }
}
