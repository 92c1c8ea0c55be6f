// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnectionIO

/// How the packets of a flow are marked, as the other end sees them.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct FlowMarkingTests {
    @Test(arguments: [IPAddress.loopback, .loopbackV6], [TrafficClass.signaling, .unmarked])
    func `the first packet carries the class already`(address: IPAddress, trafficClass: TrafficClass) async throws {
        guard address.family == .v4 || FileSystem.hasIPv6 else { return print("skipped: this kernel has no IPv6") }
        let server = try LoopbackServer(address, savesSYN: true)
        var options = SocketOptions.usual
        options.trafficClass = trafficClass
        let flow = try Flow(.to(server.endpoint, options: options), owner: Listener())
        let headers = try server.accept().savedSYN()
        // RFC 791, section 3.1; RFC 8200, section 3.
        let byte = address.family == .v4 ? headers[1] : headers[0] << 4 | headers[1] >> 4
        #expect(byte == trafficClass.byte)
        flow.close(aborting: false)
    }

    @Test(arguments: [IPAddress.loopback, .loopbackV6])
    func `class and priority can be changed while the flow stands`(address: IPAddress) async throws {
        guard address.family == .v4 || FileSystem.hasIPv6 else { return print("skipped: this kernel has no IPv6") }
        let server = try LoopbackServer(address)
        let flow = try Flow(.to(server.endpoint), owner: Listener())
        let (level, name) =
            address.family == .v4 ? (CInt(IPPROTO_IP), IP_TOS) : (CInt(IPPROTO_IPV6), IPV6_TCLASS)
        #expect(option(flow.number, level, name) == 0xA0)
        #expect(option(flow.number, SOL_SOCKET, SO_PRIORITY) == 6)
        var options = SocketOptions.usual
        (options.trafficClass, options.priority) = (.unmarked, 2)
        try flow.configure(options)
        #expect(option(flow.number, level, name) == 0)
        #expect(option(flow.number, SOL_SOCKET, SO_PRIORITY) == 2)
        flow.close(aborting: false)
    }
}
