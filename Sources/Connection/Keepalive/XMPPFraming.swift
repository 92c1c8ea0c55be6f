// SPDX-License-Identifier: Apache-2.0

/// One element of an XML stream, read up to its end.
///
/// XMPP allows a part of XML only (RFC 6120, section 11.1): no comments, no processing instructions, no document type.
/// With what is not allowed it is lost where the element ends.
struct XMPPFraming {
    private enum State: Sendable {
        case text
        /// Behind `<`.
        case opened
        /// In a start tag; `isSlash`: behind a `/`.
        case startTag(isSlash: Bool)
        /// In an attribute's value that ends with this quotation mark.
        case value(quote: UInt8)
        case endTag
        /// In the opening of a CDATA section: so many of its bytes were read.
        case openingCDATA(read: Int)
        /// In a CDATA section: so many closing brackets in a row were read.
        case cdata(brackets: Int)
        case lost
    }

    private static let cdataOpening = Array("[CDATA[".utf8)
    /// Deeper than any stanza nests.
    private static let deepest = 1000

    private var state = State.text
    /// How many elements are open.
    private var depth = 0

    /// Whether it has ended.
    var hasEnded: Bool { if case .text = state { depth == 0 } else { false } }
    /// Whether nobody knows where it ends.
    var isLost: Bool { if case .lost = state { true } else { false } }

    /// Reads up to the element's end; says how many bytes that were.
    mutating func advance(_ bytes: ArraySlice<UInt8>) -> Int {
        for (count, byte) in bytes.enumerated() {
            if isLost { break }
            take(byte)
            if hasEnded { return count + 1 }
        }
        return bytes.count
    }

    private mutating func take(_ byte: UInt8) {
        switch state {
        case .text:
            if byte == UInt8(ascii: "<") {
                state = .opened
            } else if depth == 0, !byte.isXMLBlank {
                state = .lost
            }
        case .opened: open(byte)
        case .startTag(let isSlash): readStartTag(byte, isSlash)
        case .value(let quote):
            if byte == quote { state = .startTag(isSlash: false) } else if byte == UInt8(ascii: "<") { state = .lost }
        case .endTag:
            if byte == UInt8(ascii: ">") { close() } else if byte == UInt8(ascii: "<") { state = .lost }
        case .openingCDATA(let read):
            guard byte == Self.cdataOpening[read] else { return state = .lost }
            state = read + 1 == Self.cdataOpening.count ? .cdata(brackets: 0) : .openingCDATA(read: read + 1)
        case .cdata(let brackets):
            if byte == UInt8(ascii: "]") {
                state = .cdata(brackets: min(brackets + 1, 2))
            } else {
                state = byte == UInt8(ascii: ">") && brackets == 2 ? .text : .cdata(brackets: 0)
            }
        case .lost: break
        }
    }

    private mutating func open(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "/"): state = .endTag
        case UInt8(ascii: "!"): state = depth > 0 ? .openingCDATA(read: 0) : .lost
        case UInt8(ascii: "?"), UInt8(ascii: ">"), UInt8(ascii: "<"): state = .lost
        case _ where byte.isXMLBlank: state = .lost
        default: state = .startTag(isSlash: false)
        }
    }

    private mutating func readStartTag(_ byte: UInt8, _ isSlash: Bool) {
        switch byte {
        case UInt8(ascii: ">"):
            state = .text
            if !isSlash { depth += 1 }
            if depth > Self.deepest { state = .lost }
        case _ where isSlash, UInt8(ascii: "<"):
            state = .lost
        case UInt8(ascii: "/"):
            state = .startTag(isSlash: true)
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            state = .value(quote: byte)
        default:
            break
        }
    }

    private mutating func close() {
        guard depth > 0 else { return state = .lost }
        depth -= 1
        state = .text
    }
}
