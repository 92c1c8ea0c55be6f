// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc
import Testing

@testable import DialtoneNetlink

struct AddressDecodingTests {
    private static let own = IPAddress(v4: 0xC000_020A)
    private static let peer = IPAddress(v4: 0xC000_020B)
    private static let own6 = IPAddress(v6: 0x2001_0DB8 << 96 | 0xA)
    private static let peer6 = IPAddress(v6: 0x2001_0DB8 << 96 | 0xB)

    @Test(arguments: [
        (own, nil, attribute(Int(IFA_ADDRESS), address: own) + attribute(Int(IFA_LOCAL), address: own)),
        (own6, nil, attribute(Int(IFA_ADDRESS), address: own6)),
        // Point to point: IFA_ADDRESS is the other end's.
        (own, peer, attribute(Int(IFA_ADDRESS), address: peer) + attribute(Int(IFA_LOCAL), address: own)),
        (own, peer, attribute(Int(IFA_LOCAL), address: own) + attribute(Int(IFA_ADDRESS), address: peer)),
        (own6, peer6, attribute(Int(IFA_LOCAL), address: own6) + attribute(Int(IFA_ADDRESS), address: peer6)),
    ])
    func `our end of the link is the address`(address: IPAddress, peer: IPAddress?, attributes: [UInt8]) {
        let entry = InterfaceAddress(address, prefixLength: 24, peer: peer)
        #expect(events(addressMessage(attributes)) == [.addressPresent(entry, interfaceIndex: 5)])
        #expect(events(addressMessage(attributes, type: RTM_DELADDR)) == [.addressRemoved(entry, interfaceIndex: 5)])
    }

    @Test(arguments: [
        (IFA_F_PERMANENT, false, false, false), (IFA_F_TENTATIVE, true, false, false),
        (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, false, false, false), (IFA_F_OPTIMISTIC, false, false, false),
        (IFA_F_DADFAILED, false, true, false), (IFA_F_TENTATIVE | IFA_F_DADFAILED, true, true, false),
        (IFA_F_DEPRECATED, false, false, true),
    ])
    func `the flags say how far it is usable`(flags: CInt, isTentative: Bool, isDuplicate: Bool, isDeprecated: Bool) {
        let expected = InterfaceAddress(
            Self.own6, prefixLength: 24, isTentative: isTentative, isDuplicate: isDuplicate,
            isDeprecated: isDeprecated)
        let address = attribute(Int(IFA_ADDRESS), address: Self.own6)
        let inHeader = addressMessage(address, flags: flags)
        #expect(events(inHeader) == [.addressPresent(expected, interfaceIndex: 5)])
        let inAttribute = addressMessage(address + attribute(Int(IFA_FLAGS), number: UInt32(flags)))
        #expect(events(inAttribute) == [.addressPresent(expected, interfaceIndex: 5)])
    }

    @Test(arguments: [(IFA_F_PERMANENT, false), (IFA_F_NODAD, true)])
    func `whether its duplicates are looked for is a flag`(flags: CInt, skipsDetection: Bool) {
        let expected = InterfaceAddress(Self.own6, prefixLength: 24, skipsDetection: skipsDetection)
        let message = addressMessage(attribute(Int(IFA_ADDRESS), address: Self.own6), flags: flags)
        #expect(events(message) == [.addressPresent(expected, interfaceIndex: 5)])
    }

    /// The header has room for eight flags only; the attribute holds all of them, and its word stands.
    @Test func `the attribute overrules the header`() {
        let attributes =
            attribute(Int(IFA_ADDRESS), address: Self.own6)
            + attribute(Int(IFA_FLAGS), number: UInt32(IFA_F_NOPREFIXROUTE))
        let expected = InterfaceAddress(Self.own6, prefixLength: 24)
        let event = events(addressMessage(attributes, flags: IFA_F_TENTATIVE))
        #expect(event == [.addressPresent(expected, interfaceIndex: 5)])
    }

    @Test func `flags cut short are not taken`() {
        let attributes = attribute(Int(IFA_ADDRESS), address: Self.own6) + attribute(Int(IFA_FLAGS), [0, 0])
        let expected = InterfaceAddress(Self.own6, prefixLength: 24, isDeprecated: true)
        #expect(
            events(addressMessage(attributes, flags: IFA_F_DEPRECATED))
                == [.addressPresent(expected, interfaceIndex: 5)])
    }

    @Test(arguments: [
        [UInt8](), attribute(Int(IFA_ADDRESS), [192, 0, 2]), attribute(Int(IFA_LABEL), text: "eth0"),
    ])
    func `without an address there is nothing to say`(attributes: [UInt8]) {
        #expect(events(addressMessage(attributes)).isEmpty)
    }

    private func addressMessage(_ attributes: [UInt8], type: Int = RTM_NEWADDR, flags: CInt = 0) -> [UInt8] {
        var header = ifaddrmsg()
        header.ifa_prefixlen = 24
        header.ifa_index = 5
        header.ifa_flags = UInt8(flags)
        return message(type, header, attributes)
    }
}
