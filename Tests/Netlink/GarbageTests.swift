// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneNetlink

/// Bytes that no kernel sends are read without a crash, without reading past their end (a page that cannot be read lies
/// there), and without end.
struct GarbageTests {
    private static let specimens: [[UInt8]] = {
        let address = IPAddress(v6: 0x2001_0DB8 << 96 | 1)
        let addressHeader = ifaddrmsg()
        return [
            linkMessage(linkInfo(driver: "veth")),
            linkMessage(type: RTM_DELLINK),
            message(
                RTM_NEWADDR, addressHeader,
                attribute(Int(IFA_ADDRESS), address: address) + attribute(Int(IFA_FLAGS), number: 0x80)),
            message(
                RTM_NEWROUTE, rtmsg(),
                attribute(Int(RTA_VIA.rawValue), [10, 0] + address.bytes)
                    + attribute(Int(RTA_OIF.rawValue), number: 1)),
            neighbourMessage(address, state: NUD_FAILED),
            errorMessage(EINVAL, quoting: linkMessage(), isCapped: false, explanation: "because"),
            errorMessage(EINVAL, quoting: linkMessage(), isCapped: true, explanation: "because"),
            message(NLMSG_DONE, CInt(0)),
        ]
    }()

    @Test(arguments: specimens.indices)
    func `a message may end anywhere`(specimen: Int) {
        let whole = Self.specimens[specimen]
        for length in 0...whole.count {
            var cut = Array(whole[..<length])
            decodeAll(cut)
            guard length >= 4 else { continue }
            // And now its own length says that it is whole.
            cut.replaceSubrange(0..<4, with: bytes(of: UInt32(length)))
            decodeAll(cut)
        }
    }

    /// An attribute's length that leads out of the message, out of its nest, or nowhere.
    @Test(arguments: specimens.indices)
    func `a length may say anything`(specimen: Int) {
        let whole = Self.specimens[specimen]
        for position in stride(from: 0, to: whole.count - 1, by: 2) {
            for length: UInt16 in [0, 1, 3, 4, 5, 7, 8, 0x00FF, 0x7FFF, 0x8000, 0xFFFC, 0xFFFF] {
                var damaged = whole
                damaged.replaceSubrange(position..<position + 2, with: bytes(of: length))
                decodeAll(damaged)
            }
        }
    }

    @Test(arguments: seeds(8))
    func `damage of any kind is survived`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<5000 {
            var datagram: [UInt8] = []
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                datagram += Self.specimens.randomElement(using: &random) ?? []
            }
            random.damage(&datagram, upTo: 8)
            if random.chance(20) { datagram.removeLast(Int.random(in: 0..<datagram.count, using: &random)) }
            decodeAll(datagram)
        }
    }

    @Test(arguments: seeds(2))
    func `noise is survived`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2000 {
            let count = Int.random(in: 0...256, using: &random)
            decodeAll((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        }
    }

    /// Everything that is read out of a message anywhere.
    private func decodeAll(_ datagram: [UInt8]) {
        var kinds = InterfaceKinds(folder: "/nonexistent")
        _ = decoding(datagram) { message in
            _ = KernelEvent(message, kinds: &kinds)
            _ = RouteAnswer(message)
            return (message.errorCode, message.explanation, message.isInterruptedDump, message.sequence)
        }
    }
}
