// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneRelayMessages
import Glibc
import Testing

/// The counts in the file that the agent and `dialtone-tls` share. One of them may be of an earlier version.
@Suite final class StreamCountsTests {
    private static let place = StreamCounts.Place(number: 2, mark: 0x8000_0001)
    private let file: OwnedDescriptor

    init() throws { file = try .fileInMemory("counts") }

    private var numbers: [UInt64] {
        var numbers = [UInt64](repeating: 0, count: 4)
        let count = pread(file.number, &numbers, 32, 64)
        return count == 32 ? numbers : []
    }

    private static let settled: [StreamCounts.Settled?] = [
        nil, .all, .init(bytes: 0), .init(bytes: 1), .init(bytes: .max), .init(bytes: 1 << 29),
    ]

    @Test(arguments: settled, [false, true])
    func `what is written is read`(settled: StreamCounts.Settled?, isAhead: Bool) {
        var counts = StreamCounts()
        (counts.delivered, counts.taken, counts.sent) = (.max, 7, 5)
        (counts.settled, counts.isAhead) = (settled, isAhead)
        counts.write(to: file, at: Self.place)
        #expect(StreamCounts(of: file, at: Self.place) == counts)
        #expect(StreamCounts(of: file, at: .init(number: 2, mark: 1)) == nil)
        // What an earlier agent reads.
        #expect(numbers[..<3] == [.max, 7, 5])
        #expect(numbers[3] >> 32 == 0x8000_0001)
        #expect(numbers[3] & 1 == (isAhead ? 1 : 0))
    }

    @Test(arguments: [false, true])
    func `an earlier version does not say what is done with`(isAhead: Bool) {
        var numbers: [UInt64] = [3, 2, 1, 0x8000_0001 << 32 | (isAhead ? 1 : 0)]
        #expect(pwrite(file.number, &numbers, 32, 64) == 32)
        var counts = StreamCounts()
        (counts.delivered, counts.taken, counts.sent, counts.isAhead) = (3, 2, 1, isAhead)
        #expect(StreamCounts(of: file, at: Self.place) == counts)
        #expect(counts.settled == nil)
    }

    @Test(arguments: [0, 10, 1 << 29, (1 << 29) + 3, 1 << 40] as [UInt64], [0, 1, 70_000] as [UInt64])
    func `what is not done with is counted beyond what the number holds`(settled: UInt64, rest: UInt64) {
        let received = settled + rest
        #expect(StreamCounts.Settled(bytes: settled).rest(of: received) == rest)
        #expect(StreamCounts.Settled.all.rest(of: received) == 0)
    }
}
