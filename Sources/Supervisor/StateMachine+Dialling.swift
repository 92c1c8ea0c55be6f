// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

// From the decision to dial to a flow that stands, and from its end to the next decision. A probe of the flow goes
// between `ready` and `backingOff`.

extension ConnectionStateMachine {
    /// Begins a dial. The caller has released what the state held.
    mutating func dial(because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let path, path.permitsDialling else {
            let lost = StatusReason.noPath(path?.reason, destination: path?.destination)
            return enter(.waiting, because: lost, &turn)
        }
        guard budget.spend(at: turn.now) else {
            turn.perform(.scheduleTimer(.retry, deadline: budget.earliest))
            return enter(.backingOff(until: budget.earliest), because: .dialledTooOften, &turn)
        }
        switch policy.remote.host {
        case .address(let address):
            connect(AddressWalk([address]), because: reason, &turn)
        case .name(let name):
            newestQuery += 1
            let deadline = turn.now + Self.resolutionTimeout
            turn.perform(.resolve(query: newestQuery, name: name))
            turn.perform(.scheduleTimer(.resolution, deadline: deadline))
            enter(.resolving(Resolving(query: newestQuery, deadline: deadline)), because: reason, &turn)
        }
    }

    mutating func resolved(
        _ query: UInt64, _ addresses: [IPAddress], _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .resolving(let resolving) = state, resolving.query == query else { return }
        turn.perform(.cancelTimer(.resolution))
        guard !addresses.isEmpty else { return attemptFailed(.resolutionFailed(.noAddress), &turn) }
        connect(AddressWalk(addresses), because: reason, &turn)
    }

    mutating func resolutionFailed(
        _ query: UInt64, _ failure: ResolutionFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .resolving(let resolving) = state, resolving.query == query else { return }
        turn.perform(.cancelTimer(.resolution))
        attemptFailed(.resolutionFailed(failure), &turn)
    }

    /// Connects to the first address of a walk that has one.
    private mutating func connect(
        _ walk: AddressWalk, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var walk = walk
        guard let address = walk.next() else { return }
        enter(.connecting(open(address, walk, &turn)), because: reason, &turn)
    }

