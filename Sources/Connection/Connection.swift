// SPDX-License-Identifier: Apache-2.0

/// One connection, as a value: the line to the server, who may read its sockets, and how its client is woken. It
/// decides all of that, and does nothing itself.
///
/// ## Of what it is made
///
/// - ``ConnectionStateMachine``, the *line*: when to dial, what to close, how long to wait.
/// - ``Ownership``: who may read the flows that do not stand any more. Who has the one that stands is in the line, as
///   its ``FlowOwnership``.
/// - ``Wakes`` and in it ``WakeMachine``: who the client is, for what it is woken, and how one wake goes.
///
/// What happens to the network is told by ``process(_:now:dialsFrom:facts:using:)-(ConnectionInput,_,_,_,_)``, what
/// clients and programs do by ``process(_:now:dialsFrom:facts:using:)-(ClientInput,_,_,_,_)``. The line's word goes to
/// the other two, and theirs to the line, within the same call; what is to be done comes back as one list.
///
/// ## Its driver
///
/// - Does the effects of a call in their order, all of them, before it tells the next input. What happens meanwhile is
///   kept and told afterwards.
/// - Arms one timer, for ``nextDeadline``, and calls ``deadlinePassed(now:dialsFrom:facts:using:)`` then.
/// - Gives a socket out in two steps: asks what is to be given (``offer(to:facts:_:)``), gives it, and tells so
///   (``ClientInput/took(epoch:by:)``). Nothing is told in between.
/// - Tells the end of a process only once, and of a program that was launched with how it ended.
package struct Connection: ~Copyable {
    var line: ConnectionStateMachine
    /// Who may read what.
    package internal(set) var ownership = Ownership()
    /// The client, and its wakes.
    package internal(set) var wakes: Wakes
    private var deadlines = Deadlines()
    /// What the line was told and answered, for who checks it; `nil` where nobody does.
    var exchanges: [Exchange]?

    /// One word to the line, and its answer.
    struct Exchange {
        let input: ConnectionInput
        let actions: [ConnectionAction]
        let status: ConnectionStatus
    }

    /// A connection of a policy that was validated, not yet at work: ``ConnectionInput/opened`` starts it.
    ///
    /// - Parameter lastWake: the highest number that a wake of it has had in an earlier run of the agent.
    package init(policy: ConnectionPolicy, wakes: Wakes.Settings, lastWake: UInt64 = 0, now: Duration) {
        line = ConnectionStateMachine(policy: policy, now: now)
        self.wakes = Wakes(wakes, lastNumber: lastWake)
    }

    // MARK: - What can be asked

    /// What its user decided about the line.
    package var policy: ConnectionPolicy { line.policy }

    /// What can be said of it now.
    package var status: ConnectionStatus { line.status }

    /// What is known of the flow that stands; `nil` without one.
    package var adoption: Adoption? { line.adoption }

    /// The number of the flow that stands; `nil` without one.
    package var standingEpoch: UInt64? { line.standing?.epoch }

    /// Who has the flow that stands; `nil` where the agent has it, or none stands.
    package var reader: Reader? { line.standing?.ownership.reader }

    /// All that have a flow, the one that stands or another one.
    var readers: [Reader] { (reader.map { [$0] } ?? []) + ownership.readers }

    /// Who may read a flow, the one that stands or another one; `nil` where the agent has it, or there is none.
    package func reader(of epoch: UInt64) -> Reader? {
        epoch == standingEpoch ? reader : ownership.reader(of: epoch)
    }

    /// The turn to dial that it waits for.
    package var awaitedTurn: Duration? { line.awaitedTurn }

    /// Whether bytes wait on the flow that stands, and no client has ever come.
    package var hasUnclaimedBytes: Bool { !wakes.hasHadClient && line.standing?.ownership.hasArrivals == true }

    /// When ``deadlinePassed(now:dialsFrom:facts:using:)`` is to be called next; `nil` for not at all.
    package var nextDeadline: Duration? {
        [deadlines.first, wakes.deadline, ownership.deadline].compactMap(\.self).min()
    }

    /// The timers of the line that are due: before they are judged, its driver tells what has come meanwhile.
    package func dueTimers(at now: Duration) -> [ConnectionTimer] { deadlines.due(at: now) }

    /// The processes whose end matters: those that have a flow, a replaced one included, and those that it wakes.
    package var processes: Set<KnownProcess> {
        Set((readers.map(\.process) + [wakes.client, wakes.program]).compactMap(\.self))
    }

    // MARK: - Inputs

    /// Takes note of what happened to the line, and says what to do about it.
    ///
    /// - Parameter dialsFrom: as of ``ConnectionStateMachine/process(_:now:dialsFrom:using:)``.
    package mutating func process(
        _ input: ConnectionInput, now: Duration, dialsFrom: Duration = .zero, facts: some ConnectionFacts,
        using random: inout some RandomNumberGenerator
    ) -> [ConnectionEffect] {
        decide(now, dialsFrom, facts, &random) { connection, turn in
            // Nobody wants to read any more.
            if input == .closeRequested {
                connection.ownership.close(&turn.effects)
            }
            connection.tellLine(input, &turn)
            if input == .closeRequested { connection.wakes.close() }
        }
    }

    /// Takes note of what a client or a program did, and says what to do about it.
    package mutating func process(
        _ input: ClientInput, now: Duration, dialsFrom: Duration = .zero, facts: some ConnectionFacts,
        using random: inout some RandomNumberGenerator
    ) -> [ConnectionEffect] {
        decide(now, dialsFrom, facts, &random) { $0.heard(input, &$1) }
    }

    /// Does what is due.
    package mutating func deadlinePassed(
        now: Duration, dialsFrom: Duration = .zero, facts: some ConnectionFacts,
        using random: inout some RandomNumberGenerator
    ) -> [ConnectionEffect] {
        decide(now, dialsFrom, facts, &random) { connection, turn in
            for timer in connection.deadlines.due(at: now) {
                // Unless an earlier one has taken it back.
                guard let deadline = connection.deadlines[timer], deadline <= now else { continue }
                connection.deadlines[timer] = nil
                connection.tellLine(.timerFired(timer), &turn)
            }
            connection.endLingering(where: { $0.end <= now }, facts, &turn.effects)
            connection.wakeDeadlinePassed(&turn)
        }
    }

    mutating func decide<Random: RandomNumberGenerator>(
        _ now: Duration, _ dialsFrom: Duration, _ facts: some ConnectionFacts, _ random: inout Random,
        _ body: (inout Connection, inout ConnectionTurn) -> Void
    ) -> [ConnectionEffect] {
        var turn = ConnectionTurn(now: now, dialsFrom: dialsFrom, facts: facts, random: random)
        body(&self, &turn)
        needForWhatWasKept(&turn)
        while !turn.launches.isEmpty { launch(turn.launches.removeFirst(), &turn) }
        if let spent = turn.random as? Random { random = spent }
        return turn.effects
    }

    // MARK: - The line

    /// Tells the line, and the others what it makes of that.
    ///
    /// - Parameter isOfProgram: whether it is about a program that was launched, whose end says more than the flow's.
    mutating func tellLine(_ input: ConnectionInput, isOfProgram: Bool = false, _ turn: inout ConnectionTurn) {
        if let objection = line.objection(to: input) { return turn.effects.append(.objection(objection)) }
        var before = line.standing
        // Who is gone reads nothing more of what ends with that.
        if case .abandoned = input { before = nil }
        let actions = line.process(input, now: turn.now, dialsFrom: turn.dialsFrom, using: &turn.random)
        exchanges?.append(Exchange(input: input, actions: actions, status: line.status))
        for action in actions {
            switch action {
            case .closeSocket(let epoch, let reason, let rest):
                end(epoch, of: before?.epoch == epoch ? before?.ownership.reader : nil, reason, rest, &turn)
            case .scheduleTimer(let timer, let deadline): deadlines[timer] = deadline
            case .cancelTimer(let timer): deadlines[timer] = nil
            case .emit(let event):
                turn.effects.append(.tell(event, wake: wakes.standing, report: nil))
                heard(event, isOfProgram: isOfProgram, &turn)
            case .watchInput(_, true):
                // A flow stands again: what the server said before is out of date.
                ownership.dropRefusal(&turn.effects)
                turn.effects.append(.network(action))
            case .observePath, .stopObservingPath, .observeFlowPath, .stopObservingFlowPath, .resolve,
                .cancelResolution, .findDetour, .openSocket, .configureSocket, .keepAlive, .answerMessages, .watchInput,
                .playOpening, .probe, .giveUpAnswers:
                turn.effects.append(.network(action))
            }
        }
    }

    private mutating func end(
        _ epoch: UInt64, of reader: Reader?, _ reason: CloseReason, _ rest: UnreadRest,
        _ turn: inout ConnectionTurn
    ) {
        // Of what left from an address that is gone nothing arrives.
        let isAborting = reason == .localAddressRemoved
        switch rest {
        case .kept where turn.facts.mayHaveUnread(epoch):
            ownership.keep(epoch, &turn.effects)
            turn.keptUnread = (epoch, turn.facts.unreadBytes(on: epoch))
        case .keptAsRefusal where turn.facts.mayHaveUnread(epoch):
            ownership.keep(epoch, isRefusal: true, &turn.effects)
        case .dropped, .kept, .keptAsRefusal: turn.effects.append(.close(epoch: epoch, aborting: isAborting))
        case .delivered:
            ownership.release(
                epoch, of: reader, aborting: isAborting, keepsRest: policy.keepsAbandonedFlow, turn.facts,
                &turn.effects)
        case .lingering:
            ownership.linger(epoch, of: reader ?? .unknown, until: turn.now + Ownership.lingeringTime)
            turn.effects.append(.linger(epoch: epoch))
        }
    }
}

/// One call of a ``Connection``.
struct ConnectionTurn {
    let now: Duration
    let dialsFrom: Duration
    let facts: any ConnectionFacts
    var random: any RandomNumberGenerator
    var effects: [ConnectionEffect] = []
    /// Programs that are to be launched, after all that the line said: it gives out no flow in the middle of a word.
    var launches: [WakeAttempt] = []
    /// Whether a client died that had a flow, and that is still to be told.
    var hasLostClient = false
    /// A flow that ended and that nobody has, and how many bytes were on it.
    var keptUnread: (epoch: UInt64, count: Int)?
}
