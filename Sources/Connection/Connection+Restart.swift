// SPDX-License-Identifier: Apache-2.0

// A connection, from one run of the agent to the next.

extension Connection {
    /// What the next run needs to go on, beside the settings, the sockets and the processes themselves.
    package struct Saved: Hashable, Sendable {
        /// The flow that stands; `nil` without one. Its ``Adoption/past`` is set.
        package var standing: Adoption?
        /// The highest number that a flow had; the next one's is above it.
        package var newestEpoch: UInt64
        /// Who has the flows, those that ended too, and the wake that stands.
        package var clientele: Clientele
        /// The opening that a client left in place of the policy's; `nil` where that holds.
        package var opening: Opening?
        /// The messages to be answered that a client left, likewise.
        package var answers: AnsweredMessages?

        /// A connection of which this is known.
        package init(
            standing: Adoption?, newestEpoch: UInt64, clientele: Clientele, opening: Opening?,
            answers: AnsweredMessages?
        ) {
            self.standing = standing
            self.newestEpoch = newestEpoch
            self.clientele = clientele
            self.opening = opening
            self.answers = answers
        }
    }

    /// What a client left in place of the policy's opening and answers; `nil` where it left nothing, or that was
    /// forgotten.
    package var left: (opening: Opening?, answers: AnsweredMessages?) { (line.login.left, line.leftAnswers) }

    /// What the next run needs.
    ///
    /// - Parameter processes: those that it can watch: any other reader is one that nobody knows.
    package func saved(knowing processes: Set<KnownProcess>) -> Saved {
        let reader = { (reader: Reader?) -> Reader? in
            guard let process = reader?.process, !processes.contains(process) else { return reader }
            return .unknown
        }
        var (clientele, standing) = (Clientele(), adoption)
        if let flow = standing?.ownership {
            standing?.ownership = FlowOwnership(reader: reader(flow.reader), session: flow.session)
        }
        clientele.ended = ownership.saved.map { flow in
            let reader = reader(flow.reader)
            return .init(epoch: flow.epoch, reader: reader, left: reader == flow.reader ? flow.left : nil)
        }
        clientele.hasHadClient = wakes.hasHadClient
        clientele.client = wakes.client.flatMap { processes.contains($0) ? $0 : nil }
        clientele.program = wakes.program.flatMap { processes.contains($0) ? $0 : nil }
        clientele.wake = wakes.inherited?.value ?? wakes.standing
        return Saved(
            standing: standing, newestEpoch: line.newestEpoch, clientele: clientele, opening: left.opening,
            answers: left.answers)
    }

    /// Goes on where an earlier run of the agent stopped, in place of ``ConnectionInput/opened``. Processes of it that
    /// are gone are told afterwards (``ClientInput/processEnded(_:_:)``).
    ///
    /// - Parameter sockets: the flows whose sockets are there. A driver has no other ones.
    package mutating func restore(
        _ saved: Saved, with sockets: Set<UInt64>, now: Duration, dialsFrom: Duration = .zero,
        facts: some ConnectionFacts, using random: inout some RandomNumberGenerator
    ) -> [ConnectionEffect] {
        decide(now, dialsFrom, facts, &random) { connection, turn in
            // Before bytes are looked at that wait already.
            if let answers = saved.answers { connection.tellLine(.answersLeft(answers), &turn) }
            var clientele = saved.clientele
            clientele.ended.removeAll { !sockets.contains($0.epoch) }
            connection.inherit(clientele, Self.beginning(saved, sockets, &turn), &turn)
            if let opening = saved.opening { connection.tellLine(.openingLeft(opening), &turn) }
        }
    }

    /// With what the line begins.
    private static func beginning(
        _ saved: Saved, _ sockets: Set<UInt64>, _ turn: inout ConnectionTurn
    ) -> ConnectionInput {
        let known = saved.clientele.ended.map(\.epoch) + [saved.standing?.epoch ?? 0]
        let newest = known.reduce(saved.newestEpoch) { max($0, $1) }
        guard var flow = saved.standing else { return .reopened(epoch: newest, .withoutFlow) }
        guard sockets.contains(flow.epoch) else { return .reopened(epoch: newest, .flowLost) }
        if flow.ownership.session == .opening {
            // Nobody knows how far it was.
            turn.effects.append(.close(epoch: flow.epoch, aborting: false))
            return .reopened(epoch: newest, .openingCut)
        }
        flow.past?.newestEpoch = newest
        return .adopted(flow)
    }

    private mutating func inherit(_ kept: Clientele, _ input: ConnectionInput, _ turn: inout ConnectionTurn) {
        ownership.restore(kept.ended)
        wakes.hasHadClient = kept.hasHadClient || kept.wake != nil
        (wakes.client, wakes.inherited) = (kept.client, kept.wake.map { .value($0) })
        var readers = ownership.readersOfEnded
        if case .adopted(let adoption) = input {
            wakes.hadSession = adoption.ownership.session == .open
            if let reader = adoption.ownership.reader { readers.append(reader) }
        }
        wakes.program = kept.program
        if wakes.program != nil { tellWakes(.programStarted, &turn) }
        // The earlier run ended before it heard of a process. There may be one, whoever has acknowledged the wake
        // meanwhile: before that is known, nobody else gets the flow, and no other program is launched.
        var launches: [WakeAttempt.ID] = []
        for case .launch(let attempt) in readers where !launches.contains(attempt) {
            launches.append(attempt)
            tellWakes(.launchContinued(attempt), &turn)
            turn.effects.append(.find(attempt))
        }
        tellLine(input, &turn)
        resumeWake(&turn)
        if case .program(let process) = reader {
            wakes.client = process
            clientHasCome(&turn)
        }
        // That it was to be looked at again died with the earlier run. What waits on the flow that stands is heard of
        // by itself, as it is watched from now on.
        guard wakes.review == nil, ownership.isOwed else { return }
        guard let wake = wakes.standing else { return need(.data, &turn) }
        if wake.hasFailed { wakes.review = .keptBytes(at: turn.now + wakes.settings.policy.pauses.ceiling) }
    }
}

/// Who has the sockets of flows that ended and is woken for a connection, from one run of the agent to the next.
package struct Clientele: Hashable, Sendable {
    /// The flows that ended, the oldest first.
    package var ended: [EndedFlow] = []
    /// Whether it has, or had, a client.
    package var hasHadClient = false
    /// The process that had the flow last.
    package var client: KnownProcess?
    /// The program that was launched and runs.
    package var program: KnownProcess?
    /// The wake that was not acknowledged.
    package var wake: StandingWake?

    /// An ended flow, and who has it.
    package struct EndedFlow: Hashable, Sendable {
        /// Its number.
        package var epoch: UInt64
        /// Who has it.
        package var reader: Reader?
        /// What the reader had done on it, if the reader was gone when it ended and nobody had said so yet.
        package var left: Touch?

        /// An ended flow.
        package init(epoch: UInt64, reader: Reader?, left: Touch?) {
            (self.epoch, self.reader, self.left) = (epoch, reader, left)
        }
    }

    /// Nothing.
    package init() {}
}
