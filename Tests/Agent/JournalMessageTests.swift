// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneSystemd
import Testing

@testable import DialtoneAgent

/// The kinds of entries in the journal.
@Suite struct JournalMessageTests {
    private func event(_ kind: ConnectionEvent.Kind, _ state: ConnectionStatus.State = .ready) -> ConnectionEvent {
        ConnectionEvent(
            kind: kind, status: ConnectionStatus(state: state, reason: .opened, attempt: 1, since: .zero),
            previousState: .waiting, previousDuration: .zero, reason: .opened)
    }

    @Test func `each state and each kind of event has one of its own`() {
        let states = ConnectionStatus.State.allCases.map { JournalMessage(event(.stateChanged, $0)) }
        let kinds = ConnectionEvent.Kind.allCases.filter { $0 != .stateChanged }.map { JournalMessage(event($0)) }
        #expect(Set(states + kinds).count == states.count + kinds.count, "\(states) \(kinds)")
    }

    @Test func `the state says the kind, whatever it was before`() {
        #expect(JournalMessage(event(.stateChanged, .failed)) == .failed)
        #expect(JournalMessage(event(.openingFailed, .failed)) == .openingFailed)
    }
}
