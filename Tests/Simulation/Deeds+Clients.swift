// SPDX-License-Identifier: Apache-2.0

import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePersistence
import DialtonePlatform
import DialtoneTestSupport

@testable import DialtoneConnection

// What clients and programs do, and that the agent is killed.

extension Simulation {
    func anybody() -> KnownProcess? {
        let alive = clients.alive
        // Without a draw. The process that was made last is the likeliest to have something.
        return steps.isMultiple(of: 3) && !alive.isEmpty ? alive[steps / 3 % alive.count] : alive.last
    }

    mutating func read(_ count: (inout SplitMix64) -> Int) {
        guard let process = anybody(), let epoch = clients.openSocket(of: process),
            var socket = clients.sockets[epoch]
        else { return }
        socket.read += min(socket.unread, count(&random))
        clients.sockets[epoch] = socket
    }

    mutating func write() {
        guard let process = anybody(), let epoch = clients.openSocket(of: process) else { return }
        clients.sockets[epoch]?.writes += 1
    }

    // MARK: - Clients

    mutating func changeWatchers() throws {
        clients.isWatched.toggle()
        try tell(.watchersChanged)
    }

    /// A client brings a flow that it has made and logged in on.
    mutating func bring() throws {
        let local = Endpoint(address: World.source(of: 0, .v4), port: 40_000)
        clients.sockets[1] = .init(survivesAgent: true)
        clients.sockets[1]?.hasSession = true
        try tell(.brought(by: clients.newProcess()))
        try tell(.adopted(Adoption(local: local, remote: Endpoint(address: World.hosts[0], port: World.port))))
    }

    /// - Returns: whether it was given something.
    @discardableResult
    mutating func take(by process: KnownProcess?) throws -> Bool {
        // A program has what it was launched with, and asks for nothing before the agent knows it.
        if let process, clients.unheard.values.contains(process) { return false }
        // Its driver hears of ends before it gives anything out.
        for dead in clients.processes(where: { !$0.isAlive && !$0.isProgram }) { try tellEnd(of: dead) }
        var effects: [ConnectionEffect] = []
        let offer = try? connection.offer(to: process, facts: clients, &effects)
        for effect in effects { try run(effect) }
        guard let offer else { return false }
        seen.takes += 1
        try hand(offer.epoch, to: offer.reader)
        if !offer.isOver { clients.sockets[offer.epoch]?.hasSession = true }
        try tell(.took(epoch: offer.epoch, by: offer.reader))
        return true
    }

    mutating func acknowledge() throws {
        guard let wake = connection.wakes.standing else { return }
        let process = random.chance(70) ? anybody() : nil
        // Who sees to a wake has what it took.
        for (epoch, socket) in clients.sockets
        where socket.owner.map({ $0 == .unknown ? process == nil : process != nil && $0.process == process }) ?? false {
            clients.sockets[epoch]?.isLost = false
            clients.sockets[epoch]?.hasShown = true
        }
        try tell(.acknowledged(wake: wake.number, by: process))
    }

    mutating func parkSomething() throws {
        if let process = anybody(), let epoch = clients.sockets(of: process).first { try park(epoch) }
    }

    private mutating func park(_ epoch: UInt64) throws {
        clients.sockets[epoch]?.isLost = false
        clients.sockets[epoch]?.hasShown = true
        clients.sockets[epoch]?.tornBy = nil
        if connection.line.standing?.epoch == epoch {
            clients.release(epoch)
        } else {
            // One that has ended is not given back: who says so had it.
            clients.sockets[epoch]?.isGivenUp = true
        }
        let answers = random.chance(50) ? Simulation.answers(&random) : nil
        try tell(.parked(epoch: epoch, leaving: nil, answering: answers))
    }

    /// Whoever has something reads it all and gives it back, or ends where it is a program; and somebody comes for the
    /// flow that nobody has.
    mutating func attend() throws {
        for process in clients.alive {
            let epochs = clients.sockets(of: process)
            for epoch in epochs { clients.readAll(of: epoch) }
            if clients.processes[process]?.isProgram == true {
                try end(process, .exited(status: 0))
            } else {
                for epoch in epochs { try park(epoch) }
            }
        }
        for epoch in clients.sockets.keys.sorted() where clients.sockets[epoch]?.owner == .unknown { try park(epoch) }
        guard !isOver, let standing = connection.line.standing, standing.ownership.holder == .daemon,
            standing.ownership.session != .opening,
            standing.ownership.session != .open || clients.unreadBytes(on: standing.epoch) > 0
        else { return }
        if try take(by: clients.newProcess()) { backlog.append(.attend) }
    }

