// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// What the network does to a connection: its path comes, goes and moves, and so does the path that a flow goes by
// (``Way``); a local address is lost, and a flow is kept for that (``Grace``).

extension ConnectionStateMachine {
    mutating func pathChanged(to new: Path, _ turn: inout Turn<some RandomNumberGenerator>) {
        let old = path
        if !new.isCoherent, !new.permitsDialling, let old, old.permitsDialling || publicState.hasFlow {
            // The kernel's state is being re-read. What was known stays the verdict until the re-read says otherwise.
            path?.isCoherent = false
            return
        }
        path = new
        let isFresh = old.map { new.promisesMore(than: $0) } ?? true
        if isFresh {
            silence.ended()
            retry.pathMoved(at: turn.now, isAnotherNetwork: old != nil && new.permitsDialling)
        }
        endLogin(ledAwayBy: new, &turn)
        if let flow { return pathChanged(under: flow, from: old, &turn) }
        guard new.permitsDialling else { return pathLost(&turn) }
        switch state {
        case .waiting:
            retry.startOver()
            dial(because: .pathAvailable, &turn)
        case .dialling:
            // What was sent went out by a way that packets no longer take.
            if let old, new.leadsElsewhere(than: old) { redial(because: .pathMoved, closing: .pathMoved, &turn) }
        case .backingOff, .failed:
            if isFresh { redial(because: .pathMoved, closing: .pathMoved, &turn) }
        case .ready, .closed:
            break
        }
    }

    private mutating func pathLost(_ turn: inout Turn<some RandomNumberGenerator>) {
        let lost = StatusReason.noPath(path?.reason, destination: path?.destination)
        guard case .waiting = state else {
            release(.pathLost, &turn)
            if endsWithItsFlow(because: lost, &turn) { return }
            return enter(.waiting, because: lost, &turn)
        }
        guard reason != lost else { return }
        reason = lost
        emit(.pathChanged, because: lost, &turn)
    }

    mutating func localAddressRemoved(_ address: IPAddress, _ turn: inout Turn<some RandomNumberGenerator>) {
        if flow?.move?.uses(address) ?? false { endMove(.localAddressRemoved, &turn) }
        let cause = StatusReason.localAddressRemoved(address)
        let isOfFlow = flow?.ends.local.address == address
        if isOfFlow, let flow, keepForReturn(flow, .localAddressRemoved, because: cause, &turn) { return }
        forgetSource(address, &turn)
        if case .dialling(let dial) = state, dial.uses(address) {
            release(.localAddressRemoved, &turn)
            return self.dial(because: cause, &turn)
        }
        guard isOfFlow, let flow else { return dialBeside(afterAnotherWay: false, &turn) }
        guard let move = flow.move, move.deadline == nil else {
            release(.localAddressRemoved, &turn)
            return dial(because: cause, &turn)
        }
        closeFlow(flow, .localAddressRemoved, &turn)
        _ = promoteMove(of: flow, because: cause, &turn)
    }

    /// The path that still names an address that is gone is out of date, and a newer one is on its way. Until it comes,
    /// the kernel picks the source of a dial: to wait instead would be to wait for ever when the address is put back at
    /// once.
    private mutating func forgetSource(_ address: IPAddress, _ turn: inout Turn<some RandomNumberGenerator>) {
        let isConnections = path?.source == address
        if isConnections { path?.source = nil }
        let isFlows = flow?.way.forget(source: address) ?? false
        guard isConnections || isFlows else { return }
        retry.pathMoved(at: turn.now, isAnotherNetwork: false)
        forgetWaitingMove(&turn)
    }
}

// MARK: - The way of a flow

extension ConnectionStateMachine {
    /// Has the path to the flow's other end watched apart, or no more, as the connection's leads there or not.
    ///
    /// - Parameter known: the path to it, as far as it was known before.
    mutating func chooseWay(
        of flow: inout StandingFlow, after known: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let wasDetour = flow.way.isDetour
        let isNamed = if case .name = policy.remote.host { true } else { false }
        let watch = flow.way.connectionsPath(is: path, of: flow.ends, isNamed: isNamed, after: known)
        // What was to show that the first way works would lead this way now. One whose login is under way goes on.
        if wasDetour, !flow.way.isDetour, !flow.isLoggingInElsewhere { endMove(of: &flow, .pathMoved, &turn) }
        switch watch {
        case .unchanged: break
        case .begins: observeWay(of: flow, &turn)
        case .ends: turn.perform(.stopObservingFlowPath(epoch: flow.epoch))
        }
    }

