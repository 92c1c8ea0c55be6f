// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport

@testable import DialtoneConnection

// Programs that begin and end, and sockets that are given out, taken back and closed.

extension Simulation {
    mutating func noteSession(_ input: ConnectionInput) {
        switch input {
        case .sessionOpened(let epoch) where epoch == checker.known.play?.epoch:
            clients.sockets[epoch]?.hasSession = true
        case .remoteClosed(let epoch), .flowFailed(let epoch, _): clients.sockets[epoch]?.hasEnded = true
        case .openingFailed(let epoch, _): clients.sockets[epoch]?.hasEnded = true
        case .arrived(let epoch): clients.sockets[epoch]?.isUnheard = false
        default: break
        }
    }

    // MARK: - Programs

    /// There is a process that is to become the program, or there is none.
    mutating func begin(_ attempt: WakeAttempt.ID) throws {
        let isKnownEarly = random.chance(60)
        let isRefused = random.chance(20)
        guard !isRefused || isKnownEarly else { return try failLaunch(attempt, nil) }
        let program = launched(attempt)
        guard isKnownEarly else { return try run(program, attempt) }
        clients.processes[program]?.isBeginning = true
        try tell(.launchBegan(attempt, program))
        later(.milliseconds(random.below(random.chance(50) ? 2 : 20_000)), .program(program, attempt, runs: !isRefused))
    }

    /// Somebody else was asked to launch it, who knows of a program or not; or finds only now whether there is one.
    mutating func find(_ attempt: WakeAttempt.ID) throws {
        if let program = clients.unheard.removeValue(forKey: attempt) {
            try run(program, attempt)
            if !clients.isAlive(program) { later(.milliseconds(random.below(5000)), .end(program)) }
        } else if random.chance(30) {
            try run(launched(attempt), attempt)
        } else {
            try failLaunch(attempt, nil)
        }
    }

    /// A new program, with what it was launched with.
    mutating func launched(_ attempt: WakeAttempt.ID) -> KnownProcess {
        let program = clients.newProcess(isProgram: true)
        for epoch in clients.sockets.keys where clients.sockets[epoch]?.owner == .launch(attempt) {
            clients.sockets[epoch]?.owner = .program(program)
        }
        return program
    }

    /// The process has become the program, or could not.
    mutating func becomeProgram(_ program: KnownProcess, _ attempt: WakeAttempt.ID, runs: Bool) throws {
        clients.processes[program]?.isBeginning = false
        if runs { return try run(program, attempt) }
        clients.processes[program]?.isAlive = false
        clients.processes[program]?.isEndTold = true
        try failLaunch(attempt, program)
    }

    private mutating func run(_ program: KnownProcess, _ attempt: WakeAttempt.ID) throws {
        clients.launching = nil
        clients.lastProgram = program
        try tell(.launched(attempt, program))
        seen.launches += 1
        if isAttended { backlog.append(.attend) }
    }

    private mutating func failLaunch(_ attempt: WakeAttempt.ID, _ program: KnownProcess?) throws {
        clients.launching = nil
        let readers = [Reader.launch(attempt)] + (program.map { [.program($0)] } ?? [])
        for epoch in clients.sockets.keys where clients.sockets[epoch]?.owner.map(readers.contains) ?? false {
            clients.release(epoch)
        }
        try tell(.launchFailed(attempt, program))
        try tell(.attempted(attempt, .failed("chance")))
        if isAttended { backlog.append(.attend) }
    }

    /// A process ends; the agent hears of it now or later.
    ///
    /// - Parameter certain: how; `nil` for by chance.
    mutating func end(_ process: KnownProcess, _ certain: ProgramEnd? = nil) throws {
        guard clients.isAlive(process) else { return }
        let isProgram = clients.processes[process]?.isProgram ?? false
        let failures: [ProgramEnd] = [.exited(status: 1), .killed(signal: 9), .unseen]
        let end = certain ?? (!isProgram ? .unseen : random.chance(40) ? .exited(status: 0) : random.pick(failures))
        clients.processes[process]?.isAlive = false
        clients.processes[process]?.end = end
        for epoch in clients.sockets(of: process) {
            // What a program took by itself, and was not launched with, it has to park.
            guard end != .exited(status: 0) || clients.sockets[epoch]?.owner != .program(process) else {
                clients.sockets[epoch]?.isGivenUp = true
                continue
            }
            let isTorn = clients.sockets[epoch]?.isTouched ?? false
            clients.sockets[epoch]?.tornBy = isTorn ? process : nil
        }
        // Of one that it does not know yet, the agent hears later.
        guard !clients.unheard.values.contains(process) else { return }
        later(.milliseconds(random.chance(50) ? 0 : random.below(5000)), .end(process))
    }

