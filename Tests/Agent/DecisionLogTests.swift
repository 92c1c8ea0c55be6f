// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import Logging
import Testing

@testable import DialtoneAgent

/// What is logged of a connection.
@Suite struct DecisionLogTests {
    /// The state before and after, the number of the next attempt, and the level.
    @Test(
        arguments: [
            (.connecting, .ready, 1, .notice), (.verifying, .ready, 1, .info), (.ready, .verifying, 1, .info),
            (.waiting, .connecting, 1, .info), (.ready, .connecting, 1, .notice), (.ready, .backingOff, 3, .notice),
            (.connecting, .backingOff, 2, .notice), (.connecting, .backingOff, 3, .info),
            (.ready, .waiting, 1, .notice),
            (.backingOff, .failed, 9, .warning), (.backingOff, .closed, 9, .notice),
        ] as [(ConnectionStatus.State, ConnectionStatus.State, Int, Logger.Level)])
    func `what an operator looks for is told, of failures in a row the first`(
        from previous: ConnectionStatus.State, to state: ConnectionStatus.State, attempt: Int, level: Logger.Level
    ) {
        let status = ConnectionStatus(state: state, reason: .remoteClosed, attempt: attempt, since: .zero)
        let event = ConnectionEvent(
            kind: .stateChanged, status: status, previousState: previous, previousDuration: .zero,
            reason: .remoteClosed)
        #expect(DecisionLog.level(of: event) == level)
    }
}