    private func observeWay(of flow: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        var target = policy.target
        (target.host, target.port) = (.address(flow.ends.remote.address), flow.ends.remote.port)
        if flow.way.isDetour { (target.interface, target.source) = (flow.ends.interface, flow.ends.local.address) }
        turn.perform(.observeFlowPath(epoch: flow.epoch, target))
    }

    /// The connection's path changed under a flow that stands.
    private mutating func pathChanged(
        under standing: StandingFlow, from old: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let path else { return }
        var flow = standing
        let known = flow.way.path(orConnections: old)
        chooseWay(of: &flow, after: known.flatMap { $0.destination == flow.ends.remote.address ? $0 : nil }, &turn)
        state = .ready(flow)
        if flow.isSilent { return pathChanged(whileSilent: flow, from: old, to: path, isDialled: true, &turn) }
        if !flow.way.isApart { return wayChanged(of: flow, from: known, &turn) }
        // It is another flow's way: that of a move.
        if !path.permitsDialling, !flow.isLoggingInElsewhere { endMove(.pathLost, &turn) }
        guard old.map({ path.promisesMore(than: $0) }) ?? true else { return }
        if path.permitsDialling {
            switch (flow.way.isDetour, old) {
            case (true, nil): moveIfBetter(&turn)
            case (true, _): tryFirstWay(&turn)
            case (false, _): pathMoved(under: flow, from: flow.way.path(orConnections: path), &turn)
            }
        }
        emit(.pathChanged, because: .pathMoved, &turn)
    }

    /// The path to a flow's own other end is this one.
    mutating func flowPathChanged(
        of epoch: UInt64, to new: Path, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let told = flow, told.epoch == epoch, told.way.isApart else { return }
        // The kernel's state is being re-read, and what was known stays the verdict.
        if !new.isCoherent, !new.permitsDialling { return }
        let known = told.way.path(orConnections: nil)
        if let known, new.promisesMore(than: known) {
            retry.pathMoved(at: turn.now, isAnotherNetwork: true)
        }
        // The path of a flow over another uplink is not the kernel's choice.
        if !told.way.isDetour { endLogin(ledAwayBy: new, &turn) }
        flow?.way.ownPath(is: new)
        guard let flow else { return }
        if flow.isSilent { return pathChanged(whileSilent: flow, from: known, to: new, isDialled: false, &turn) }
        wayChanged(of: flow, from: known, &turn)
    }

    /// The path that a flow goes by changed.
    private mutating func wayChanged(
        of flow: StandingFlow, from known: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let new = flow.way.path(orConnections: path) else { return }
        guard new.permitsDialling else { return wayLost(of: flow, new, &turn) }
        guard known.map({ new.promisesMore(than: $0) }) ?? true else { return }
        pathMoved(under: flow, from: known, &turn)
        // The first that is heard of is no change.
        guard let known else { return }
        if new.leadsElsewhere(than: known) || new.status != known.status { verify(because: .pathMoved, &turn) }
        if publicState != .verifying || since != turn.now { emit(.pathChanged, because: .pathMoved, &turn) }
    }

    private mutating func wayLost(
        of flow: StandingFlow, _ lost: Path, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let cause = StatusReason.noPath(lost.reason, destination: lost.destination)
        if keepForReturn(flow, .pathLost, because: cause, &turn) { return }
        release(.pathLost, &turn)
        // Another host of the service, or another address of the name, may be reached all the same.
        dial(because: cause, &turn)
    }
}

// MARK: - The grace of a flow

