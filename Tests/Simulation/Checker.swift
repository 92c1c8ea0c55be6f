// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

/// Follows a machine from outside, by what it is told and what it answers, and knows the rules in its own words.
final class Checker {
    struct Socket {
        let request: FlowRequest
        /// What it was last told to be set to.
        var options: SocketOptions
        var local: Endpoint?
        var connectedAt: Duration?
        /// When it was connected, or logged in on where an opening is played, or first taken by a client.
        var settledAt: Duration?
        /// Whether it goes by another uplink than the one that the kernel chooses.
        var isDetour = false
        /// Whether what is on it is inside TLS of its client's own.
        var isSealed = false
    }

    /// What is known of the connection, to compare after an input with before it.
    struct Knowledge {
        var policy: ConnectionPolicy
        /// The path as a believer of the last coherent word sees it.
        var path: Path?
        /// The path to the other end of the flow that stands, while that is watched apart.
        var flowPath: Path?
        var isWatchedApart = false
        /// Whether that is because an address that it names was told to be gone.
        var isAskedAnew = false
        /// The addresses that were told to be gone.
        var goneAddresses: Set<IPAddress> = []
        var sockets: [UInt64: Socket] = [:]
        var queries: [UInt64: NameQuestion] = [:]
        var timers: [ConnectionTimer: Duration] = [:]
        var life = FlowLife()
        /// Who has the flow that stands.
        var ownership = FlowOwnership.new
        /// What the flow that stands has lost, until it has proved itself again.
        var loss: Loss?
        /// A flow that is connected and takes no other's place before its opening has succeeded.
        var next: UInt64?
        var nextLife = FlowLife()
        /// The opening that is played.
        var play: Play?
        /// What a client left in place of the policy's opening.
        var left: Opening?
        /// The messages that are answered for a client that sleeps.
        var answers = Answers()
        /// The login that the server refused.
        var refusal: Refusal?
        /// Where servers of the name were reached, and until when they were there.
        var reached: [Endpoint: Duration] = [:]
        /// The one that last took a login, if there is one to be made, when its flow was connected, and when that was
        /// known.
        var newest: (remote: Endpoint, since: Duration, known: Duration)?
        /// When each attempt began.
        var begun: [UInt64: Duration] = [:]

        var hasPath: Bool { path.map(Checker.mayDial) ?? false }
        /// The flow that stands.
        var standing: UInt64? { sockets.first { $0.value.connectedAt != nil && $0.key != next }?.key }
        var attempts: [UInt64: Socket] { sockets.filter { $0.value.connectedAt == nil } }
        var isDialling: Bool { !queries.isEmpty || !attempts.isEmpty }
        /// What is to be said on a new flow.
        var opening: Opening? { (left ?? policy.opening).flatMap { $0.steps.isEmpty ? nil : $0 } }
        /// Whether a client, or the server, counts on the flow that stands.
        var hasSession: Bool { ownership.session == .open || ownership.session == .unknown }
        /// Whether the path leads from another address than the flow that stands.
        var hasBetterPath: Bool {
            guard policy.redials else { return false }
            if isSilent { return hasPath && !awaitsWay }
            if isDetour { return mayGoBack }
            guard loss != nil || (policy.movesToBetterPath && !ownership.hasArrivals), hasPath, let way,
                way.status == .satisfied,
                let source = way.source,
                let flow = standing.flatMap({ sockets[$0] }), let local = flow.local?.address,
                way.destination == flow.request.remote.address
            else { return false }
            return source != local
        }

        /// Whether what the flow that stands needs is gone.
        var isSilent: Bool { loss.map { !$0.isBack } ?? false }
        /// Whether it is not known yet whether the address is back.
        var awaitsWay: Bool { isWatchedApart && flowPath == nil }
        /// When the flow that stands is given up.
        var proofDeadline: Duration? { isSilent ? loss?.until : life.deadline }
        /// Whether packets of the flow that stands leave by a path from its own address.
        func leadsBack(_ path: Path?) -> Bool {
            guard let path, path.status == .satisfied, let source = path.source else { return false }
            return source == standing.flatMap { sockets[$0]?.local?.address }
        }

        /// The path that the flow that stands goes by.
        var way: Path? { isWatchedApart ? flowPath : path }
        /// Whether the connection's path is not the way of the flow that stands.
        var leadsElsewhere: Bool { path.map { isElsewhere($0) } ?? false }

        /// Whether a path is not that of the flow that stands.
        func isElsewhere(_ path: Path) -> Bool {
            standing.flatMap { sockets[$0] }.map { isElsewhere(path, from: $0) } ?? false
        }

