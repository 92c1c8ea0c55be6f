// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// What the network does to a connection: the path's coming, going and moving, and the loss of a local address.

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
        if case .ready(let ready) = state { return pathChanged(under: ready, from: old, &turn) }
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
        if case .ready(let ready) = state, ready.move?.uses(address) ?? false { endMove(.localAddressRemoved, &turn) }
        let cause = StatusReason.localAddressRemoved(address)
        if case .ready(let ready) = state, ready.local.address == address,
            keepForReturn(ready, .localAddressRemoved, because: cause, &turn)
        {
            return
        }
        forgetSource(address, &turn)
        let isBoundToIt =
            switch state {
            case .dialling(let dial): dial.uses(address)
            case .ready(let ready): ready.local.address == address
            case .waiting, .backingOff, .failed, .closed: false
            }
        guard isBoundToIt else { return dialBeside(afterAnotherWay: false, &turn) }
        if case .ready(let ready) = state, ready.move?.isUnderWay ?? false {
            closeFlow(ready, .localAddressRemoved, &turn)
            _ = promoteMove(of: ready, because: cause, &turn)
            return
        }
        release(.localAddressRemoved, &turn)
        dial(because: cause, &turn)
    }

    /// The path that still names an address that is gone is out of date, and a newer one is on its way. Until it comes,
    /// the kernel picks the source of a dial: to wait instead would be to wait for ever when the address is put back at
    /// once.
    mutating func forgetSource(_ address: IPAddress, _ turn: inout Turn<some RandomNumberGenerator>) {
        if path?.source == address {
            path?.source = nil
            retry.pathMoved(at: turn.now, isAnotherNetwork: false)
            forgetWaitingMove(&turn)
        }
        if case .ready(var ready) = state, case .own(var way?) = ready.way, way.source == address {
            way.source = nil
            ready.way = .own(way)
            state = .ready(ready)
            retry.pathMoved(at: turn.now, isAnotherNetwork: false)
            forgetWaitingMove(&turn)
        }
    }
}

extension ConnectionStateMachine.Move {
    fileprivate var isUnderWay: Bool {
        switch self {
        case .dialling, .opening: true
        case .waiting: false
        }
    }

    fileprivate func uses(_ address: IPAddress) -> Bool {
        switch self {
        case .dialling(let dial, _): dial.uses(address)
        case .opening(let next, _): next.local.address == address
        case .waiting: false
        }
    }
}

extension Path {
    /// Whether a dial may be made over it.
    ///
    /// An unknown path may well be there, and a dial is what brings up one on demand. A name without an address is the
    /// dial's own business, which asks for it anew, as long as a name server can be asked.
    var permitsDialling: Bool {
        switch status {
        case .satisfied, .requiresConnection, .unknown: true
        case .unsatisfied: reason == .nameUnresolved && supportsDNS
        }
    }

    /// Whether packets take another way than by an earlier path. Only what both paths know can differ: a verdict or a
    /// source that was not to be had before is news, not a move.
    func leadsElsewhere(than earlier: Path) -> Bool {
        guard status == .satisfied, earlier.status == .satisfied else { return false }
        if let source, let earlierSource = earlier.source, source != earlierSource { return true }
        return interface?.index != earlier.interface?.index || gateway != earlier.gateway
    }

    /// Whether a dial that failed before has a new chance.
    func promisesMore(than earlier: Path) -> Bool {
        status != earlier.status || reason != earlier.reason || interface?.index != earlier.interface?.index
            || gateway != earlier.gateway || source != earlier.source || (supportsDNS && !earlier.supportsDNS)
    }
}
