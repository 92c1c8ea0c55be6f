// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

@testable import DialtoneResolver

extension DNSMessage {
    /// The IPv4 addresses in it, as text.
    fileprivate var addresses: [String] {
        records(of: .a).contents.compactMap { if case .address(let address) = $0 { address.description } else { nil } }
    }
}

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

    @Test func `addresses count only for the name that was asked for`() throws {
        let bytes = message([
            record(asked, 1, [0, 0, 0, 60], [192, 0, 2, 1]),
            record(name("evil.example.net"), 1, [0, 0, 0, 5], [192, 0, 2, 2]),
            record(name("WWW.Example.COM"), 1, [0, 0, 0, 30], [192, 0, 2, 3]),
            record(asked, 1, [0, 0, 0, 1], [192, 0, 2, 4], class: 3),
            record(asked, 16, [0, 0, 0, 1], [0]),
        ])
        let found = try #require(DNSMessage(bytes))
        #expect(found.addresses == ["192.0.2.1", "192.0.2.3"])
        #expect(found.records(of: .a).timeToLive == 30)
    }

    @Test func `of a thousand records the first are read`() throws {
        let header: [UInt8] = [0, 1, 0x81, 0x80, 0, 1, 0x10, 0, 0, 1, 0, 0]
        let records = (0..<4096).map { record(asked, 1, [0, 0, 0, 60], [192, 0, UInt8($0 / 256), UInt8($0 % 256)]) }
        // Cut off in the middle: what is not read is not looked at either.
        let bytes = header + name("www.example.com") + [0, 1, 0, 1] + records.prefix(300).joined()
        let found = try #require(DNSMessage(bytes))
        #expect(found.addresses.count == 256)
        #expect(found.addresses.last == "192.0.0.255")
        #expect(found.negativeTimeToLive == nil)
    }

    @Test func `pointers that lead to pointers alone are not followed for ever`() {
        for (steps, isRead) in [(100, true), (127, false), (8000, false)] {
            var bytes: [UInt8] = [0, 1, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0] + name("www.example.com") + [0, 1, 0, 1]
            // A record whose data nobody reads: pointers, each to the one before it, the first to the asked name.
            let start = bytes.count + 11
            bytes += [0, 0, 16, 0, 1, 0, 0, 0, 60, UInt8(2 * steps / 256), UInt8(2 * steps % 256)]
            for step in 0..<steps {
                let target = step == 0 ? 12 : start + 2 * (step - 1)
                bytes += [0xC0 | UInt8(target / 256), UInt8(target % 256)]
            }
            let last = start + 2 * (steps - 1)
            bytes += record([0xC0 | UInt8(last / 256), UInt8(last % 256)], 1, [0, 0, 0, 60], [192, 0, 2, 1])
            #expect(DNSMessage(bytes)?.addresses == (isRead ? ["192.0.2.1"] : nil), "\(steps) pointers")
        }
    }

    @Test func `aliases are followed in whatever order they stand and a loop ends`() throws {
        let bytes = message([
            record(name("c.example"), 1, [0, 0, 0, 60], [192, 0, 2, 1]),
            record(name("b.example"), 5, [0, 0, 0, 20], name("c.example")),
            record(asked, 5, [0, 0, 0, 40], name("b.example")),
        ])
        let found = try #require(DNSMessage(bytes))
        #expect(found.addresses == ["192.0.2.1"])
        #expect(found.records(of: .a).timeToLive == 20)
        let loop = message([
            record(asked, 5, [0, 0, 0, 40], name("b.example")), record(name("b.example"), 5, [0, 0, 0, 40], asked),
        ])
        #expect(try #require(DNSMessage(loop)).addresses.isEmpty)
    }

    @Test(arguments: [(DNSMessage.longestChain, 1), (DNSMessage.longestChain + 1, 0)])
    func `a chain of aliases is followed so far`(length: Int, found: Int) throws {
        let links = (1...length).map { number in
            record(number == 1 ? asked : name("a\(number)"), 5, [0, 0, 0, 60], name("a\(number + 1)"))
        }
        let address = record(name("a\(length + 1)"), 1, [0, 0, 0, 60], [192, 0, 2, 1])
        #expect(try #require(DNSMessage(message(links + [address]))).addresses.count == found)
    }

    @Test func `a time to live with the top bit set is none`() throws {
        let bytes = message([record(asked, 1, [0x80, 0, 0, 60], [192, 0, 2, 1])])
        #expect(try #require(DNSMessage(bytes)).records(of: .a).timeToLive == 0)
    }

    @Test func `an absence holds no longer than the alias that leads to it`() throws {
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
    ]) func `an owner that is no name makes no message`(owner: [UInt8]) {
        #expect(DNSMessage(message([record(owner, 1, [0, 0, 0, 60], [192, 0, 2, 1])])) == nil)
    }

    @Test func `a service is read with the spelling of its target and pointers in it`() throws {
        let bytes = message([
            // "example.com" stands at 16; the pointer is one that RFC 2782 forbids, and servers send.
            record(asked, 33, [0, 0, 0, 60], [0, 1, 0, 2, 19, 196] + [3, 83, 105, 80, 0xC0, 16]),
            record(asked, 33, [0, 0, 0, 30], [0xFF, 0xFF, 0, 0, 0, 0, 0]),
            record(name("other.example"), 33, [0, 0, 0, 5], [0, 1, 0, 2, 0, 3] + name("evil.example")),
        ])
        let found = try #require(DNSMessage(bytes)).records(of: .srv)
        let services = RecordSet(contents: found.contents, expires: nil, source: .nameServer).services
        #expect(
            services == [
                ServiceLocation(priority: 1, weight: 2, port: 5060, target: "SiP.example.com"),
                ServiceLocation(priority: 65_535, weight: 0, port: 0, target: ""),
            ])
        #expect(found.timeToLive == 30)
    }

    @Test func `a rule is read with all its fields`() throws {
        let strings: [UInt8] = [1, 117, 7] + Array("E2U+sip".utf8) + [4] + Array("!é!".utf8)
        let bytes = message([
            record(asked, 35, [0, 0, 0, 60], [0, 100, 0, 50] + strings + [0]),
            record(asked, 35, [0, 0, 0, 60], [0, 100, 0, 51, 0, 0, 0] + [4, 95, 115, 105, 112, 0xC0, 16]),
        ])
        let contents = try #require(DNSMessage(bytes)).records(of: .naptr).contents
        #expect(
            RecordSet(contents: contents, expires: nil, source: .nameServer).rules == [
                NamingRule(
                    order: 100, preference: 50, flags: "u", service: "E2U+sip", regexp: "!é!", replacement: ""),
                NamingRule(
                    order: 100, preference: 51, flags: "", service: "", regexp: "", replacement: "_sip.example.com"),
            ])
    }

    @Test(
        arguments: [
            // Addresses that are too short or too long, an alias with something behind it.
            (1, [192, 0, 2]), (1, [192, 0, 2, 1, 0]), (28, [192, 0, 2, 1]), (5, [1, 98, 0, 0]),
            // A service without a target, without the end of its target, with something behind it, with a pointer
            // beyond the end; its figures alone.
            (33, [0, 1, 0, 2, 0, 3]), (33, [0, 1, 0, 2, 0, 3, 1, 98]), (33, [0, 1, 0, 2, 0, 3, 0, 0]),
            (33, [0, 1, 0, 2, 0, 3, 0xFF, 0xFF]), (33, [0, 1, 0]), (33, []),
            // A rule whose string goes beyond the end, without a replacement, and with something behind it.
            (35, [0, 1, 0, 2, 0, 0, 200, 0]), (35, [0, 1, 0, 2, 0, 0, 0]), (35, [0, 1, 0, 2, 0, 0, 0, 0, 0]),
            (35, [0, 1, 0, 2]),
        ] as [(UInt8, [UInt8])])
    func `a record that is not what its type demands makes no message`(type: UInt8, data: [UInt8]) {
        let fine = record(asked, 1, [0, 0, 0, 60], [192, 0, 2, 1])
        let other = record(asked, type, [0, 0, 0, 60], data)
        #expect(DNSMessage(message([fine, other])) == nil)
        #expect(DNSMessage(message([other, fine])) == nil)
    }

    @Test(arguments: ["a.b", "a\\b", "a b", "a\0b", "a\nb", "a\u{7F}b"])
    func `a name that text would make another is passed over`(label: String) throws {
        let target = [UInt8(label.utf8.count)] + Array(label.utf8) + [0]
        let bytes = message([
            record(asked, 33, [0, 0, 0, 60], [0, 1, 0, 2, 0, 3] + target),
            record(asked, 33, [0, 0, 0, 60], [0, 1, 0, 2, 0, 3, 1, 0xFF, 0]),
            record(asked, 33, [0, 0, 0, 60], [0, 1, 0, 2, 0, 3] + name("sip.example.com")),
            record(asked, 35, [0, 0, 0, 60], [0, 1, 0, 2, 0, 0, 0] + target),
            record(asked, 35, [0, 0, 0, 60], [0, 1, 0, 2, 0, 0, 1, 0xFF, 0]),
        ])
        let found = try #require(DNSMessage(bytes))
        #expect(found.records(of: .srv).contents.count == 1)
        #expect(found.records(of: .naptr).contents.isEmpty)
    }

    @Test func `whatever is cut off or garbled is read without harm`() {
        let figures: [UInt8] = Array(repeating: 0, count: 16) + [0, 0, 0, 90]
        let whole = message(
            [
                record(asked, 5, [0, 0, 0, 40], [1, 98, 0xC0, 16]),
                record([1, 98, 0xC0, 16], 1, [0, 0, 0, 9], [1, 2, 3, 4]),
                record([1, 98, 0xC0, 16], 33, [0, 0, 0, 9], [0, 1, 0, 2, 0, 3, 1, 98, 0xC0, 16]),
                record([1, 98, 0xC0, 16], 35, [0, 0, 0, 9], [0, 1, 0, 2, 1, 115, 1, 83, 0, 1, 98, 0xC0, 16]),
            ],
            authorities: [record([0xC0, 16], 6, [0, 0, 1, 0], [0xC0, 16, 0xC0, 16] + figures)])
        let types: [RecordType] = [.a, .srv, .naptr]
        #expect(types.map { DNSMessage(whole)?.records(of: $0).contents.count } == [1, 1, 1])
        for length in 0..<whole.count { #expect(DNSMessage(Array(whole.prefix(length))) == nil) }
        var random = SplitMix64(seed: 21)
        for _ in 0..<20_000 {
            var garbled = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                garbled[Int.random(in: 0..<whole.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let message = DNSMessage(garbled) else { continue }
            for type in types { _ = message.records(of: type) }
            _ = message.negativeTimeToLive
        }
    }
}