        func isElsewhere(_ path: Path, from flow: Socket) -> Bool {
            if flow.isDetour { return true }
            guard case .name = policy.remote.host else { return false }
            return path.destination != flow.request.remote.address
        }

        /// Whether what is on the flow that stands is inside TLS of its client's own: nobody else can send on it.
        var isSealed: Bool { standing.flatMap { sockets[$0] }?.isSealed ?? false }

        /// What is to be sent on the flow that stands.
        var heartbeat: Heartbeat? {
            isSealed ? nil : policy.heartbeat.flatMap { ownership.permits($0.kind) ? $0 : nil }
        }
    }

    /// The loss of a flow's address or way, for which it is kept.
    struct Loss {
        let since: Duration
        let until: Duration
        var closing: CloseReason
        var isBack = false
    }

    /// A login that was refused.
    struct Refusal {
        let failure: OpeningFailure
        let at: Duration
        /// How long it waits, where the network stays what it is.
        let waits: ClosedRange<Duration>
        /// How often in a row.
        let times: Int
        /// Whether on a flow beside one with a session.
        let isOfMove: Bool
    }

    /// How far an opening is.
    struct Play {
        let epoch: UInt64
        let opening: Opening
        let begunAt: Duration
        var stepBegunAt: Duration
        /// The answers that are still to come.
        var missing: Int

        /// Ten seconds for a step, thirty for all.
        var deadline: Duration { min(stepBegunAt + .seconds(10), begunAt + .seconds(30)) }
    }

    var known: Knowledge
    var dial: Dial?
    var pathNewsAt: Duration?
    /// When the network was last seen to become another one.
    var networkNewsAt: Duration?
    /// Whether anything of this connection ever stayed silent.
    var hasSeenSilence = false
    /// When the machine last woke from suspend.
    var wokeAt: Duration?
    var leftAloneUntil: Duration?
    /// When the end of what has the keys last ended the flow.
    var securingEndedAt: Duration?
    /// When the user's budget gives the connection its turn to dial.
    var dialsFrom = Duration.zero
    var newestEpoch: UInt64 = 0
    var newestQuery: UInt64 = 0
    /// Dials and unstable flows that failed since the count last started over.
    var failures = 0 {
        didSet { if failures == 0 { silentOpenings = 0 } }
    }
    /// The ages at which the server ended the last flows, as long as they are alike.
    var endings: [Duration] = []
    /// Openings in a row that came to nothing without a refusal.
    var silentOpenings = 0
    var refusedSince: Duration?
    /// The instants of the dials of the last minute.
    var dials: [Duration] = []
    /// Whether a dial began in this turn.
    private(set) var beganDialInThisTurn = false
    /// When the answer to a keepalive could last not be told from the client's bytes: the kernel has to be asked then.
    var answerHiddenAt: Duration?
    /// When the figures of the keepalive, or the hands the flow is in, were last changed.
    var heartbeatChangedAt: Duration?
    var lastEvent: ConnectionEvent?
    /// What was told last before this turn.
    var stateBefore: ConnectionStatus?
    var events = 0
    var isClosed = false
    var seen = Coverage()

    init(policy: ConnectionPolicy) {
        known = Knowledge(policy: policy)
    }

    /// Whether the rules allow a dial over a path: all but an unsatisfied one, unless the name alone is missing.
    static func mayDial(_ path: Path) -> Bool {
        path.status != .unsatisfied || (path.reason == .nameUnresolved && path.supportsDNS)
    }

    /// Whether packets go another way than before, as far as both paths know theirs.
    static func takesAnotherWay(_ new: Path, _ old: Path) -> Bool {
        new.status == .satisfied && old.status == .satisfied
            && (new.interface?.index != old.interface?.index || new.gateway != old.gateway
                || (new.source != nil && old.source != nil && new.source != old.source))
    }

    /// Follows one input and its answer.
    func follow(
        _ input: ConnectionInput, answeredWith actions: [ConnectionAction], status: ConnectionStatus,
        world: World, now: Duration
    ) throws {
        if isClosed {
            try require(actions.isEmpty, .closedForGood, "\(input) is answered with \(actions)")
            return
        }
        let before = known
        stateBefore = lastEvent?.status
        let silentBefore = silentOpenings
        beganDialInThisTurn = false
        noteInput(input, now)
        for action in actions { try apply(action, of: input, before, world, now) }
        settleDetour()
        let told = actions.drop { if case .emit = $0 { false } else { true } }
        try require(
            told.allSatisfy { if case .emit = $0 { true } else { false } }, .eventsTellTheStatus,
            "told before it is done: \(actions)")
        try checkHoldings(status, now)
        try checkReaction(to: input, before, actions, status, now)
        try checkOpenings(after: input, before, actions, silentBefore)
        noteAnswers(input, before)
        try checkAnswers()
        if !known.isDialling { dial = nil }
        if status.state == .closed { isClosed = true }
    }

