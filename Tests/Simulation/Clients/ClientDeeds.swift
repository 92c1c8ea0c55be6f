// SPDX-License-Identifier: Apache-2.0

import TestSupport

@testable import Connection

/// What clients, programs, servers and networks do, and that the agent is killed.
enum ClientDeed: CaseIterable {
    case take, takeAgain, takeUnseen, read, readAll, write, park, end, acknowledge
    case watchersCome, keepaliveDue, settingsChange
    case send, sendMore, hangUp, reset, redial, linkGoes, linkComes, linkMoves
    case killAgent, wait
    /// A program was launched, and a client was given a socket: what comes of the others.
    case launched, given

    static let chosen = allCases.filter { $0 != .launched && $0 != .given }
}

extension ClientSimulation {
    mutating func live() throws {
        try tell(.opened)
        for _ in 0..<(10 + random.below(60)) {
            try run(until: now + random.pause() / 4)
            let deed = random.pick(ClientDeed.chosen)
            trace?.append("\(now) deed \(deed)")
            try apply(deed)
        }
        try run(until: now + .seconds(3600))
        isClosed = true
        try tell(.closeRequested)
        try require(
            connection.nextDeadline == nil, .closedForGood, "a deadline at \(connection.nextDeadline ?? .zero)")
    }

    private mutating func apply(_ deed: ClientDeed) throws {
        deeds[deed, default: 0] += 1
        switch deed {
        case .take: try take(by: world.newProcess())
        case .takeAgain: if let process = anybody() { try take(by: process) }
        case .takeUnseen: if random.chance(20) { try take(by: nil) }
        case .read: read { 1 + $0.below(3) }
        case .readAll: read { _ in .max }
        case .write:
            if let process = anybody(), let epoch = world.sockets(of: process).first {
                world.sockets[epoch]?.writes += 1
            }
        case .park: try park()
        case .end: if let process = anybody() { try end(process) }
        case .acknowledge: if let wake = connection.wakes.standing { try tell(.acknowledged(wake: wake.number)) }
        case .watchersCome:
            world.isWatched.toggle()
            try tell(.watchersChanged)
        case .keepaliveDue: try tell(.keepaliveDue(isCalled: random.chance(50)))
        case .settingsChange:
            var settings = connection.wakes.settings
            settings.policy.rounds = 1 + random.below(4)
            try tell(.wakesChanged(settings))
        case .send, .sendMore: try send(1 + random.below(5))
        case .hangUp: try withFlow { .remoteClosed(epoch: $0) }
        case .reset: try withFlow { .flowFailed(epoch: $0, .reset) }
        case .redial: try tell(.redialRequested())
        case .linkGoes: try set(link: nil)
        case .linkComes: try set(link: link ?? 0)
        case .linkMoves: try set(link: 1 - (link ?? 0))
        case .killAgent: if random.chance(60) { try restart() }
        case .wait: try run(until: now + .seconds(random.below(900)))
        case .launched, .given: break
        }
    }

    private func anybody() -> KnownProcess? {
        let alive = world.alive
        // Without a draw. The process that was made last is the likeliest to have something.
        return steps.isMultiple(of: 3) && !alive.isEmpty ? alive[steps / 3 % alive.count] : alive.last
    }

    private mutating func withFlow(_ input: (UInt64) -> ConnectionInput) throws {
        if let epoch = connection.line.standing?.epoch { try tell(input(epoch)) }
    }

    private mutating func set(link uplink: Int?) throws {
        link = uplink
        try tell(.pathChanged(path))
    }

    // MARK: - Bytes

    private mutating func send(_ count: Int) throws {
        guard let standing = connection.line.standing, standing.ownership.session != .opening else { return }
        world.sockets[standing.epoch]?.received += count
        guard let socket = world.sockets[standing.epoch] else { return }
        if socket.isWatched { try tell(.arrived(epoch: standing.epoch)) }
        guard let awaited = world.sockets[standing.epoch]?.awaitedBeyond, socket.unread > awaited else { return }
        world.sockets[standing.epoch]?.awaitedBeyond = nil
        if socket.isWatched { try tell(.bytesCame) }
    }

    private mutating func read(_ count: (inout SplitMix64) -> Int) {
        guard let process = anybody(), let epoch = world.sockets(of: process).first, var socket = world.sockets[epoch]
        else { return }
        socket.read += min(socket.unread, count(&random))
        world.sockets[epoch] = socket
    }

    // MARK: - Clients

    private mutating func take(by process: KnownProcess?) throws {
        // Its driver hears of ends before it gives anything out.
        for dead in world.processes.filter({ !$0.value.isAlive && !$0.value.isProgram }).keys { try tellEnd(of: dead) }
        var effects: [ConnectionEffect] = []
        let offer: Connection.Offer
        do throws(TakeRefusal) {
            offer = try connection.offer(to: process, facts: world, &effects)
        } catch {
            for effect in effects { try run(effect) }
            return
        }
        for effect in effects { try run(effect) }
        deeds[.given, default: 0] += 1
        try hand(offer.epoch, to: offer.reader)
        if !offer.isOver { world.sockets[offer.epoch]?.hasSession = true }
        try tell(.took(epoch: offer.epoch, by: offer.reader))
    }

    private mutating func park() throws {
        guard let process = anybody(), let epoch = world.sockets(of: process).first else { return }
        world.sockets[epoch]?.isTorn = false
        if connection.line.standing?.epoch == epoch {
            world.release(epoch)
        } else {
            // One that has ended is not given back: who says so had it.
            world.sockets[epoch]?.isGivenUp = true
        }
        try tell(.parked(epoch: epoch, leaving: nil))
    }

    // MARK: - The agent is killed

    /// Another run of the agent goes on with what this one left, whatever was under way.
    private mutating func restart() throws {
        var (before, adoption) = (connection.clientele, connection.adoption)
        before.ended.removeAll { world.sockets[$0.epoch]?.survivesAgent == false }
        let (policy, newest) = (connection.policy, connection.newestEpoch)
        // Programs that were being launched, and attempts and dials, end with the agent.
        pending.removeAll { pending in
            switch pending.happening {
            case .end: false
            case .line(.remoteClosed), .line(.flowFailed): false
            case .line, .client, .launch: true
            }
        }
        let survivors = Set(before.ended.map(\.epoch) + [adoption?.epoch].compactMap(\.self))
        for epoch in world.sockets.keys where !survivors.contains(epoch) { world.sockets[epoch] = nil }
        for epoch in survivors {
            world.sockets[epoch]?.isForgotten = true
            world.sockets[epoch]?.handed = nil
            if case .launch? = world.sockets[epoch]?.owner { world.sockets[epoch]?.owner = nil }
        }
        connection = Connection(
            policy: policy, wakes: connection.wakes.settings, lastWake: UInt64(now / .milliseconds(1)), now: now)
        var restart = Restart.withoutFlow
        if let cut = adoption, cut.ownership.session == .opening {
            world.sockets[cut.epoch] = nil
            (adoption, restart) = (nil, .openingCut)
        }
        let input = adoption.map { ConnectionInput.adopted($0) } ?? .reopened(epoch: newest, restart)
        try decide("the agent is killed") { connection, world, now, random in
            connection.restore(before, input, leaving: nil, now: now, facts: world, using: &random)
        }
        try checkRestart(before, isKept: adoption != nil)
    }
}
