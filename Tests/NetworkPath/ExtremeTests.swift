// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneNetworkPath

/// Numbers that no kernel gives, and a damaged recording does.
@Suite struct ExtremeTests {
    @Test(arguments: [Int.min, -1, 0, 1, 32, 33, 64, 127, 128, 129, 255, Int.max])
    func `a prefix is no longer than its address`(length: Int) {
        for address in [IPAddress(v4: 0xC000_0207), IPAddress(v6: 0x2001_0DB8 << 96 | 7)] {
            let prefix = IPPrefix(address, length: length)
            #expect((0...address.family.bitWidth).contains(prefix.length), "\(length)")
            #expect(prefix.contains(address), "\(length)")
            #expect(DestinationIndex([address]).touches(prefix), "\(length)")
            #expect(!DestinationIndex().touches(prefix), "\(length)")
        }
    }

    @Test(arguments: [Int64.max, Int64.max / 1000 + 1, Int64(1) << 62])
    func `a silence longer than the universe has a text`(seconds: Int64) {
        #expect(Duration.seconds(seconds).short.contains(" d"))
        #expect((.zero - Duration.seconds(seconds)).short == "0 ms")
    }
}
