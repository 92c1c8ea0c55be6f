// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

// What is known of the world by what the machine is told.

extension Checker {
    /// Takes over what an input says about the world, before its answer is looked at.
    func noteInput(_ input: ConnectionInput, _ now: Duration) {
        switch input {
        case .pathChanged, .flowPathChanged, .localAddressRemoved: noteNetwork(input, now)
        case .resumed:
            (pathNewsAt, networkNewsAt, wokeAt) = (now, now, now)
        case .policyChanged(let policy):
            if Self.isElsewhere(policy, known.policy) {
                (known.path, leftAloneUntil, known.life.hasAnswered) = (nil, nil, false)
                known.left = nil
                (known.refusal, known.reached, known.newest) = (nil, [:], nil)
            }
            let opening = known.opening
            if policy.opening != known.policy.opening { known.left = nil }
            defer { if known.opening != opening { known.refusal = nil } }
            if policy.heartbeat != known.policy.heartbeat { heartbeatChangedAt = now }
            known.policy = policy
        case .serverAsked(let pause):
            leftAloneUntil = now + pause
        case .redialRequested(let pause):
            leftAloneUntil = pause.map { now + $0 }
            known.refusal = nil
        case .timerFired(let timer):
            if timer == .dial, let due = known.timers[timer], due <= now { noteOverdue(now) }
            if timer == .proof, let due = known.timers[timer], due <= now, !known.life.isLost(at: now) {
                // A server that never answered is not dead for not answering.
                known.life.probes = []
            }
            known.timers[timer] = nil
        case .handshakeBegan, .dialSucceeded, .dialFailed: noteAttempt(input, now)
        case .resolved, .resolutionFailed: noteAnswer(input)
        case .detourFound(let remote, let detour): dial?.detours[remote] = detour
        case .probeSent(let epoch) where epoch == known.standing: known.life.sent(now)
        case .answered(let epoch, let count) where epoch == known.standing:
            known.life.answered(count, now)
            noteProof()
        case .answerHidden(let epoch) where epoch == known.standing:
            known.life.probes = []
            answerHiddenAt = now
        case .undelivered(let epoch) where epoch == known.standing && !known.isSilent:
            known.life.undelivered = known.life.undelivered ?? now
            answerHiddenAt = now
        case .acknowledged(let epoch, let begun) where epoch == known.standing:
            known.life.acknowledged(begun, now)
            noteProof()
        case .certificateEnds: break
        case .arrived(let epoch), .taken(let epoch, _), .parked(let epoch, _), .returned(let epoch),
            .abandoned(let epoch, _, _):
            if epoch == known.standing, known.ownership.session != .opening { noteHolder(input, now) }
        case .openingLeft, .openingAnswered, .sessionOpened, .openingFailed: noteOpening(input, now)
        case .flowFailed(_, let failure): noteSilence(failure)
        case .adopted(let adoption): noteAdoption(adoption, now)
        case .opened, .reopened, .remoteClosed, .closeRequested, .answersLeft, .probeSent, .answered, .answerHidden,
            .undelivered, .acknowledged:
            break
        }
    }

    /// The flow that an earlier run of the agent had stands.
    private func noteAdoption(_ adoption: Adoption, _ now: Duration) {
        let options = known.policy.socketOptions(keeping: known.opening)
        let index = World.interfaces.first { $0.name == adoption.interface }?.index
        let request = FlowRequest(
            epoch: adoption.epoch, remote: adoption.remote, source: adoption.local.address, interfaceIndex: index,
            isBoundToInterface: adoption.isBound, options: options)
        let since = adoption.past?.connectedAt ?? now
        known.sockets[adoption.epoch] = Socket(
            request: request, options: options, local: adoption.local, connectedAt: since, settledAt: since,
            isDetour: adoption.isBound, isSealed: known.policy.remote.scheme.needsTLS && adoption.security == nil)
        known.life.begin(known.policy, now)
        known.life.lastProof = adoption.lastProof ?? now
        if adoption.past?.isInDoubt == true { known.life.doubt(now) }
        known.ownership = adoption.ownership
        if case .name = known.policy.remote.host { known.reached[adoption.remote] = since }
        if let socket = known.sockets[adoption.epoch] { noteTaken(socket, now) }
        heartbeatChangedAt = now
        newestEpoch = max(newestEpoch, adoption.epoch)
    }

    private func noteNetwork(_ input: ConnectionInput, _ now: Duration) {
        switch input {
        case .pathChanged(let new):
            if new.isCoherent || Self.mayDial(new) || (!known.hasPath && known.standing == nil) {
                if known.path.map({ Self.isNews(new, after: $0) }) ?? true { pathNewsAt = now }
                if let old = known.path, Self.mayDial(new), Self.isNews(new, after: old) { networkNewsAt = now }
                known.path = new
                settleDetour()
                let isOwn = known.standing != nil && !known.isElsewhere(new)
                noteWay(isOwn ? new : known.flowPath, isLost: isOwn && !Self.mayDial(new), now)
            }
        case .flowPathChanged(let epoch, let new) where epoch == known.standing && known.isWatchedApart:
            guard new.isCoherent || Self.mayDial(new) else { return }
            if let old = known.flowPath, Self.isNews(new, after: old) { (pathNewsAt, networkNewsAt) = (now, now) }
            known.flowPath = new
            noteWay(new, isLost: !Self.mayDial(new), now)
        case .localAddressRemoved(let address):
            known.goneAddresses.insert(address)
            if let standing = known.standing, known.sockets[standing]?.local?.address == address {
                let isNamed = known.way.map { Self.mayDial($0) && $0.source == address } ?? false
                noteLoss(.localAddressRemoved, now)
                if known.isSilent, isNamed { (known.isAskedAnew, known.flowPath) = (true, nil) }
            }
            for path in [\Knowledge.path, \Knowledge.flowPath] where known[keyPath: path]?.source == address {
                known[keyPath: path]?.source = nil
                pathNewsAt = now
            }
        default:
            break
        }
    }

