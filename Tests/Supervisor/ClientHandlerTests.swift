// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite struct ClientHandlerTests {
    @Test(arguments: [30, 60, 600, 86_400])
    func theClientIsDoneWithinItsTimeout(seconds: Int) {
        let handler = ClientHandler(timeout: .seconds(seconds))
        #expect(handler.cadence.interval + ClientHandler.budget <= handler.timeout)
        #expect(handler.cadence.interval > .zero)
    }

    @Test func aTimeoutThatMakesNoSenseIsRefusedWithTheReason() {
        let plain = Remote.of("tcp://192.0.2.7:1")
        #expect(ClientHandler.problem(with: .seconds(600), for: plain) == nil)
        #expect(ClientHandler.problem(with: .seconds(29), for: plain)?.contains("does not sleep") == true)
        #expect(ClientHandler.problem(with: .seconds(90_000), for: plain)?.contains("the most") == true)
        #expect(ClientHandler.timeouts(for: .of("sip://192.0.2.7")).lowerBound == .seconds(30))
    }
}
