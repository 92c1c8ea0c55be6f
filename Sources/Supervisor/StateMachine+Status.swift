// SPDX-License-Identifier: Apache-2.0

extension ConnectionStateMachine {
    /// What can be said of the connection now.
    public var status: ConnectionStatus {
        var status = ConnectionStatus(
            state: publicState, reason: reason, epoch: newestEpoch, attempt: failures + 1, since: since, path: path)
        switch state {
        case .waiting, .resolving, .closed:
            break
        case .connecting(let connecting):
            status.localAddress = connecting.local
            status.remoteAddress = connecting.remote
        case .ready(let ready):
            status.localAddress = ready.local
            status.remoteAddress = ready.remote
            status.interface = ready.interface
            status.security = ready.security
            status.lastProof = ready.connectedAt
        case .backingOff(let deadline), .failed(let deadline):
            status.nextAttempt = deadline
        }
        return status
    }

    /// The state without what belongs to it.
    var publicState: ConnectionStatus.State {
        switch state {
        case .waiting: .waiting
        case .resolving: .resolving
        case .connecting(let connecting): connecting.local == nil ? .connecting : .securing
        case .ready: .ready
        case .backingOff: .backingOff
        case .failed: .failed
        case .closed: .closed
        }
    }
}