    // MARK: - One action

    /// The path to a flow's other end is watched from now on.
    private func noteWatch(of epoch: UInt64, _ target: Target, _ before: Knowledge) throws {
        // One that took the place of another may go by the kernel's way by now.
        settleDetour()
        let isNews = !known.isWatchedApart || known.isAskedAnew || before.isDetour != known.isDetour
        try require(epoch == known.standing && isNews, .watchesTheWay, "watches \(target)")
        try require((target.interface != nil) == known.isDetour, .watchesTheWay, "bound: \(target)")
        try require(
            target.host == known.sockets[epoch].map { .address($0.request.remote.address) }, .watchesTheWay,
            "watches \(target)")
        known.isWatchedApart = true
        let remote = known.sockets[epoch]?.request.remote.address
        let led =
            !known.isAskedAnew && before.standing == epoch
            && before.path.map { !before.isElsewhere($0) && $0.destination == remote } ?? false
        known.flowPath = led ? before.path : nil
    }

    private func apply(
        _ action: ConnectionAction, of input: ConnectionInput, _ before: Knowledge, _ world: World, _ now: Duration
    ) throws {
        switch action {
        case .observePath, .stopObservingPath, .watchInput:
            break
        case .observeFlowPath(let epoch, let target):
            try noteWatch(of: epoch, target, before)
        case .stopObservingFlowPath:
            try require(known.isWatchedApart, .watchesTheWay, "stops twice")
            (known.isWatchedApart, known.flowPath, known.isAskedAnew) = (false, nil, false)
        case .configureSocket(let epoch, let options):
            try require(known.sockets[epoch] != nil, .closesWhatIsOpen, "\(epoch) is not open")
            known.sockets[epoch]?.options = options
        case .resolve(let query, let question):
            try require(known.hasPath, .noPacketWithoutPath, "asks for the name over \(String(describing: known.path))")
            try require(query > newestQuery, .numbersIncrease, "query \(query) after \(newestQuery)")
            newestQuery = query
            try beginDial(on: input, now)
            known.queries[query] = question
        case .cancelResolution(let query):
            let question = known.queries.removeValue(forKey: query)
            try require(question != nil, .closesWhatIsOpen, "query \(query) does not run")
            if case .addresses? = question { dial?.nameMisses.append(.temporary) }
        case .findDetour(let remote, let interface):
            try checkSearch(for: remote, around: interface, now)
        case .openSocket(let request):
            try beginDial(on: input, now)
            try noteOpen(request, world, now)
        case .closeSocket(let epoch, let reason, let rest):
            try checkRest(rest, of: epoch, reason, input, before)
            try noteClose(epoch, reason, of: input, before, now)
        case .keepAlive(let epoch, let heartbeat):
            try require(known.sockets[epoch]?.connectedAt != nil, .closesWhatIsOpen, "keeps \(epoch) alive")
            let isOpening = epoch == known.next || epoch == known.play?.epoch
            try require(!isOpening || heartbeat == nil, .sessionsTrue, "keeps \(epoch) alive in its opening")
            try require(heartbeat == known.heartbeat, .proofsKept, "\(String(describing: heartbeat))")
            guard case .policyChanged = input else { break }
            known.life.adopt((known.policy.heartbeat?.kind ?? .kernel).figures)
        case .answerMessages(let epoch, let answers):
            try require(known.sockets[epoch]?.connectedAt != nil, .closesWhatIsOpen, "answers on \(epoch)")
            known.answers.told[epoch] = answers
        case .playOpening(let epoch, let opening):
            try require(epoch == known.play?.epoch && opening == known.opening, .sessionsTrue, "opens \(epoch)")
            // Another dial may have been under way when it was refused.
            try checkRefusal(now)
        case .giveUpAnswers(let epoch):
            try require(epoch == known.standing && known.life.probes.isEmpty, .proofsKept, "gives up on \(epoch)")
        case .probe(let epoch):
            try require(epoch == known.standing, .closesWhatIsOpen, "probes \(epoch)")
            known.life.doubt(now)
        case .scheduleTimer(let timer, let deadline):
            try require(deadline >= now, .deadlinesAhead, "\(timer) at \(deadline)")
            known.timers[timer] = deadline
        case .cancelTimer(let timer):
            try require(known.timers[timer] != nil, .stateHoldsWhatItNeeds, "\(timer) is cancelled and does not run")
            known.timers[timer] = nil
        case .emit(let event):
            try noteEvent(event, now)
        }
    }

