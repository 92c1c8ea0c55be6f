// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

@testable import DialtoneAgent

/// Causes.
@Suite struct CauseTests {
    @Test func `the interface says what each means`() {
        #expect(Set(Cause.allCases.map(\.rawValue)) == Set(ConnectionsAPI.Cause.known.map(\.rawValue)))
    }

    @Test func `the interface says why and by what a client is woken`() {
        #expect(Set(WakeReason.allCases.map(\.rawValue)) == Set(ConnectionsAPI.WakeReason.known.map(\.rawValue)))
        #expect(Set(WakeMeans.allCases.map(\.rawValue)) == Set(ConnectionsAPI.WakeMeans.known.map(\.rawValue)))
    }

    @Test func `the interface says what kinds of events there are`() {
        var told: Set<String> = []
        for kind in ConnectionEvent.Kind.allCases {
            for state in ConnectionStatus.State.allCases {
                let status = ConnectionStatus(state: state, reason: .opened, since: .zero)
                let event = ConnectionEvent(
                    kind: kind, status: status, previousState: .waiting, previousDuration: .zero, reason: .opened)
                told.insert(event.wireKind.rawValue)
            }
        }
        #expect(told == Set(ConnectionsAPI.EventKind.known.map(\.rawValue)))
    }

    @Test(arguments: [
        (StatusReason.dialFailed(.refused, Endpoint(address: .loopback, port: 1)), Cause.refused),
        (.flowFailed(.tls(.certificate(.wrongName(wanted: "a", found: [])))), .wrongName),
        (.flowFailed(.tls(.certificate(.expired(subject: "a", since: "b")))), .expired),
        (.noPath(.noCarrier, destination: nil), .noCarrier), (.noPath(nil, destination: nil), .noPath),
        (.resolutionFailed(.temporary), .nameServerFailed), (.resolutionFailed(.noSuchName), .nameNotFound),
        (.resolutionFailed(.noAddress), .nameNotFound), (.resolutionFailed(.heldBack), .heldBack),
        (.noPath(.nameUnresolved, destination: nil), .nameServerFailed),
        (.openingFailed(OpeningFailure(step: 1, cause: .mismatch)), .loginRefused),
        (.openingFailed(OpeningFailure(step: 1, cause: .timedOut)), .loginUnanswered),
        (.unanswered, .keepaliveUnanswered), (.remoteClosed, .closedByRemote),
    ])
    func `a reason has one`(reason: StatusReason, cause: Cause) {
        #expect(reason.cause == cause)
    }
}
