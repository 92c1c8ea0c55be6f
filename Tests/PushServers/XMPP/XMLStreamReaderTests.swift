// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtonePushServers

/// XML streams.
@Suite struct XMLStreamReaderTests {
    private static let start = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"

    private func read(_ text: String) -> (events: [XMLStreamEvent], violation: String?) {
        var reader = XMLStreamReader()
        return reader.take(Array(text.utf8))
    }

    @Test func `an element has its names, its attributes, its text and its children`() throws {
        let (events, violation) = read(
            Self.start
                + "<iq id='a&amp;&#x41;' xml:lang='en'><x xmlns='urn:x'>o<y/>n<![CDATA[<e]]></x></iq> <presence/>")
        #expect(violation == nil)
        let y = XMLElement(name: "y", namespace: "urn:x", attributes: [:], isOneTag: true)
        let x = XMLElement(name: "x", namespace: "urn:x", attributes: [:], children: [y], text: "on<e")
        let iq = XMLElement(name: "iq", namespace: "jabber:client", attributes: ["id": "a&A"], children: [x])
        let presence = XMLElement(name: "presence", namespace: "jabber:client", attributes: [:], isOneTag: true)
        #expect(events == [.opened, .element(iq), .element(presence)])
    }

    private static let many = (0...32).map { "a\($0)=''" }.joined(separator: " ")
    private static let long = String(repeating: "a", count: 65_536)

    private static let wrong: [(text: String, problem: String?)] = [
        ("<!DOCTYPE a>" + start, "document type"), ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + start, "document type"),
        (start + "<!-- -->", "comment"), (start + "<iq><!-- --></iq>", "comment"),
        ("<!-- -->" + start, "comment"), (start + "<?php ?>", "processing instruction"),
        (start + "<iq>&b;</iq>", "undefined entity"), (start + "text", "text between"),
        ("<html>", "in place of a stream"), (start + "<iq", nil), (start + "<iq></message>", "mismatched tag"),
        (start + "<iq a='1' a='2'/>", "duplicate attribute"), (start + "<x:iq/>", "unbound prefix"),
        (start + "<iq>\u{1}</iq>", "not well-formed"), (start + "</stream:stream><iq/>", "junk after"),
        (start + "<iq>" + String(repeating: "<a>", count: 32), "too many elements"),
        (start + "<iq>" + String(repeating: "<a/>", count: 1000), "too many elements"),
        (start + "<iq \(many)/>", "too many attributes"),
        (start + "<iq>\(long)", "more than 65536"),
        (start + "<iq a='\(long)", "more than 65536"),
        (start + "<iq>\(long.dropLast(8))</iq>" + start, "more than 65536"),
        (String(repeating: " ", count: 65_537), "more than 65536"),
    ]

    @Test(arguments: wrong) func `what XMPP forbids, and what is too large, ends the stream`(
        text: String, problem: String?
    ) {
        for piece in [text.utf8.count, 1000, 7] {
            var reader = XMLStreamReader()
            var (rest, violation): ([UInt8], String?) = (Array(text.utf8), nil)
            while !rest.isEmpty, violation == nil {
                violation = reader.take(Array(rest.prefix(piece))).violation
                rest = Array(rest.dropFirst(piece))
            }
            if let problem {
                #expect(
                    violation?.contains(problem) == true,
                    "\(text.prefix(200)) in pieces of \(piece): \(violation ?? "")")
            } else {
                #expect(violation == nil)
            }
            #expect(!reader.isBetweenStanzas)
            let after = reader.take(Array("<iq/>".utf8))
            if problem != nil { #expect(after.events.isEmpty && after.violation == violation) }
        }
    }

    @Test func `bytes that are no UTF-8 end the stream, whatever it says of its encoding`() {
        var reader = XMLStreamReader()
        let start = Array("<?xml version='1.0' encoding='ISO-8859-1'?>\(Self.start)".utf8)
        #expect(reader.take(start).violation == nil)
        var stanza = Array("<iq>x</iq>".utf8)
        stanza[4] = 0xE4
        let violation = reader.take(stanza).violation
        #expect(violation != nil)
    }

    @Test func `where no stanza is open it can be left, and nowhere else`() {
        var reader = XMLStreamReader()
        var places: [Int] = []
        let text = Self.start + "<a/> \n<b>c</b>"
        for (index, byte) in text.utf8.enumerated() {
            _ = reader.take([byte])
            if reader.isBetweenStanzas { places.append(index + 1 - Self.start.utf8.count) }
        }
        #expect(places == [0, 4, 5, 6, 14])
    }

    @Test func `a copy reads on from where it was copied, and so does the other`() {
        let text = Self.start + "<iq id='1'><query xmlns='urn:x'>text</query></iq><message/>"
        let bytes = Array(text.utf8)
        let whole = read(text).events
        for cut in 0...bytes.count {
            var first = XMLStreamReader()
            let before = first.take(Array(bytes.prefix(cut))).events
            var second = first
            let rest = Array(bytes.dropFirst(cut))
            #expect(before + second.take(rest).events == whole, "cut at \(cut)")
            #expect(before + first.take(rest).events == whole, "cut at \(cut)")
        }
    }

    @Test(arguments: [7, 1000, 1 << 21]) func `a parser lives for some stanzas, and nobody sees its end`(piece: Int) {
        // expat keeps each of these names until the parser ends.
        let stanzas = (0..<20_000).map { "<a\($0) b\($0)='c'>d<e xmlns:f\($0)='g'/></a\($0)> " }
        let bytes = Array((Self.start + stanzas.joined()).utf8)
        var reader = XMLStreamReader()
        var (count, wrong, most): (Int, [XMLStreamEvent], Int) = (0, [], 0)
        var rest = bytes[...]
        while !rest.isEmpty {
            let (events, violation) = reader.take(Array(rest.prefix(piece)))
            #expect(violation == nil)
            rest = rest.dropFirst(piece)
            most = max(most, reader.bytesOfParser)
            for event in events where event != .opened {
                let names = ["a\(count)", "b\(count)", "e"]
                count += 1
                guard case .element(let element) = event,
                    [element.name] + element.attributes.keys + element.children.map(\.name) == names,
                    element.text == "d"
                else {
                    wrong.append(event)
                    continue
                }
            }
        }
        #expect(count == stanzas.count && wrong == [], "\(count) stanzas, \(wrong.prefix(3))")
        #expect(bytes.count > 3 * most && most <= XMLParser.mostBytes + 4096, "\(most) of \(bytes.count) bytes")
    }

    @Test(arguments: seeds(20)) func `any bytes are read without a trap, and the same in any pieces`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var bytes = Array((Recorded.features + Recorded.push("a", "aGVsbG8=") + Recorded.replaced).utf8)
            random.damage(&bytes, upTo: 4)
            if random.chance(30) { bytes.removeSubrange(0..<random.below(bytes.count)) }
            var (whole, pieces) = (XMLStreamReader(), XMLStreamReader())
            let (events, violation) = whole.take(bytes)
            var (found, problem): ([XMLStreamEvent], String?) = ([], nil)
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = 1 + random.below(40)
                let part = pieces.take(Array(rest.prefix(count)))
                (found, problem) = (found + part.events, part.violation)
                rest = rest.dropFirst(count)
            }
            #expect(found == events)
            #expect((problem == nil) == (violation == nil), "\(problem ?? "") and \(violation ?? "")")
        }
    }
}