    /// Whether an input lets a dial that runs go on, where any other that leads to packets begins a new one.
    private static func continuesDial(_ input: ConnectionInput) -> Bool {
        switch input {
        case .resolved, .resolutionFailed, .dialFailed, .handshakeBegan, .detourFound, .timerFired(.dial): true
        default: false
        }
    }

    private func beginDial(on input: ConnectionInput, _ now: Duration) throws {
        // What was to show that a way works may go on as the dial for the next flow.
        if beganDialInThisTurn || Self.continuesDial(input) || (dial != nil && known.isDialling) { return }
        beganDialInThisTurn = true
        dial = Dial(begunAt: now, patience: known.policy.connectTimeout, mayDetour: known.policy.mayDetour)
        dials.removeAll { now - $0 > .seconds(60) }
        dials.append(now)
        let allowed = DialBudget.burst + Int(.seconds(60) / DialBudget.interval)
        try require(dials.count <= allowed, .attemptsBounded, "\(dials.count) dials in a minute")
        try require(now >= dialsFrom, .turnAwaited, "dials before \(dialsFrom)")
        try require(now >= leftAloneUntil ?? now, .serverHeeded, "dials before \(leftAloneUntil ?? now)")
        if known.refusal?.isOfMove == true, known.standing == nil { known.refusal = nil }
        try checkRefusal(now)
        if case .address(let address) = known.policy.remote.host {
            dial?.candidates[address] = .some(known.path?.destination == address ? known.path?.source : nil)
        }
    }

    private func noteOpen(_ request: FlowRequest, _ world: World, _ now: Duration) throws {
        let epoch = request.epoch
        try require(known.hasPath, .noPacketWithoutPath, "opens \(epoch) over \(String(describing: known.path))")
        try require(epoch > newestEpoch, .numbersIncrease, "epoch \(epoch) after \(newestEpoch)")
        guard var dial else { throw Violation(invariant: .dialsTheAnswer, detail: "\(request.remote) in no dial") }
        let isDetour = try isDetour(request)
        let source = isDetour ? request.source : dial.candidates[request.remote.address] ?? request.source
        if isDetour { dial = self.dial ?? dial } else { try noteAddress(of: request, in: &dial, now) }
        // Side by side with others only after a while, and while one is being secured only where that is silent.
        let others = known.attempts
        let isForHandshake = isDetour && dial.lateSearches.contains(request.remote)
        // An address that no name server has confirmed holds up none that one has.
        let isNamed = if case .name = known.policy.remote.host { true } else { false }
        let isAlone =
            isForHandshake
            || others.values.allSatisfy { other in
                other.local == nil || (isNamed && dial.candidates[other.request.remote.address] == nil)
            }
        try require(isAlone, .racesInTurn, "\(epoch) beside a handshake")
        if !others.isEmpty, let last = dial.lastStart {
            try require(now - last >= Race.attemptDelay, .racesInTurn, "\(epoch) \(now - last) after another")
        }
        dial.lastStart = now
        self.dial = dial
        if let bound = request.source {
            let isGone = known.goneAddresses.contains(bound) && !world.isPresent(bound)
            try require(!isGone, .boundToWhatExists, "opens \(epoch) bound to \(bound)")
            try require(bound == source, .boundToWhatExists, "\(bound) is for another destination")
        }
        newestEpoch = epoch
        known.sockets[epoch] = Socket(request: request, options: request.options, isDetour: isDetour)
        known.begun[epoch] = now
    }

    /// Whether an address of a dial is tried in its turn.
    private func noteAddress(of request: FlowRequest, in dial: inout Dial, _ now: Duration) throws {
        if dial.candidates[request.remote.address] == nil { try checkUnanswered(request.remote, dial, now) }
        try require(dial.tried.insert(request.remote).inserted, .dialsTheAnswer, "\(request.remote) twice")
        for answer in dial.answers {
            let better = answer.prefix { $0 != request.remote.address }
            guard better.count < answer.count else { continue }
            try require(
                better.allSatisfy { dial.tried.map(\.address).contains($0) }, .dialsTheAnswer,
                "\(request.remote) before \(better)")
        }
        try require(dial.tried.count <= Race.limit, .attemptsBounded, "\(dial.tried.count) addresses")
    }

