// SPDX-License-Identifier: Apache-2.0

// What clients and programs do with the sockets: they take and park them, are launched with them, and end.

extension Connection {
    /// A socket that is to be given out.
    package struct Offer: Hashable, Sendable {
        /// Its number.
        package let epoch: UInt64
        /// Whether the flow has ended: what it received before is there to be read.
        package let isOver: Bool
        /// Whose it becomes.
        package let reader: Reader
    }

    /// Says what a client is to be given that comes and asks. What an ended flow left unread comes before the flow that
    /// took its place: first come, first read.
    ///
    /// A descriptor may get lost on its way: a client that does not ask the kernel for ancillary data never sees it. So
    /// the process that has the flow may take it again; nobody else may. One that is not known has it until it parks
    /// it, or the flow ends.
    ///
    /// - Parameters:
    ///   - process: the client; `nil` for one that cannot be watched.
    ///   - effects: what is to be done in any case.
    package mutating func offer(
        to process: KnownProcess?, facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]
    ) throws(TakeRefusal) -> Offer {
        if let reader {
            guard let holder = reader.process else { throw .heldByClient(nil) }
            guard holder == process else { throw .heldByClient(holder) }
        }
        // What another flow took the place of comes before that one, where its reader may never have got it.
        if process != nil { endLingering(where: { $0.reader.process == process }, facts, &effects) }
        let reader = process.map { Reader.client($0) } ?? .unknown
        guard let offer = next(for: reader, facts, &effects) else { throw .notReady(status.state) }
        return offer
    }

    private mutating func next(
        for reader: Reader, _ facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]
    ) -> Offer? {
        if let epoch = ownership.next(for: reader, facts, &effects) {
            return Offer(epoch: epoch, isOver: true, reader: reader)
        }
        guard let standing = line.standing, standing.ownership.session != .opening else { return nil }
        return Offer(epoch: standing.epoch, isOver: false, reader: standing.ownership.reader ?? reader)
    }

    /// Why a flow cannot be parked; `nil` where it can.
    ///
    /// - Parameter leavesOpening: whether the client leaves an opening. On one that has ended nothing else can be left,
    ///   and where its login was refused, that is what is waited for.
    package func parkRefusal(of epoch: UInt64, leavesOpening: Bool = false) -> ParkRefusal? {
        if leavesOpening, line.standing == nil, line.login.refusal != nil, ownership.isGiven(epoch) { return nil }
        guard let standing = line.standing, standing.epoch == epoch else { return .staleEpoch(current: status.epoch) }
        return standing.ownership.holder == .client ? nil : .notTaken
    }

    mutating func heard(_ input: ClientInput, _ turn: inout ConnectionTurn) {
        switch input {
        case .brought(let process): (wakes.client, wakes.hasHadClient) = (process, true)
        case .took(let epoch, let reader): took(epoch, reader, &turn)
        case .parked(let epoch, let opening, let answers):
            parked(epoch, leaving: opening, answering: answers, &turn)
        case .processEnded(let process, let end): ended(process, end, &turn)
        case .acknowledged(let wake, let process): acknowledged(wake, by: process, &turn)
        case .attempted(let attempt, let outcome):
            tellWakes(.attempted(wake: attempt.wake, attempt: attempt.attempt, outcome), &turn)
        case .launchBegan(let attempt, let process):
            // Should the agent end now, its next run holds on to that. It may never run, and another one does.
            replace(.launch(attempt), by: .program(process))
            (wakes.program, wakes.beginning) = (process, process)
        case .launched(let attempt, let process): launched(attempt, process, &turn)
        case .launchFailed(let attempt, let process): launchFailed(attempt, process, &turn)
        case .watchersChanged: watchersChanged(&turn)
        case .keepaliveDue(let isCalled):
            wakes.isListening = isCalled
            tellWakes(.needed(.keepAlive, presence(with: .keepAlive, turn.facts)), &turn)
        case .bytesCame:
            wakes.review = nil
            need(.data, &turn)
        case .wakesChanged(let settings): change(to: settings, &turn)
        }
    }

    // MARK: - Clients

    /// Closes flows that others took the place of.
    mutating func endLingering(
        where isOver: (Ownership.Lingering) -> Bool = { _ in true }, _ facts: some ConnectionFacts,
        _ effects: inout [ConnectionEffect]
    ) {
        ownership.endLingering(where: isOver, keepsRest: policy.keepsAbandonedFlow, facts, &effects)
    }

    private mutating func took(_ epoch: UInt64, _ reader: Reader, _ turn: inout ConnectionTurn) {
        (wakes.client, wakes.hasHadClient) = (reader.process, true)
        if line.standing?.epoch == epoch {
            endLingering(turn.facts, &turn.effects)
            tellLine(.taken(epoch: epoch, by: reader), &turn)
        } else {
            ownership.give(epoch, to: reader)
            if status.state == .closed {
                // No other flow follows by whose taking the wake would be acknowledged.
                clientHasCome(&turn)
            } else {
                // Who has what ended goes on to what came behind it, or is reminded.
                reviewLater(&turn)
            }
        }
        presenceChanged(&turn)
    }

    private mutating func parked(
        _ epoch: UInt64, leaving opening: Opening?, answering answers: AnsweredMessages?, _ turn: inout ConnectionTurn
    ) {
        // Nothing is left on one that has ended; but who says so had it, and is to go on to what came behind it.
        let refusal = parkRefusal(of: epoch, leavesOpening: opening != nil)
        if ownership.settle(epoch, &turn.effects), wakes.review == nil { needForWhatWaits(&turn) }
        guard refusal == nil else { return }
        if let opening { tellLine(.openingLeft(opening), &turn) }
        if let answers { tellLine(.answersLeft(answers), &turn) }
        tellLine(.parked(epoch: epoch, handled: answers?.handled), &turn)
    }

    // MARK: - The ends of processes

    private mutating func ended(_ process: KnownProcess, _ end: ProgramEnd, _ turn: inout ConnectionTurn) {
        // First the wakes, so that what a flow's return brings with it finds no program.
        if wakes.program == process {
            wakes.program = nil
            tellWakes(.programEnded(end), &turn)
        }
        // What it had of flows that others took the place of is kept with that.
        endLingering(where: { $0.reader.process == process }, turn.facts, &turn.effects)
        programEnded(process, end, &turn)
        for epoch in ownership.flows(of: .client(process)) {
            let waits = ownership.abandon(
                epoch, keepsRest: policy.keepsAbandonedFlow, turn.facts, &turn.effects)
            guard waits else { continue }
            let givenUp = wakes.standing.flatMap { $0.hasFailed ? $0.number : nil }
            need(.clientDied, &turn)
            // Where that is no reason.
            if wakes.standing?.number == givenUp { need(.data, &turn) }
        }
        if let epoch = standingEpoch(of: .client(process)) {
            abandon(epoch, isAlone: false, isOfProgram: false, &turn)
        }
        guard wakes.client == process else { return }
        wakes.client = nil
        presenceChanged(&turn)
        if wakes.review != nil, wakes.standing == nil { needForWhatWaits(&turn) }
    }

    private mutating func programEnded(_ process: KnownProcess, _ end: ProgramEnd, _ turn: inout ConnectionTurn) {
        let remnants = ownership.flows(of: .program(process))
        for epoch in remnants {
            if end == .exited(status: 0) {
                ownership.finish(epoch, &turn.effects)
            } else {
                _ = ownership.abandon(epoch, keepsRest: policy.keepsAbandonedFlow, turn.facts, &turn.effects)
            }
        }
        if let epoch = standingEpoch(of: .program(process)) {
            if end == .exited(status: 0) {
                tellLine(.parked(epoch: epoch), isOfProgram: true, &turn)
            } else {
                abandon(epoch, isAlone: true, isOfProgram: true, &turn)
            }
        }
        // What came after the flow that it has read was told while its wake stood.
        guard !remnants.isEmpty else { return }
        if ownership.isWaiting { return need(.data, &turn) }
        needForWhatWaits(&turn)
        if wakes.hasHadClient, line.standing?.ownership == .new { need(.reconnected, &turn) }
    }

    /// - Parameter isAlone: whether nobody else can have a descriptor of the flow from who had it.
    private mutating func abandon(_ epoch: UInt64, isAlone: Bool, isOfProgram: Bool, _ turn: inout ConnectionTurn) {
        let isUntouched = turn.facts.touch(of: epoch) == .untouched
        turn.hasLostClient = !isOfProgram
        tellLine(
            .abandoned(epoch: epoch, isUntouched: isUntouched, isAlone: isAlone), isOfProgram: isOfProgram, &turn)
        turn.hasLostClient = false
    }

    // MARK: - Programs

    /// Launches a program, with the flow that is to be read first.
    mutating func launch(_ attempt: WakeAttempt, _ turn: inout ConnectionTurn) {
        guard let wake = wakes.standing, wake.number == attempt.wake, wake.attempts == attempt.attempt else {
            // The client has come by itself meanwhile.
            let outcome = WakeOutcome.failed("it is not needed any more")
            return tellWakes(.attempted(wake: attempt.wake, attempt: attempt.attempt, outcome), &turn)
        }
        let reader = Reader.launch(attempt.id)
        // A client that has the flow keeps it.
        let offer = self.reader == nil ? next(for: reader, turn.facts, &turn.effects) : nil
        if let offer {
            if offer.isOver {
                ownership.give(offer.epoch, to: reader)
            } else {
                endLingering(turn.facts, &turn.effects)
                tellLine(.taken(epoch: offer.epoch, by: reader), isOfProgram: true, &turn)
            }
        }
        turn.effects.append(.launch(attempt, offer))
    }

    private mutating func launched(_ attempt: WakeAttempt.ID, _ process: KnownProcess, _ turn: inout ConnectionTurn) {
        replace(.launch(attempt), by: .program(process))
        (wakes.program, wakes.client, wakes.hasHadClient) = (process, process, true)
        wakes.beginning = nil
        presenceChanged(&turn)
        tellWakes(.programStarted, &turn)
        tellWakes(.attempted(wake: attempt.wake, attempt: attempt.attempt, .done), &turn)
        if readers.contains(.program(process)) { clientHasCome(&turn) }
    }

    private mutating func launchFailed(
        _ attempt: WakeAttempt.ID, _ process: KnownProcess?, _ turn: inout ConnectionTurn
    ) {
        if let process {
            replace(.program(process), by: .launch(attempt))
            if wakes.program == process { wakes.program = nil }
        }
        wakes.beginning = nil
        giveBack(.launch(attempt), &turn)
        // What it was launched for may have been acknowledged meanwhile.
        if wakes.review == nil { needForWhatWaits(&turn) }
    }

    /// Takes back what a program was to be launched with that never ran.
    private mutating func giveBack(_ reader: Reader, _ turn: inout ConnectionTurn) {
        ownership.giveBack(reader, turn.facts, &turn.effects)
        guard let epoch = standingEpoch(of: reader) else { return }
        tellLine(.returned(epoch: epoch), isOfProgram: true, &turn)
    }

    /// What a reader has is somebody's that it turned into.
    private mutating func replace(_ reader: Reader, by next: Reader) {
        line.replace(reader, by: next)
        ownership.replace(reader, by: next)
    }

    /// The flow that stands, where a reader has it.
    private func standingEpoch(of reader: Reader) -> UInt64? {
        line.standing.flatMap { $0.ownership.reader == reader ? $0.epoch : nil }
    }
}

/// Why a flow cannot be taken.
package enum TakeRefusal: Error, Hashable {
    /// There is none, or one on which the agent plays the opening exchange.
    case notReady(ConnectionStatus.State)
    /// Somebody has it: this process, where it is known.
    case heldByClient(KnownProcess?)
}

/// Why a flow cannot be parked.
package enum ParkRefusal: Error, Hashable {
    /// It is over; this one is the newest.
    case staleEpoch(current: UInt64)
    /// Nobody has taken it.
    case notTaken
}
