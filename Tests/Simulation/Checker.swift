// SPDX-License-Identifier: Apache-2.0

import NetworkPath

@testable import Supervisor

/// What came about at least once.
struct Coverage: Sendable {
    var states: Set<ConnectionStatus.State> = []
    var closings: Set<CloseReason> = []

    mutating func formUnion(_ other: Coverage) {
        states.formUnion(other.states)
        closings.formUnion(other.closings)
    }
}

/// Follows a machine from outside, by what it is told and what it answers, and knows the rules in its own words.
final class Checker {
    struct Socket {
        let request: FlowRequest
        var local: Endpoint?
        var connectedAt: Duration?
    }

    /// What is known of the connection, to compare after an input with before it.
    struct Knowledge {
        var policy: ConnectionPolicy
        /// The path as a believer of the last coherent word sees it.
        var path: Path?
        var socket: Socket?
        var query: UInt64?
        var timers: [ConnectionTimer: Duration] = [:]

        var hasPath: Bool { path.map(Checker.mayDial) ?? false }
        var isDialling: Bool { query != nil || (socket != nil && socket?.connectedAt == nil) }
    }

    var known: Knowledge
    var pathNewsAt: Duration?
    var answer: [IPAddress] = []
    var newestEpoch: UInt64 = 0
    var newestQuery: UInt64 = 0
    /// Dials and unstable flows that failed since the count last started over.
    var failures = 0
    var refusedSince: Duration?
    /// What the addresses of the dial that runs have failed of.
    var misses: [FlowFailure] = []
    /// The instants of the dials of the last minute.
    var dials: [Duration] = []
    var lastEvent: ConnectionEvent?
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
        noteInput(input, now)
        for action in actions { try apply(action, of: input, before, world, now) }
        try checkHoldings(status, now)
        try checkReaction(to: input, before, actions, status, now)
        if status.state == .closed { isClosed = true }
    }

    /// Takes over what an input says about the world, before its answer is looked at.
    private func noteInput(_ input: ConnectionInput, _ now: Duration) {
        switch input {
        case .pathChanged(let new):
            if new.isCoherent || Self.mayDial(new) || !known.hasPath {
                if known.path.map({ Self.isNews(new, after: $0) }) ?? true { pathNewsAt = now }
                known.path = new
            }
        case .localAddressRemoved(let address) where known.path?.source == address:
            known.path?.source = nil
            pathNewsAt = now
        case .handshakeBegan(let epoch, let local)
        where epoch == known.socket?.request.epoch && known.socket?.connectedAt == nil:
            known.socket?.local = local
        case .dialSucceeded(let epoch, let local, _, _)
        where epoch == known.socket?.request.epoch && known.socket?.connectedAt == nil:
            known.socket?.local = local
            known.socket?.connectedAt = now
            refusedSince = nil
        case .dialFailed(let epoch, let failure) where epoch == known.socket?.request.epoch:
            misses.append(failure)
        case .timerFired(let timer):
            if timer == .connect, known.socket != nil, let due = known.timers[timer], due <= now {
                misses.append(known.socket?.local == nil ? .timedOut : .tls(.timedOut))
            }
            known.timers[timer] = nil
        case .policyChanged(let policy):
            if Self.isElsewhere(policy, known.policy) { known.path = nil }
            known.policy = policy
        case .dialResolved(let query, let addresses) where query == known.query:
            answer = addresses
            known.query = nil
        case .resolutionFailed(let query, _) where query == known.query:
            known.query = nil
        case .opened, .localAddressRemoved, .handshakeBegan, .dialSucceeded, .dialFailed, .dialResolved,
            .resolutionFailed, .remoteClosed, .flowFailed, .redialRequested, .closeRequested:
            break
        }
    }

    /// Whether a path gives a dial that failed a new chance.
    static func isNews(_ new: Path, after old: Path) -> Bool {
        new.status != old.status || new.reason != old.reason || new.interface?.index != old.interface?.index
            || new.gateway != old.gateway || new.source != old.source || (new.supportsDNS && !old.supportsDNS)
    }

    /// Whether a policy wants another flow: other words, another end, or another way there.
    static func isElsewhere(_ new: ConnectionPolicy, _ old: ConnectionPolicy) -> Bool {
        new.target != old.target || new.remote.scheme != old.remote.scheme
    }

    // MARK: - One action

    private func apply(
        _ action: ConnectionAction, of input: ConnectionInput, _ before: Knowledge, _ world: World, _ now: Duration
    ) throws {
        switch action {
        case .observePath, .stopObservingPath, .configureSocket:
            break
        case .resolve(let query, _):
            try require(known.hasPath, .noPacketWithoutPath, "asks for the name over \(String(describing: known.path))")
            try require(known.query == nil, .oneFlow, "query \(query) beside \(String(describing: known.query))")
            try require(query > newestQuery, .numbersIncrease, "query \(query) after \(newestQuery)")
            (known.query, newestQuery, answer, misses) = (query, query, [], [])
            try noteDial(now)
        case .cancelResolution(let query):
            try require(query == known.query, .closesWhatIsOpen, "query \(query) does not run")
            known.query = nil
        case .openSocket(let request):
            try noteOpen(request, world, now)
        case .closeSocket(let epoch, let reason):
            try noteClose(epoch, reason, of: input, before, now)
        case .scheduleTimer(let timer, let deadline):
            try require(deadline >= now, .deadlinesAhead, "\(timer) for \(deadline) at \(now)")
            known.timers[timer] = deadline
        case .cancelTimer(let timer):
            try require(known.timers[timer] != nil, .stateHoldsWhatItNeeds, "\(timer) is cancelled and does not run")
            known.timers[timer] = nil
        case .emit(let event):
            try noteEvent(event, now)
        }
    }

    private func noteOpen(_ request: FlowRequest, _ world: World, _ now: Duration) throws {
        try require(
            known.hasPath, .noPacketWithoutPath, "opens \(request.epoch) over \(String(describing: known.path))")
        try require(known.socket == nil, .oneFlow, "\(request.epoch) beside another")
        try require(request.epoch > newestEpoch, .numbersIncrease, "epoch \(request.epoch) after \(newestEpoch)")
        if case .address(let address) = known.policy.remote.host {
            try require(request.remote.address == address, .dialsTheAnswer, "\(request.remote)")
            misses = []
            try noteDial(now)
        } else {
            try require(request.remote.address == answer.first, .dialsTheAnswer, "\(request.remote) of \(answer)")
            answer.removeFirst()
        }
        if let source = request.source {
            try require(world.isPresent(source), .boundToWhatExists, "opens \(request.epoch) bound to \(source)")
            try require(
                known.path?.destination == request.remote.address, .boundToWhatExists, "bound for another destination")
        }
        newestEpoch = request.epoch
        known.socket = Socket(request: request)
    }

    private func noteDial(_ now: Duration) throws {
        dials.removeAll { now - $0 > .seconds(60) }
        dials.append(now)
        let allowed = DialBudget.burst + Int(.seconds(60) / DialBudget.interval)
        try require(dials.count <= allowed, .attemptsBounded, "\(dials.count) dials in a minute")
    }

    private func noteClose(
        _ epoch: UInt64, _ reason: CloseReason, of input: ConnectionInput, _ before: Knowledge, _ now: Duration
    ) throws {
        guard let socket = known.socket, socket.request.epoch == epoch else {
            throw Violation(invariant: .closesWhatIsOpen, detail: "\(epoch) is not open")
        }
        known.socket = nil
        seen.closings.insert(reason)
        guard let connectedAt = socket.connectedAt else { return }
        let isForCause: Bool =
            switch input {
            case .pathChanged(let new): new.isCoherent && !Self.mayDial(new) && reason == .pathLost
            case .localAddressRemoved(let address): address == socket.local?.address && reason == .localAddressRemoved
            case .remoteClosed(let ended): ended == epoch && reason == .remoteClosed
            case .flowFailed(let ended, _): ended == epoch && reason == .failed
            case .redialRequested: reason == .superseded
            case .policyChanged(let new): Self.isElsewhere(new, before.policy) && reason == .superseded
            case .closeRequested: reason == .closeRequested
            case .opened, .dialResolved, .resolutionFailed, .handshakeBegan, .dialSucceeded, .dialFailed, .timerFired:
                false
            }
        try require(isForCause, .flowEndsForCause, "closed as \(reason) on \(input)")
        if now - connectedAt >= before.policy.stableAfter {
            failures = 0
            refusedSince = nil
        } else if reason == .remoteClosed || reason == .failed {
            failures += 1
        }
    }

    private func noteEvent(_ event: ConnectionEvent, _ now: Duration) throws {
        let says = { (text: String) in "\(text) in \(event)" }
        if let last = lastEvent {
            let since = last.status.since
            try require(event.previousState == last.status.state, .eventsTellTheStatus, says("gap"))
            try require(event.previousDuration == now - since, .eventsTellTheStatus, says("duration"))
            let stays = event.kind != .stateChanged
            try require(event.status.since == (stays ? since : now), .eventsTellTheStatus, says("since"))
            try require(!stays || event.status.state == last.status.state, .eventsTellTheStatus, says("state"))
        } else {
            try require(event.kind == .opened, .eventsTellTheStatus, says("not opened first"))
        }
        seen.states.insert(event.status.state)
        lastEvent = event
    }
}