    // MARK: - The agent is killed

    /// Another run of the agent goes on with what this one left, whatever was under way.
    mutating func restart() throws {
        let policy = connection.policy
        let (saved, sockets) = try rewritten()
        // Programs that were being launched, and attempts and dials, end with the agent.
        pending.removeAll { pending in
            switch pending.happening {
            case .end, .kick, .impatience, .userTimeout, .input(.remoteClosed), .input(.flowFailed): false
            case .input, .client, .launch, .find, .program, .attend, .answer, .flowPath, .beat, .login, .reply: true
            }
        }
        forgetLaunches(saved, sockets)
        // What was to become a program may do so when nobody waits for it any more.
        for process in clients.processes(where: \.isBeginning) {
            clients.processes[process]?.isBeginning = false
            if clients.isAlive(process) { clients.lastProgram = process }
        }
        (watchedFlow, heartbeats) = (nil, [:])
        for epoch in clients.sockets.keys where !sockets.contains(epoch) {
            (clients.sockets[epoch], lines[epoch]) = (nil, nil)
        }
        for epoch in sockets {
            clients.sockets[epoch]?.isForgotten = true
            clients.sockets[epoch]?.isUnheard = false
            clients.sockets[epoch]?.handed = nil
            lines[epoch]?.awaited = 0
            // Whoever was asked to launch it goes on with that, and the next run has to ask whether there is a program.
            if case .launch(let attempt)? = clients.sockets[epoch]?.owner, random.chance(50) {
                let program = launched(attempt)
                (clients.unheard[attempt], clients.lastProgram) = (program, program)
            }
        }
        connection = Connection(
            policy: policy, wakes: connection.wakes.settings, lastWake: UInt64(now / .milliseconds(1)), now: now)
        connection.exchanges = []
        seen.kills += 1
        seen.formUnion(checker.seen)
        let dialsFrom = checker.dialsFrom
        checker = Checker(policy: policy)
        (checker.dialsFrom, checker.newestEpoch) = (dialsFrom, saved.newestEpoch)
        try decide("the agent is killed") { connection, clients, now, from, random in
            connection.restore(saved, with: sockets, now: now, dialsFrom: from, facts: clients, using: &random)
        }
        let kept = connection.standingEpoch == saved.standing?.epoch ? saved.standing : nil
        if let local = kept?.local.address, !world.isPresent(local) { try tell(.localAddressRemoved(local)) }
        try checkRestart(saved.clientele, reader: kept?.ownership.reader)
    }

    /// The run that launched something ends. Of a program whose socket it does not keep, nobody asks any more.
    private mutating func forgetLaunches(_ saved: Connection.Saved, _ sockets: Set<UInt64>) {
        clients.launching = nil
        var readers = saved.clientele.ended.filter { sockets.contains($0.epoch) }.map(\.reader)
        if let standing = saved.standing, sockets.contains(standing.epoch) { readers.append(standing.ownership.reader) }
        for (attempt, program) in clients.unheard where !readers.contains(.launch(attempt)) {
            clients.unheard[attempt] = nil
            if clients.lastProgram == program { clients.lastProgram = nil }
        }
    }

    /// What was saved, as the next run reads it, and the sockets that it finds.
    private func rewritten() throws -> (Connection.Saved, sockets: Set<UInt64>) {
        let saved = connection.saved(knowing: Set(clients.processes.keys))
        let survives = { [sockets = clients.sockets] in sockets[$0]?.survivesAgent == true }
        var record = SavedConnection(name: "simulated", owner: 0, isConfigured: true, remote: "tcp://192.0.2.1:1")
        record.flows = SavedFlows(
            epoch: saved.newestEpoch,
            standing: saved.standing.map { .init(adoption: $0, number: survives($0.epoch) ? $0.epoch : nil) },
            ended: saved.clientele.ended.filter { survives($0.epoch) }.map {
                .init(epoch: $0.epoch, remote: Endpoint(address: World.hosts[0], port: World.port), number: $0.epoch)
            })
        record.clients = saved.clientele
        var fields = FieldWriter()
        record.write(&fields)
        let read = try SavedConnection(FieldReader(fields.bytes[...]))
        let next = read.flows.saved(read.clients, leaving: saved.opening, answering: saved.answers)
        return (next, Set(read.flows.numbers))
    }
}
