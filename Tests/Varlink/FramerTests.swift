// SPDX-License-Identifier: Apache-2.0

import DialtoneVarlink
import Testing

@Suite struct FramerTests {
    @Test func `messages are cut at their nuls`() throws {
        var framer = VarlinkFramer(limit: 10)
        framer.append(Array("a\0bc\0\0d".utf8))
        #expect(try framer.next() == Array("a".utf8))
        #expect(try framer.next() == Array("bc".utf8))
        #expect(try framer.next() == [])
        #expect(try framer.next() == nil)
        #expect(!framer.isEmpty)
        framer.append([0])
        #expect(try framer.next() == Array("d".utf8))
        #expect(try framer.next() == nil)
        #expect(framer.isEmpty)
    }

    @Test func `the limit is exact`() throws {
        var fits = VarlinkFramer(limit: 4)
        fits.append([1, 2, 3, 4])
        #expect(try fits.next() == nil)
        fits.append([0])
        #expect(try fits.next() == [1, 2, 3, 4])

        var tooLong = VarlinkFramer(limit: 4)
        tooLong.append([1, 2, 3, 4, 5, 0])
        #expect(throws: VarlinkViolation.messageTooLong(limit: 4)) { try tooLong.next() }
    }

    @Test func `an unending message is refused before it ends`() throws {
        var framer = VarlinkFramer(limit: 4)
        framer.append([0, 1, 2, 3, 4])
        #expect(try framer.next() == [])
        #expect(try framer.next() == nil)
        framer.append([5])
        #expect(throws: VarlinkViolation.messageTooLong(limit: 4)) { try framer.next() }
    }

    /// However a stream is split and whenever it is drained, the same messages come out of it.
    @Test func `any splitting yields the same messages`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        for _ in 0..<500 {
            let messages: [[UInt8]] = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 1...255, using: &random) }
            }
            var bytes = messages.reduce(into: ArraySlice<UInt8>()) { $0 += $1 + [0] }
            var framer = VarlinkFramer(limit: 40)
            var received: [[UInt8]] = []
            while !bytes.isEmpty {
                let piece = bytes.prefix(Int.random(in: 1...30, using: &random))
                bytes = bytes.dropFirst(piece.count)
                framer.append(Array(piece))
                // Not always to the end: an owner that is busy leaves messages standing.
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    if let message = try framer.next() { received.append(message) }
                }
            }
            while let message = try framer.next() { received.append(message) }
            #expect(received == messages, "seed \(seed)")
            #expect(framer.isEmpty, "seed \(seed)")
        }
    }
}

/// Sebastiano Vigna's splitmix64, so that a failure can be repeated from its seed.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