    private mutating func open(
        _ address: IPAddress, _ walk: AddressWalk, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Connecting {
        newestEpoch += 1
        let remote = Endpoint(address: address, port: policy.remote.port)
        // The verdict holds for the address it was made for; another address may well be reached by another way.
        let source = path?.destination == address ? path?.source : nil
        let deadline = turn.now + policy.connectTimeout
        turn.perform(
            .openSocket(
                FlowRequest(
                    epoch: newestEpoch, remote: remote, source: source, interfaceIndex: path?.interface?.index,
                    options: policy.socketOptions, tls: policy.tlsRequest)))
        turn.perform(.scheduleTimer(.connect, deadline: deadline))
        return Connecting(epoch: newestEpoch, remote: remote, source: source, walk: walk, deadline: deadline)
    }

    /// The handshake has as long as the connect had: a few round trips more, and the server's arithmetic.
    mutating func handshakeBegan(_ epoch: UInt64, _ local: Endpoint, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .connecting(var connecting) = state, connecting.epoch == epoch, connecting.local == nil else {
            return
        }
        connecting.local = local
        connecting.deadline = turn.now + policy.connectTimeout
        turn.perform(.scheduleTimer(.connect, deadline: connecting.deadline))
        enter(.connecting(connecting), because: reason, &turn)
    }

    mutating func dialSucceeded(
        _ epoch: UInt64, _ local: Endpoint, _ remote: Endpoint, _ security: TLSSummary?,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .connecting(let connecting) = state, connecting.epoch == epoch else { return }
        turn.perform(.cancelTimer(.connect))
        refusedSince = nil
        let interface = path?.interface.flatMap { interface in
            interface.addresses.contains { $0.address == local.address } ? interface.name : nil
        }
        let ready = Ready(
            epoch: epoch, local: local, remote: remote, interface: interface, security: security,
            connectedAt: turn.now)
        enter(.ready(ready), because: .connected, &turn)
    }

    mutating func dialFailed(
        _ epoch: UInt64, _ failure: FlowFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .connecting(let connecting) = state, connecting.epoch == epoch else { return }
        turn.perform(.cancelTimer(.connect))
        addressFailed(connecting, failure, closing: .dialFailed, &turn)
    }

    private mutating func addressFailed(
        _ connecting: Connecting, _ failure: FlowFailure, closing: CloseReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        turn.perform(.closeSocket(epoch: connecting.epoch, closing))
        var walk = connecting.walk
        walk.note(failure, of: connecting.remote)
        if let address = walk.next() {
            let cause = StatusReason.dialFailed(failure, connecting.remote)
            let next = State.connecting(open(address, walk, &turn))
            // From `securing` it is a step back, and subscribers see another state.
            if connecting.local != nil { return enter(next, because: cause, &turn) }
            state = next
            return emit(.addressFailed, because: cause, &turn)
        }
        let miss = walk.miss ?? AddressWalk.Miss(failure: failure, remote: connecting.remote)
        attemptFailed(.dialFailed(miss.failure, miss.remote), &turn)
    }

    /// The remote or the line ended a flow.
    mutating func flowEnded(
        _ epoch: UInt64, _ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .ready(let ready) = state, ready.epoch == epoch else { return }
        turn.perform(.closeSocket(epoch: epoch, cause == .remoteClosed ? .remoteClosed : .failed))
        if isStable(ready, at: turn.now) { startOver() } else { failures += 1 }
        // With TLS 1.3 a server judges the client's certificate when the client has long been done.
        if Self.kind(of: cause) == .permanent { return giveUp(because: cause, &turn) }
        backOff(because: cause, &turn)
    }

    mutating func timerFired(_ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>) {
        switch (timer, state) {
        case (.resolution, .resolving(let resolving)):
            guard isDue(resolving.deadline, timer, &turn) else { return }
            turn.perform(.cancelResolution(query: resolving.query))
            attemptFailed(.resolutionFailed(.temporary), &turn)
        case (.connect, .connecting(let connecting)):
            guard isDue(connecting.deadline, timer, &turn) else { return }
            let failure = connecting.local == nil ? FlowFailure.timedOut : .tls(.timedOut)
            addressFailed(connecting, failure, closing: .timedOut, &turn)
        case (.retry, .backingOff(let deadline)), (.retry, .failed(let deadline)):
            guard isDue(deadline, timer, &turn) else { return }
            dial(because: .retryDue, &turn)
        case (.resolution, _), (.connect, _), (.retry, _):
            break
        }
    }

    private func isDue(
        _ deadline: Duration, _ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        if turn.now >= deadline { return true }
        turn.perform(.scheduleTimer(timer, deadline: deadline))
        return false
    }
}

// MARK: - After a failure

extension ConnectionStateMachine {
    /// A dial has failed as a whole. The caller has released what the state held.
    private mutating func attemptFailed(_ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        let kind = Self.kind(of: cause)
        if kind == .local, let pathMovedAt, turn.now - pathMovedAt < Self.settlingTime {
            return retry(.brief, because: cause, &turn)
        }
        failures += 1
        refusedSince = kind == .refused ? refusedSince ?? turn.now : nil
        let isRefusedForGood = refusedSince.map { turn.now - $0 >= Self.persistentRefusal } ?? false
        guard kind == .permanent || isRefusedForGood else { return backOff(because: cause, &turn) }
        giveUp(because: cause, &turn)
    }

    /// Waits for somebody to mend the cause: dials rarely.
    private mutating func giveUp(because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        let deadline = drawDeadline(.slow, &turn)
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        enter(.failed(until: deadline), because: cause, &turn)
    }

    /// Failures by what the next dial makes of them.
    private enum FailureKind {
        /// This machine's network failed; in the first while after a change that passes in seconds.
        case local
        /// The server's host said no. It means it when it keeps saying so.
        case refused
        /// Time does not mend it.
        case permanent
        /// It may pass.
        case transient
    }

    private static func kind(of cause: StatusReason) -> FailureKind {
        switch cause {
        case .resolutionFailed(let failure): failure.isPermanent ? .permanent : .local
        case .dialFailed(.refused, _): .refused
        case .dialFailed(.tls(let failure), _), .flowFailed(.tls(let failure)):
            failure.isPermanent ? .permanent : .transient
        case .dialFailed(let failure, _): failure.isLocal ? .local : .transient
        case .opened, .noPath, .pathAvailable, .pathMoved, .retryDue, .dialledTooOften, .connected, .remoteClosed,
            .flowFailed, .localAddressRemoved, .redialRequested, .policyChanged, .closeRequested:
            .transient
        }
    }

    /// Waits by the connection's own policy, and then dials.
    mutating func backOff(because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        retry(policy.backoff, because: cause, &turn)
    }

    private mutating func retry(
        _ backoff: BackoffPolicy, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let deadline = drawDeadline(backoff, &turn)
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        enter(.backingOff(until: deadline), because: cause, &turn)
    }

    /// When to dial again: what chance draws, but not earlier than the budget allows, or the wait would end in another.
    func drawDeadline(_ backoff: BackoffPolicy, _ turn: inout Turn<some RandomNumberGenerator>) -> Duration {
        max(turn.now + backoff.delay(afterFailures: failures, using: &turn.random), budget.earliest)
    }
}