    mutating func tellEnd(of process: KnownProcess) throws {
        guard let known = clients.processes[process], !known.isAlive, !known.isEndTold else { return }
        clients.processes[process]?.isEndTold = true
        for epoch in clients.sockets(of: process) {
            clients.release(epoch)
            // It has read what it wanted.
            if known.end == .exited(status: 0) { clients.sockets[epoch]?.hasShown = true }
        }
        if connection.policy.keepsAbandonedFlow {
            for (epoch, socket) in clients.sockets where socket.tornBy == process {
                clients.sockets[epoch]?.tornBy = nil
            }
        }
        try tell(.processEnded(process, known.end))
        if isAttended { backlog.append(.attend) }
    }

    // MARK: - Hands

    /// The agent has it again, or what is left of it: then nobody else may have it.
    mutating func takeBack(_ epoch: UInt64) throws {
        guard let socket = clients.sockets[epoch] else { return }
        let isDead = socket.owner?.process.map { !clients.isAlive($0) } ?? false
        try require(
            socket.owner == nil || isDead, .oneReader,
            "\(epoch) is taken back from \(String(describing: socket.owner)), who has it")
        clients.sockets[epoch]?.handed = nil
        if !socket.isTorn { clients.sockets[epoch]?.isForgotten = false }
        clients.sockets[epoch]?.isGivenUp = false
        clients.release(epoch)
    }

    mutating func hand(_ epoch: UInt64, to reader: Reader) throws {
        guard let socket = clients.sockets[epoch] else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is given out, and closed")
        }
        let isSame = socket.owner == reader || (reader.process != nil && socket.owner?.process == reader.process)
        // Of one that cannot be watched nobody knows whether it ever got what had ended.
        let isOrphan = socket.isRetired && socket.owner == .unknown
        try require(
            socket.owner == nil || isSame || isOrphan, .oneReader,
            "\(epoch) is given to \(reader), and \(String(describing: socket.owner)) has it")
        try require(
            isSame || isOrphan || !socket.isTorn || socket.isForgotten, .nobodyReadsOn,
            "\(epoch) is given to \(reader) in the middle of what another one read")
        // A program that takes again what it was launched with is that program still.
        if !isSame || reader.process == nil { clients.sockets[epoch]?.owner = reader }
        // One that is given again arrives.
        clients.sockets[epoch]?.hasShown = isSame
        clients.sockets[epoch]?.isLost = !isSame && reader.isClient && random.chance(10)
        if socket.handed == nil { clients.sockets[epoch]?.handed = (socket.read, socket.writes) }
    }

    mutating func retire(_ epoch: UInt64, survivesAgent: Bool, isHeld: Bool) throws {
        clients.sockets[epoch]?.isRetired = true
        if !survivesAgent { clients.sockets[epoch]?.survivesAgent = false }
        clients.sockets[epoch]?.isWatched = false
        if !isHeld { try takeBack(epoch) }
    }

    mutating func close(_ epoch: UInt64, isDelivered: Bool) throws {
        leave(epoch)
        guard let socket = clients.sockets.removeValue(forKey: epoch) else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is closed twice")
        }
        guard socket.unread > 0, !isClosed else { return }
        let hasReader = socket.owner.map { $0.process.map { clients.isAlive($0) } ?? ($0 == .unknown) } ?? false
        let isFull = clients.sockets.values.count(where: \.isRetired) >= Ownership.most - 1
        // One that shows nothing may never have got it, or end before it reads.
        let mayBeLost = hasReader && !socket.hasShown && !socket.isTouched && socket.owner != .unknown
        if mayBeLost, isDelivered, !isFull {
            throw Violation(invariant: .restKept, detail: "\(epoch) never came to its reader: \(socket)")
        }
        // What a reader has it reads, and what one left torn is of use to nobody.
        if hasReader && isDelivered || socket.isTorn { return }
        // A program that ends with 0 has read what it wanted of what has ended.
        if socket.isGivenUp && (socket.isRetired || socket.hasEnded) { return }
        // Of what a client had when the agent was killed, nobody knows how far it read.
        if socket.isForgotten, !socket.isRetired { return }
        // A greeting comes again; what the server said before it hung up is kept until a flow stands.
        if !socket.hasSession { return }
        // Nine losses of the line with nobody who came.
        if isFull, socket.isRetired { return }
        throw Violation(invariant: .restKept, detail: "\(socket.unread) bytes on \(epoch) are lost: \(socket)")
    }
}

extension Reader {
    fileprivate var isClient: Bool { if case .client = self { true } else { false } }
}
