// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import Testing

@testable import DialtoneConnection

@Suite struct ClientHandlerTests {
    @Test(arguments: [30, 60, 600, 86_400])
    func `the client is done within its timeout`(seconds: Int) {
        let handler = ClientHandler(timeout: .seconds(seconds))
        #expect(handler.cadence.interval + ClientHandler.budget <= handler.timeout)
        #expect(handler.cadence.interval > .zero)
    }

    @Test func `a timeout that makes no sense is refused with the reason`() {
        let plain = Remote.of("tcp://192.0.2.7:1")
        func problem(_ seconds: Int) -> String? {
            do throws(PolicyError) {
                _ = try ClientHandler(timeout: .seconds(seconds), for: plain)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(problem(600) == nil)
        #expect(problem(29)?.contains("does not sleep") == true)
        #expect(problem(90_000)?.contains("the most") == true)
        #expect(ClientHandler.timeouts(for: .of("sip://192.0.2.7")).lowerBound == .seconds(30))
    }
}
