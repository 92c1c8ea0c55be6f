// SPDX-License-Identifier: Apache-2.0

import Connection
import DialtoneAPI
import NetworkPath
import Testing

@Suite("Causes") struct CauseTests {
    @Test func `the interface says what each means`() {
        #expect(Set(Cause.allCases.map(\.rawValue)) == Set(ConnectionsAPI.Cause.known.map(\.rawValue)))
    }

    @Test(arguments: [
        (StatusReason.dialFailed(.refused, Endpoint(address: .loopback, port: 1)), Cause.refused),
        (.flowFailed(.tls(.certificate(.wrongName(wanted: "a", found: [])))), .wrongName),
        (.flowFailed(.tls(.certificate(.expired(subject: "a", since: "b")))), .expired),
        (.noPath(.noCarrier, destination: nil), .noCarrier), (.noPath(nil, destination: nil), .noPath),
        (.resolutionFailed(.temporary), .nameServerFailed), (.resolutionFailed(.noSuchName), .nameNotFound),
        (.openingFailed(OpeningFailure(step: 1, cause: .mismatch)), .loginRefused),
        (.openingFailed(OpeningFailure(step: 1, cause: .timedOut)), .loginUnanswered),
        (.unanswered, .keepaliveUnanswered), (.remoteClosed, .closedByRemote),
    ])
    func `a reason has one`(reason: StatusReason, cause: Cause) {
        #expect(reason.cause == cause)
    }
}