    /// The way of the flow that stands, where there is one, is this one now.
    private func noteWay(_ way: Path?, isLost: Bool, _ now: Duration) {
        if isLost { return noteLoss(.pathLost, now) }
        guard known.isSilent, known.leadsBack(way) else { return }
        known.loss?.isBack = true
        heartbeatChangedAt = now
    }

    /// The flow that stands has lost its way or its address, and may wait for that until its grace is over.
    private func noteLoss(_ closing: CloseReason, _ now: Duration) {
        if known.isSilent {
            if closing == .localAddressRemoved { known.loss?.closing = closing }
            return
        }
        let since = known.loss?.since ?? now
        guard now < since + known.policy.grace, known.play?.epoch != known.standing else { return known.loss = nil }
        if known.refusal?.isOfMove == true { known.refusal = nil }
        known.loss = Loss(since: since, until: since + known.policy.grace, closing: closing)
        known.life.suspend()
    }

    private func noteProof() {
        if known.loss?.isBack == true, known.life.event == nil { known.loss = nil }
    }

    /// What is sent from now on is another thing than before.
    func heartbeatChanged(_ now: Duration) { heartbeatChangedAt = now }

    func noteHolder(_ input: ConnectionInput, _ now: Duration) {
        let isHeld = known.ownership.holder == .client
        switch input {
        case .arrived where !isHeld:
            _ = known.ownership.arrived()
            return
        case .taken(_, let reader) where !isHeld:
            known.ownership = FlowOwnership(
                reader: reader, session: known.ownership.session == .open ? .open : .unknown)
            known.life.probes = []
        case .parked where isHeld:
            known.ownership = .parked
        case .returned where isHeld:
            known.ownership = FlowOwnership(reader: nil, session: known.ownership.session)
        case .abandoned(_, let isUntouched, let isAlone)
        where isHeld && (isUntouched && isAlone || known.policy.keepsAbandonedFlow):
            known.ownership = FlowOwnership(
                reader: nil, session: isUntouched && isAlone ? known.ownership.session : .unknown)
        default:
            return
        }
        if let standing = known.standing, let socket = known.sockets[standing], socket.settledAt == nil {
            known.sockets[standing]?.settledAt = now
            noteTaken(socket, now)
        }
        heartbeatChangedAt = now
    }

    /// Whether what nobody has read on a flow that is closed goes where it has to.
    func checkRest(
        _ rest: UnreadRest, of epoch: UInt64, _ reason: CloseReason, _ input: ConnectionInput, _ before: Knowledge
    ) throws {
        let expected: UnreadRest =
            if epoch != before.standing || reason == .closeRequested {
                .dropped
            } else if case .abandoned(_, let isUntouched, _) = input {
                isUntouched ? .kept : .delivered
            } else if before.ownership.holder == .client {
                reason == .replaced ? .lingering : .delivered
            } else if [.open, .unknown].contains(before.ownership.session) {
                .kept
            } else {
                switch input {
                case .remoteClosed, .flowFailed(_, .reset), .timerFired(.opening): .keptAsRefusal
                default: .dropped
                }
            }
        try require(rest == expected, .restKept, "\(epoch) closed as \(reason): \(rest) and not \(expected)")
    }

    func noteAttempt(_ input: ConnectionInput, _ now: Duration) {
        switch input {
        case .handshakeBegan(let epoch, let local) where known.attempts[epoch] != nil:
            // A handshake has as long as the connect had.
            if known.sockets[epoch]?.local == nil {
                known.sockets[epoch]?.local = local
                known.begun[epoch] = now
            }
        case .dialSucceeded(let epoch, let local, _, _) where known.attempts[epoch] != nil:
            known.sockets[epoch]?.local = local
            if known.sockets[epoch]?.isDetour == true { hasSeenSilence = true }
            noteConnected(epoch, now)
            refusedSince = nil
            if case .name = known.policy.remote.host, let remote = known.sockets[epoch]?.request.remote {
                known.reached[remote] = now
            }
        case .dialFailed(let epoch, let failure) where known.attempts[epoch] != nil:
            note(failure, of: epoch)
            noteSilence(failure)
        default:
            break
        }
    }

    func noteOverdue(_ now: Duration) {
        let allowed = dial?.patience ?? known.policy.connectTimeout
        for (epoch, socket) in known.attempts.sorted(by: { $0.key < $1.key }) {
            let begun = known.begun[epoch] ?? now
            guard begun + allowed <= now else { continue }
            note(socket.local == nil ? .timedOut : .tls(.timedOut), of: epoch)
            hasSeenSilence = true
        }
    }

    func noteAnswer(_ input: ConnectionInput) {
        switch input {
        case .resolved(let query, let answer):
            guard let question = known.queries.removeValue(forKey: query) else { return }
            switch answer {
            case .addresses(let candidates):
                for candidate in candidates { dial?.candidates[candidate.destination] = candidate.source }
                dial?.answers.append(candidates.map(\.destination))
                if candidates.isEmpty { dial?.nameMisses.append(.noAddress) }
            case .services(let records):
                if case .services = question, !records.isEmpty, records.allSatisfy(\.target.isEmpty) {
                    dial?.isServiceRefused = true
                }
            case .pointers: break
            }
        case .resolutionFailed(let query, let failure):
            guard let question = known.queries.removeValue(forKey: query) else { return }
            if case .addresses = question { dial?.nameMisses.append(failure) }
        default:
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
        new.target != old.target || new.remote != old.remote
    }
}
