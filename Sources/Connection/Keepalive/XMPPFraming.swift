// SPDX-License-Identifier: Apache-2.0

/// The stanzas of an XML stream. It begins within the stream's root element, and the boundary is wherever no stanza is
/// open: there, white space may be sent.
///
/// XMPP allows a part of XML only (RFC 6120, section 11.1): no comments, no processing instructions but the
/// declaration, no document type. What is not allowed loses the stream.
struct XMPPFraming: MessageFraming {
    private enum State: Sendable {
        case text
        /// Behind `<`.
        case opened
        /// In a start tag; `isSlash`: behind a `/`.
        case startTag(isSlash: Bool)
        /// In an attribute's value that ends with this quotation mark.
        case value(quote: UInt8)
        case endTag
        /// In the declaration `<?xml … ?>`; `isMark`: behind a `?`.
        case declaration(isMark: Bool)
        /// In the opening of a CDATA section: so many of its bytes were read.
        case openingCDATA(read: Int)
        /// In a CDATA section: so many closing brackets in a row were read.
        case cdata(brackets: Int)
        case lost
    }

    private static let cdataOpening = Array("[CDATA[".utf8)
    private static let streamTag = Array("stream:stream".utf8)
    /// Deeper than any stanza nests.
    private static let deepest = 1000

    private var state = State.text
    /// How many elements are open below the stream's root.
    private var depth = 0
    /// How much of the tag's name is that of the stream's root; `nil` once it is another or has ended.
    private var streamTagRead: Int?
    private var isStreamTag = false

    var isBetweenMessages: Bool { if case .text = state { depth == 0 } else { false } }
    var isLost: Bool { if case .lost = state { true } else { false } }
    var skippable: Int { 0 }

    mutating func skip(_ count: Int) {}

    mutating func take(_ byte: UInt8) {
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
        case .declaration(let isMark):
            if byte == UInt8(ascii: ">"), isMark {
                state = .text
            } else {
                state = .declaration(isMark: byte == UInt8(ascii: "?"))
            }
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
        case UInt8(ascii: "?"): state = depth == 0 ? .declaration(isMark: false) : .lost
        case UInt8(ascii: "!"): state = depth > 0 ? .openingCDATA(read: 0) : .lost
        case UInt8(ascii: ">"), UInt8(ascii: "<"): state = .lost
        case _ where byte.isXMLBlank: state = .lost
        default:
            (streamTagRead, isStreamTag) = (0, false)
            state = .startTag(isSlash: false)
            readName(byte)
        }
    }

    private mutating func readStartTag(_ byte: UInt8, _ isSlash: Bool) {
        switch byte {
        case UInt8(ascii: ">"):
            endName()
            state = .text
            // After STARTTLS and SASL the stream begins anew, with no end of the old one (RFC 6120, section 4.3.3).
            if isStreamTag, depth == 0 { return }
            if !isSlash { depth += 1 }
            if depth > Self.deepest { state = .lost }
        case _ where isSlash, UInt8(ascii: "<"):
            state = .lost
        case UInt8(ascii: "/"):
            endName()
            state = .startTag(isSlash: true)
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            state = .value(quote: byte)
        case _ where byte.isXMLBlank:
            endName()
        default:
            readName(byte)
        }
    }

    private mutating func close() {
        // The end of the stream's root: nothing may follow.
        guard depth > 0 else { return state = .lost }
        depth -= 1
        state = .text
    }

    private mutating func readName(_ byte: UInt8) {
        guard let read = streamTagRead else { return }
        streamTagRead = read < Self.streamTag.count && byte == Self.streamTag[read] ? read + 1 : nil
    }

    private mutating func endName() {
        if streamTagRead == Self.streamTag.count { isStreamTag = true }
        streamTagRead = nil
    }
}