extension ConnectionStateMachine {
    /// Keeps a flow that has lost its local address or its way, and dials another one beside it.
    ///
    /// - Returns: whether it is kept. If not, nothing was done.
    private mutating func keepForReturn(
        _ lost: StandingFlow, _ closing: CloseReason, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        let told = publicState
        var kept = lost
        // An interrupted login starts again at once.
        guard lost.opening == nil, kept.grace.lost(closing, because: cause, for: policy.grace, at: turn.now) else {
            return false
        }
        if !lost.isSilent {
            login.sessionMayBeOver()
            kept.liveness.suspend()
            scheduleProof(of: kept, &turn)
        }
        state = .ready(kept)
        if closing == .localAddressRemoved { addressIsGone(of: kept, &turn) }
        dialBeside(afterAnotherWay: false, &turn)
        if !lost.isSilent, let flow { enter(.ready(flow), from: told, because: cause, &turn) }
        return true
    }

    /// A path that still names an address that was told to be gone is from before that, or the address is back by now.
    /// The way to the flow's own other end is asked for, which says which; nothing is dialled until then.
    private mutating func addressIsGone(of silent: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        let address = silent.ends.local.address
        if let way = silent.way.path(orConnections: path), way.permitsDialling, way.source == address {
            flow?.way.mustBeAsked()
            observeWay(of: silent, &turn)
        }
        forgetSource(address, &turn)
    }

    /// Dials over the connection's path, where there is one, for a flow that is silent.
    ///
    /// - Parameter isElsewhere: whether it leads another way than what is under way was begun for.
    mutating func dialBeside(afterAnotherWay isElsewhere: Bool, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let flow, flow.isSilent else { return }
        // A trial of the first uplink is of no use before the way is known, either.
        if flow.way.isAwaited { return forgetWaitingMove(&turn) }
        let permitsDialling = path?.permitsDialling == true
        if flow.isLoggingInElsewhere || (flow.move?.dial != nil && permitsDialling && !isElsewhere) { return }
        endMove(permitsDialling ? .pathMoved : .pathLost, &turn)
        moveIfBetter(&turn)
    }

    /// A path changed while the flow is silent.
    ///
    /// - Parameter isDialled: whether it is the connection's, over which another flow is dialled; or else the flow's
    ///   own.
    private mutating func pathChanged(
        whileSilent flow: StandingFlow, from old: Path?, to new: Path, isDialled: Bool,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let isNews = old.map { new.promisesMore(than: $0) || $0.permitsDialling != new.permitsDialling } ?? true
        guard isNews else { return }
        if flow.way.path(orConnections: path)?.leadsBack(to: flow.ends) == true {
            return goOnAfterReturn(of: flow, &turn)
        }
        dialBeside(afterAnotherWay: isDialled && old.map { new.leadsElsewhere(than: $0) } ?? true, &turn)
        if !new.permitsDialling { reason = .noPath(new.reason, destination: new.destination) }
        emit(.pathChanged, because: new.permitsDialling ? .pathMoved : reason, &turn)
    }

    /// What a flow lost is back: it shows whether its server is.
    private mutating func goOnAfterReturn(of silent: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        var back = silent
        back.grace.returned()
        // The server has heard of a login that is under way, and may have ended this flow for it.
        if !back.isLoggingInElsewhere { endMove(of: &back, .pathMoved, &turn) }
        back.liveness.verify(at: turn.now)
        state = .ready(back)
        turn.perform(.probe(epoch: back.epoch))
        scheduleProof(of: back, &turn)
        emit(.pathChanged, because: .pathAvailable, &turn)
    }

    /// What a flow lost did not come back in time.
    mutating func returnIsOverdue(_ silent: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let (_, closing, cause) = silent.grace.ending else { return }
        var lost = silent
        // Its timer has rung, and nothing is awaited any more.
        lost.grace.end()
        lost.liveness.withdrawProbes()
        closeFlow(lost, closing, &turn)
        if let move = silent.move, let deadline = move.deadline, move.failures > 0, login.refusal == nil {
            // The dial for the next flow failed, and waits as it would have without the one that is closed.
            return enter(.backingOff(until: deadline), because: cause, &turn)
        }
        if promoteMove(of: silent, because: cause, &turn) { return }
        dial(because: cause, &turn)
    }
}
