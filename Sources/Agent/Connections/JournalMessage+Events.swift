// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneSystemd

extension JournalMessage {
    /// The kind of the entry about an event.
    init(_ event: ConnectionEvent) {
        self =
            switch event.kind {
            case .stateChanged: JournalMessage(event.status.state)
            case .opened: .opened
            case .continued: .continued
            case .addressFailed: .addressFailed
            case .attemptBegan: .attemptBegan
            case .moveFailed: .moveFailed
            case .pathChanged: .pathChanged
            case .policyChanged: .reconfigured
            case .taken: .taken
            case .parked: .parked
            case .abandoned: .abandoned
            case .arrived: .arrived
            case .certificateEnds: .certificateEnds
            case .sessionOpened: .sessionOpened
            case .openingFailed: .openingFailed
            // Which of them is in the event's report.
            case .wake: .wakeBegan
            }
    }

    private init(_ state: ConnectionStatus.State) {
        self =
            switch state {
            case .waiting: .waiting
            case .resolving: .resolving
            case .connecting: .connecting
            case .securing: .securing
            case .ready: .ready
            case .verifying: .verifying
            case .backingOff: .backingOff
            case .failed: .failed
            case .closed: .closed
            }
    }

    /// The kind of the entry about a wake.
    init(_ report: WakeReport) {
        self =
            switch report.kind {
            case .began: .wakeBegan
            case .joined: .wakeJoined
            case .attempted: .wakeAttempted
            case .attemptFailed: .wakeAttemptFailed
            case .acknowledged: .wakeAcknowledged
            case .failed: .wakeFailed
            case .programEnded: .programEnded
            case .overran: .wakeOverran
            }
    }
}
