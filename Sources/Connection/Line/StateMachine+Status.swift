// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

extension ConnectionStateMachine {
    /// What can be said of the connection now.
    package var status: ConnectionStatus {
        var status = ConnectionStatus(
            state: publicState, reason: reason, epoch: shownEpoch, attempt: retry.failures + 1, since: since,
            path: path)
        status.lastFailure = lastFailure
        status.turnedAt = turnedAt
        switch state {
        case .waiting, .closed:
            break
        case .dialling(let dial):
            guard let attempt = dial.foremost else { break }
            status.epoch = attempt.epoch
            status.localAddress = attempt.local
            status.remoteAddress = attempt.remote
        case .ready(let ready):
            status.epoch = ready.epoch
            if let way = way(of: ready) { status.path = way }
            (status.localAddress, status.remoteAddress) = (ready.local, ready.remote)
            status.interface = ready.interface
            if ready.isDetour { status.avoidedInterface = path?.interface?.name }
            status.boxedSecurity = ready.security
            status.lastProof = ready.liveness.lastProof
            status.ownership = ready.ownership
            status.lacksLogin = lacksLogin(ready)
        case .backingOff(let deadline), .failed(let deadline):
            status.nextAttempt = deadline
        }
        return status
    }

    /// The state without what belongs to it.
    var publicState: ConnectionStatus.State { publicState(of: state) }

    func publicState(of state: State) -> ConnectionStatus.State {
        switch state {
        case .waiting: .waiting
        case .dialling(let dial): dial.foremost.map { $0.local == nil ? .connecting : .securing } ?? .resolving
        case .ready(let ready): ready.isInDoubt ? .verifying : .ready
        case .backingOff: .backingOff
        case .failed: .failed
        case .closed: .closed
        }
    }
}
