// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc
import Testing

@testable import DialtoneNetlink

struct RouteRequestTests {
    private static let remote4 = IPAddress(v4: 0xC633_6407)
    private static let remote6 = IPAddress(v6: 0x2001_0DB8 << 96 | 7)

    @Test func `a bare question has a destination alone`() throws {
        let request = try #require(Question(RouteQuery(Self.remote4)))
        #expect(request.attributes == [UInt16(RTA_DST.rawValue): Self.remote4.bytes])
        #expect(CInt(request.header.rtm_family) == AF_INET)
        #expect(request.header.rtm_dst_len == 32)
        #expect(request.header.rtm_src_len == 0)
        #expect(request.flags == NLM_F_REQUEST, "neither a dump nor an acknowledgement")
    }

    /// kernel.md, 7. IPv6 tells the table by itself, and its strict check refuses the flag.
    @Test(arguments: [(remote4, UInt32(RTM_F_LOOKUP_TABLE)), (remote6, UInt32(0))])
    func `the table is asked for where that is allowed`(destination: IPAddress, flags: UInt32) throws {
        let request = try #require(Question(RouteQuery(destination)))
        #expect(request.header.rtm_flags == flags)
    }

    /// kernel.md, 9.
    @Test func `everything that rules look at is put in`() throws {
        var query = RouteQuery(Self.remote6)
        query.transport = .udp
        query.port = 0x13C4
        query.mark = 0xCAFE
        query.user = 1000
        query.interfaceIndex = 3
        query.source = IPAddress(v6: 0x2001_0DB8 << 96 | 1)
        let request = try #require(Question(query))
        #expect(
            request.attributes == [
                UInt16(RTA_DST.rawValue): Self.remote6.bytes,
                UInt16(RTA_SRC.rawValue): query.source?.bytes ?? [],
                UInt16(RTA_OIF.rawValue): bytes(of: UInt32(3)),
                UInt16(RTA_MARK.rawValue): bytes(of: UInt32(0xCAFE)),
                UInt16(RTA_UID.rawValue): bytes(of: UInt32(1000)),
                UInt16(RTA_IP_PROTO.rawValue): [17],
                UInt16(RTA_DPORT.rawValue): [0x13, 0xC4],
            ])
        #expect(CInt(request.header.rtm_family) == AF_INET6)
        #expect(request.header.rtm_dst_len == 128)
        #expect(request.header.rtm_src_len == 128)
    }

    @Test(arguments: [(Target.TransportProtocol.tcp, UInt8(6)), (.udp, 17)])
    func `transports are their numbers`(transport: Target.TransportProtocol, number: UInt8) throws {
        var query = RouteQuery(Self.remote4)
        query.transport = transport
        let request = try #require(Question(query))
        #expect(request.attributes[UInt16(RTA_IP_PROTO.rawValue)] == [number])
    }

    @Test func `the sequence is set anew and nothing else`() {
        let request = NetlinkRequest(RouteQuery(Self.remote4))
        let before = Self.encoded(request, sequence: 0)
        let after = Self.encoded(request, sequence: 0x0102_0304)
        #expect(decoding(after) { $0.sequence } == [0x0102_0304])
        #expect(after[..<8] == before[..<8])
        #expect(after[12...] == before[12...])
    }

    private static func encoded(_ request: NetlinkRequest, sequence: UInt32) -> [UInt8] {
        var bytes: [UInt8] = []
        request.append(to: &bytes, sequence: sequence)
        return bytes
    }

    /// A request taken apart again.
    private struct Question {
        let header: rtmsg
        let flags: CInt
        let attributes: [UInt16: [UInt8]]

        init?(_ query: RouteQuery) {
            typealias Parts = (rtmsg, CInt, [UInt16: [UInt8]])
            let bytes = RouteRequestTests.encoded(NetlinkRequest(query), sequence: 0)
            let parts = decoding(bytes) { message -> Parts? in
                guard message.type == RTM_GETROUTE, let header = message.payload(rtmsg.self) else { return nil }
                let attributes = message.attributes(after: rtmsg.self).map { (UInt16($0.type), Array($0.bytes)) }
                return (header, CInt(message.header.pointee.nlmsg_flags), Dictionary(attributes) { first, _ in first })
            }
            guard parts.count == 1 else { return nil }
            (header, flags, attributes) = parts[0]
        }
    }
}
