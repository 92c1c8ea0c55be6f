// SPDX-License-Identifier: Apache-2.0

import NetworkPath
import TestSupport
import Testing

@testable import Resolver

struct DNSMessageTests {
    /// A message with one question for `www.example.com`, and these records.
    private func message(_ answers: [[UInt8]], authorities: [[UInt8]] = []) -> [UInt8] {
        [0, 1, 0x81, 0x80, 0, 1, 0, UInt8(answers.count), 0, UInt8(authorities.count), 0, 0]
            + name("www.example.com") + [0, 1, 0, 1] + (answers + authorities).joined()
    }

    private func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    private func record(_ owner: [UInt8], _ type: UInt8, _ ttl: [UInt8], _ data: [UInt8], class: UInt8 = 1) -> [UInt8] {
        owner + [0, type, 0, `class`] + ttl + [0, UInt8(data.count)] + data
    }

    private let asked: [UInt8] = [0xC0, 12]

    @Test func addressesCountOnlyForTheNameThatWasAskedFor() throws {
        let bytes = message([
            record(asked, 1, [0, 0, 0, 60], [192, 0, 2, 1]),
            record(name("evil.example.net"), 1, [0, 0, 0, 5], [192, 0, 2, 2]),
            record(name("WWW.Example.COM"), 1, [0, 0, 0, 30], [192, 0, 2, 3]),
            record(asked, 1, [0, 0, 0, 1], [192, 0, 2, 4], class: 3),
            record(asked, 16, [0, 0, 0, 1], [0]),
        ])
        let found = try #require(DNSMessage(bytes)).addresses(.v4)
        #expect(found.addresses.map(\.description) == ["192.0.2.1", "192.0.2.3"])
        #expect(found.timeToLive == 30)
    }

    @Test func aliasesAreFollowedInWhateverOrderTheyStandAndALoopEnds() throws {
        let bytes = message([
            record(name("c.example"), 1, [0, 0, 0, 60], [192, 0, 2, 1]),
            record(name("b.example"), 5, [0, 0, 0, 20], name("c.example")),
            record(asked, 5, [0, 0, 0, 40], name("b.example")),
        ])
        let found = try #require(DNSMessage(bytes)).addresses(.v4)
        #expect(found.addresses.map(\.description) == ["192.0.2.1"])
        #expect(found.timeToLive == 20)
        let loop = message([
            record(asked, 5, [0, 0, 0, 40], name("b.example")), record(name("b.example"), 5, [0, 0, 0, 40], asked),
        ])
        #expect(try #require(DNSMessage(loop)).addresses(.v4).addresses.isEmpty)
    }

    @Test func aTimeToLiveWithTheTopBitSetIsNone() throws {
        let bytes = message([record(asked, 1, [0x80, 0, 0, 60], [192, 0, 2, 1])])
        #expect(try #require(DNSMessage(bytes)).addresses(.v4).timeToLive == 0)
    }

    @Test func anAbsenceHoldsNoLongerThanTheAliasThatLeadsToIt() throws {
        let figures: [UInt8] = Array(repeating: 0, count: 16) + [0, 0, 0, 90]
        let authority = record(name("example"), 6, [0, 0, 1, 0], name("ns.example") + name("me.example") + figures)
        #expect(try #require(DNSMessage(message([], authorities: [authority]))).negativeTimeToLive == 90)
        let alias = record(asked, 5, [0, 0, 0, 10], name("b.example"))
        #expect(try #require(DNSMessage(message([alias], authorities: [authority]))).negativeTimeToLive == 10)
        #expect(try #require(DNSMessage(message([alias]))).negativeTimeToLive == nil)
    }

    @Test(arguments: [
        // A pointer to itself, one to the front and back, one beyond the end; a label of a reserved kind.
        [0xC0, 33], [0xC0, 35, 0xC0, 33], [0xC0, 255], [0x40, 0], [0x80, 0],
    ]) func anOwnerThatIsNoNameMakesNoMessage(owner: [UInt8]) {
        #expect(DNSMessage(message([record(owner, 1, [0, 0, 0, 60], [192, 0, 2, 1])])) == nil)
    }

    @Test func whateverIsCutOffOrGarbledIsReadWithoutHarm() {
        let figures: [UInt8] = Array(repeating: 0, count: 16) + [0, 0, 0, 90]
        let whole = message(
            [
                record(asked, 5, [0, 0, 0, 40], [1, 98, 0xC0, 16]),
                record([1, 98, 0xC0, 16], 1, [0, 0, 0, 9], [1, 2, 3, 4]),
            ],
            authorities: [record([0xC0, 16], 6, [0, 0, 1, 0], [0xC0, 16, 0xC0, 16] + figures)])
        #expect(DNSMessage(whole)?.addresses(.v4).addresses.count == 1)
        for length in 0..<whole.count { #expect(DNSMessage(Array(whole.prefix(length))) == nil) }
        var random = SplitMix64(seed: 21)
        for _ in 0..<20_000 {
            var garbled = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                garbled[Int.random(in: 0..<whole.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let message = DNSMessage(garbled) else { continue }
            _ = message.addresses(.v4)
            _ = message.negativeTimeToLive
        }
    }
}
