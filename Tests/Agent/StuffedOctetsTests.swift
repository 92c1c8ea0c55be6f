// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtonePersistence

/// Octets in a line.
@Suite struct StuffedOctetsTests {
    @Test(
        arguments: [
            [], [0x0A], [0x7D], [0x7D, 0x0A, 0x7D], [0x2A, 0x5D, 0x20], Array(0...255),
        ] as [[UInt8]])
    func `what was stuffed has no line end and comes out as it was`(octets: [UInt8]) {
        let stuffed = StuffedOctets.stuffed(octets)
        #expect(!stuffed.contains(UInt8(ascii: "\n")), "\(stuffed)")
        #expect(StuffedOctets.plain(stuffed) == octets, "\(stuffed)")
    }

    @Test func `the line end and the escape become two octets, as RFC 1662 has it`() {
        #expect(StuffedOctets.stuffed([0x0A, 0x41, 0x7D]) == [0x7D, 0x2A, 0x41, 0x7D, 0x5D])
    }

    @Test(arguments: [[0x7D], [0x41, 0x7D], [0x7D, 0x41], [0x7D, 0x7D, 0x5D]] as [[UInt8]])
    func `what nothing is stuffed to is refused`(octets: [UInt8]) {
        #expect(StuffedOctets.plain(octets) == nil)
    }
}
