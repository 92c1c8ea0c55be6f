// SPDX-License-Identifier: Apache-2.0

import CNetlink
import Glibc
import NetworkPath
import Testing

@testable import Netlink

struct NeighbourDecodingTests {
    private static let gateway = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: IPAddress(v4: 0xC000_0201))

    @Test(arguments: [
        (NUD_FAILED, true), (NUD_REACHABLE, false), (NUD_STALE, false), (NUD_INCOMPLETE, false), (NUD_PERMANENT, false),
        (NUD_NONE, false),
    ])
    func onlyFailedIsFailed(state: CInt, isFailed: Bool) {
        let expected = KernelEvent.neighbourChanged(Self.gateway, isFailed: isFailed)
        #expect(events(neighbourMessage(Self.gateway.address, state: state)) == [expected])
    }

    /// A deleted entry is one that nothing is known of, and the next packet asks for it anew.
    @Test func aDeletedEntryIsNotFailedAnyMore() {
        let deleted = neighbourMessage(Self.gateway.address, type: RTM_DELNEIGH, state: NUD_FAILED)
        #expect(events(deleted) == [.neighbourChanged(Self.gateway, isFailed: false)])
    }

    @Test func anIPv6NeighbourIsToldAlike() {
        let address = IPAddress(v6: 0xFE80 << 112 | 1)
        let expected = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: address)
        #expect(
            events(neighbourMessage(address, state: NUD_FAILED)) == [.neighbourChanged(expected, isFailed: true)])
    }

    /// A VXLAN device's forwarding entries come in the same message, with the far tunnel end as their `NDA_DST`.
    @Test func aForwardingEntryIsNoNeighbour() {
        #expect(events(neighbourMessage(Self.gateway.address, state: NUD_PERMANENT, family: AF_BRIDGE)).isEmpty)
    }

    /// "I answer for it" says nothing of whether it answers.
    @Test func aProxyEntryIsNoNeighbour() {
        var bytes = neighbourMessage(Self.gateway.address, state: NUD_NONE)
        bytes[26] = UInt8(NTF_PROXY)
        #expect(events(bytes).isEmpty)
    }

    @Test func withoutAnAddressThereIsNothingToSay() {
        #expect(events(message(RTM_NEWNEIGH, ndmsg())).isEmpty)
        #expect(events(message(RTM_NEWNEIGH, ndmsg(), attribute(Int(NDA_DST), [1, 2, 3]))).isEmpty)
    }
}
