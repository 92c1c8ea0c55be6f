// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc
import Testing

@testable import DialtoneNetlink

struct NeighbourDecodingTests {
    private static let gateway = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: IPAddress(v4: 0xC000_0201))

    @Test(arguments: [
        (NUD_FAILED, true), (NUD_REACHABLE, false), (NUD_STALE, false), (NUD_DELAY, false), (NUD_PROBE, false),
        (NUD_PERMANENT, false), (NUD_NOARP, false),
    ])
    func `only failed is failed`(state: CInt, isFailed: Bool) {
        let expected = KernelEvent.neighbourChanged(Self.gateway, isFailed: isFailed)
        #expect(events(neighbourMessage(Self.gateway.address, state: state)) == [expected])
    }

    @Test func `of an entry that is new nothing is known`() {
        #expect(events(neighbourMessage(Self.gateway.address, state: NUD_NONE)) == [.neighbourForgotten(Self.gateway)])
    }

    /// That it is being asked for says nothing of whether it will answer.
    @Test func `an entry without an answer leaves what is known`() {
        let awaited = neighbourMessage(Self.gateway.address, state: NUD_INCOMPLETE)
        #expect(events(awaited) == [.neighbourAwaited(Self.gateway)])
    }

    /// A table that has grown is swept, and failures go first: no sign of life.
    @Test(arguments: [NUD_FAILED, NUD_REACHABLE, NUD_STALE])
    func `of a deleted entry nothing is known`(state: CInt) {
        let deleted = neighbourMessage(Self.gateway.address, type: RTM_DELNEIGH, state: state)
        #expect(events(deleted) == [.neighbourForgotten(Self.gateway)])
    }

    @Test func `an IPv6 neighbour is told alike`() {
        let address = IPAddress(v6: 0xFE80 << 112 | 1)
        let expected = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: address)
        #expect(
            events(neighbourMessage(address, state: NUD_FAILED)) == [.neighbourChanged(expected, isFailed: true)])
    }

    /// A VXLAN device's forwarding entries come in the same message, with the far tunnel end as their `NDA_DST`.
    @Test func `a forwarding entry is no neighbour`() {
        #expect(events(neighbourMessage(Self.gateway.address, state: NUD_PERMANENT, family: AF_BRIDGE)).isEmpty)
    }

    /// "I answer for it" says nothing of whether it answers.
    @Test func `a proxy entry is no neighbour`() {
        var bytes = neighbourMessage(Self.gateway.address, state: NUD_NONE)
        bytes[26] = UInt8(NTF_PROXY)
        #expect(events(bytes).isEmpty)
    }

    @Test func `without an address there is nothing to say`() {
        #expect(events(message(RTM_NEWNEIGH, ndmsg())).isEmpty)
        #expect(events(message(RTM_NEWNEIGH, ndmsg(), attribute(Int(NDA_DST), [1, 2, 3]))).isEmpty)
    }
}
