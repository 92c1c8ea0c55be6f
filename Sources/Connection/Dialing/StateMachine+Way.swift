// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// The path that a flow goes by: the one to its own other end. Mostly it is the connection's; where a name has several
// addresses, or its services' hosts are elsewhere, it is another, and watched beside it for as long as the flow stands.

extension ConnectionStateMachine {
    /// The path that a flow goes by, as far as it is known.
    func way(of ready: Ready) -> Path? {
        switch ready.way {
        case .connections: path
        case .own(let path): path
        }
    }

    /// Whether the connection's path leads to the flow's other end. One that was not heard of yet will say.
    private func connectionsPathLeads(to remote: Endpoint) -> Bool {
        guard case .name = policy.remote.host, let path else { return true }
        return path.destination == remote.address
    }

    /// Has the path to the flow's other end watched apart, or no more, as the connection's leads there or not.
    ///
    /// - Parameter known: the path to it, as far as it was known before.
    mutating func chooseWay(
        of ready: inout Ready, after known: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let wasDetour = ready.isDetour
        settleDetour(of: &ready, &turn)
        switch (ready.way, !ready.isDetour && connectionsPathLeads(to: ready.remote)) {
        case (.own, false) where ready.isDetour != wasDetour:
            // For another target now: bound to the interface, or not.
            turn.perform(.observeFlowPath(epoch: ready.epoch, wayTarget(of: ready)))
        case (.connections, true), (.own, false):
            break
        case (.connections, false):
            ready.way = .own(known)
            turn.perform(.observeFlowPath(epoch: ready.epoch, wayTarget(of: ready)))
        case (.own, true):
            stopObservingWay(of: ready, &turn)
            ready.way = .connections
        }
    }

    /// A flow over another uplink is one like any other while the kernel chooses that for it.
    private mutating func settleDetour(of ready: inout Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard ready.isBound, let path, path.status == .satisfied, path.source != nil else { return }
        let isDetour = !(path.leadsBack(to: ready) && path.interface?.name == ready.interface)
        guard isDetour != ready.isDetour else { return }
        ready.isDetour = isDetour
        guard !isDetour else { return }
        // What was to show that the first way works would lead this way now. One whose login is under way goes on.
        if !ready.isLoggingInElsewhere { endMove(of: &ready, .pathMoved, &turn) }
    }

    /// What the path to a flow's other end is asked for.
    func wayTarget(of ready: Ready) -> Target {
        var target = policy.target
        (target.host, target.port) = (.address(ready.remote.address), ready.remote.port)
        if ready.isDetour { (target.interface, target.source) = (ready.interface, ready.local.address) }
        return target
    }

    /// Has the path to a flow's other end watched no more, if it is watched apart.
    func stopObservingWay(of ready: Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .own = ready.way else { return }
        turn.perform(.stopObservingFlowPath(epoch: ready.epoch))
    }

    /// The connection's path changed under a flow that stands.
    mutating func pathChanged(
        under ready: Ready, from old: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let path else { return }
        var ready = ready
        let known = ready.way.isConnections ? old : way(of: ready)
        chooseWay(of: &ready, after: known.flatMap { $0.destination == ready.remote.address ? $0 : nil }, &turn)
        state = .ready(ready)
        if ready.isSilent { return pathChanged(whileSilent: ready, from: old, to: path, isDialled: true, &turn) }
        if ready.way.isConnections { return wayChanged(of: ready, from: known, &turn) }
        // It is another flow's way: that of a move.
        if !path.permitsDialling, !ready.isLoggingInElsewhere { endMove(.pathLost, &turn) }
        guard old.map({ path.promisesMore(than: $0) }) ?? true else { return }
        if path.permitsDialling {
            switch (ready.isDetour, old) {
            case (true, nil): moveIfBetter(&turn)
            case (true, _): tryFirstWay(&turn)
            case (false, _): pathMoved(under: ready, from: way(of: ready), &turn)
            }
        }
        emit(.pathChanged, because: .pathMoved, &turn)
    }

    /// The path to a flow's own other end is this one.
    mutating func flowPathChanged(
        of epoch: UInt64, to new: Path, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .ready(let told) = state, told.epoch == epoch, case .own(let known) = told.way else { return }
        // The kernel's state is being re-read, and what was known stays the verdict.
        if !new.isCoherent, !new.permitsDialling { return }
        if let known, new.promisesMore(than: known) {
            retry.pathMoved(at: turn.now, isAnotherNetwork: true)
        }
        // That of a flow over another uplink is not the kernel's choice.
        if !told.isDetour { endLogin(ledAwayBy: new, &turn) }
        guard case .ready(var ready) = state else { return }
        ready.way = .own(new)
        state = .ready(ready)
        if ready.isSilent { return pathChanged(whileSilent: ready, from: known, to: new, isDialled: false, &turn) }
        wayChanged(of: ready, from: known, &turn)
    }

    /// The path that a flow goes by changed.
    private mutating func wayChanged(
        of ready: Ready, from known: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let new = way(of: ready) else { return }
        guard new.permitsDialling else { return wayLost(of: ready, new, &turn) }
        guard known.map({ new.promisesMore(than: $0) }) ?? true else { return }
        pathMoved(under: ready, from: known, &turn)
        // The first that is heard of is no change.
        guard let known else { return }
        if new.leadsElsewhere(than: known) || new.status != known.status { verify(because: .pathMoved, &turn) }
        if publicState != .verifying || since != turn.now { emit(.pathChanged, because: .pathMoved, &turn) }
    }

    private mutating func wayLost(
        of ready: Ready, _ lost: Path, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let cause = StatusReason.noPath(lost.reason, destination: lost.destination)
        if keepForReturn(ready, .pathLost, because: cause, &turn) { return }
        release(.pathLost, &turn)
        // Another host of the service, or another address of the name, may be reached all the same.
        dial(because: cause, &turn)
    }
}

extension ConnectionStateMachine.Ready {
    /// Whether the flow that is to take its place is connected already, and needs the name no more either.
    var isLoggingInElsewhere: Bool {
        if case .opening? = move { true } else { false }
    }
}

extension ConnectionStateMachine.Way {
    fileprivate var isConnections: Bool {
        if case .connections = self { true } else { false }
    }
}