    private func noteClose(
        _ epoch: UInt64, _ reason: CloseReason, of input: ConnectionInput, _ before: Knowledge, _ now: Duration
    ) throws {
        guard let socket = known.sockets.removeValue(forKey: epoch) else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is not open")
        }
        known.begun[epoch] = nil
        seen.closings.insert(reason)
        if reason == .dialFailed || reason == .timedOut { dial?.lastStart = nil }
        if reason == .unanswered { hasSeenSilence = true }
        guard socket.connectedAt != nil else { return }
        if case .policyChanged(let new) = input, Self.isElsewhere(new, before.policy) {
            // It was another server's.
        } else {
            if known.reached[socket.request.remote] != nil { known.reached[socket.request.remote] = now }
            if socket.settledAt != nil { noteTaken(socket, now) }
        }
        let isSpared = known.isSilent
        let wasOpening = known.play?.epoch == epoch
        if wasOpening { known.play = nil }
        if epoch == before.next, epoch == known.next {
            known.next = nil
            return try checkEndOfNext(epoch, reason, of: input, before, now)
        }
        let hasNext = known.next != nil
        if hasNext {
            promoteNext()
        } else if case .dialSucceeded = input {
            // That of the flow that took its place has begun.
        } else {
            known.life.end()
            known.loss = nil
        }
        let isForCause = isCause(input, reason, of: epoch, socket, before, isSpared: isSpared, now)
        try require(isForCause, .flowEndsForCause, "closed as \(reason) on \(input)")
        let age = socket.settledAt.map { now - $0 }
        if let age { noteEnding(at: age, of: input) }
        if let age, age >= before.policy.stableAfter, before.ownership.session != .none || !isShortLived(at: age) {
            failures = 0
            (refusedSince, known.refusal) = (nil, nil)
        } else if case .flowFailed(_, let failure) = input, isSettling(failure, now) {
            // The network's, and not the server's.
        } else if [.remoteClosed, .failed].contains(reason) {
            // A server that has one session for each client ends one for the next.
            if !hasNext { failures += 1 }
        } else if reason == .unanswered || reason == .timedOut {
            failures += 1
        }
        if wasOpening, [.remoteClosed, .failed, .timedOut].contains(reason) { silentOpenings += 1 }
    }

    /// Whether an input has a flow closed for that reason.
    private func isCause(
        _ input: ConnectionInput, _ reason: CloseReason, of epoch: UInt64, _ socket: Socket, _ before: Knowledge,
        isSpared: Bool, _ now: Duration
    ) -> Bool {
        let replacing = before.isSilent ? before.loss?.closing : .replaced
        return switch input {
        case .pathChanged(let new):
            new.isCoherent && !Self.mayDial(new) && reason == .pathLost && !before.isElsewhere(new, from: socket)
                && !isSpared
        case .flowPathChanged(let ended, let new):
            ended == epoch && before.isWatchedApart && new.isCoherent && !Self.mayDial(new) && reason == .pathLost
                && !isSpared
        case .localAddressRemoved(let address):
            address == socket.local?.address && reason == .localAddressRemoved && !isSpared
        case .remoteClosed(let ended): ended == epoch && reason == .remoteClosed
        case .flowFailed(let ended, _): ended == epoch && reason == .failed
        case .redialRequested: reason == .superseded
        case .policyChanged(let new):
            (Self.isElsewhere(new, before.policy) || isRefusedLoginChanged(before)) && reason == .superseded
        case .openingLeft: isRefusedLoginChanged(before) && reason == .superseded
        case .closeRequested: reason == .closeRequested
        case .dialSucceeded(let other, _, _, _):
            // A move that was begun is not given up because the way is unknown for a moment.
            other != epoch && reason == replacing && (before.opening == nil || !before.hasSession)
                && (before.isSilent || before.hasBetterPath || before.way?.status != .satisfied)
        case .sessionOpened(let other): other == before.next && reason == replacing
        case .timerFired(.opening): reason == .timedOut && before.play.map { $0.deadline <= now } ?? false
        case .timerFired(.proof):
            before.isSilent
                ? reason == before.loss?.closing && before.loss.map { $0.until <= now } ?? false
                : reason == .unanswered && before.life.isLost(at: now)
        case .abandoned(let ended, let isUntouched, let isAlone):
            ended == epoch && reason == .abandoned && before.ownership.holder == .client
                && !(isUntouched && isAlone) && !before.policy.keepsAbandonedFlow
        case .opened, .adopted, .reopened, .resolved, .resolutionFailed, .detourFound, .handshakeBegan, .dialFailed,
            .certificateEnds, .timerFired, .probeSent, .answered, .answerHidden, .undelivered, .acknowledged, .arrived,
            .taken, .parked, .returned, .resumed, .serverAsked, .openingAnswered, .openingFailed, .answersLeft:
            false
        }
    }
}
