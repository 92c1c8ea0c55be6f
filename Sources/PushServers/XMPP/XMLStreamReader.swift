// SPDX-License-Identifier: Apache-2.0

/// What a stream of XML brought.
enum XMLStreamEvent: Hashable, Sendable {
    /// The start tag of the stream.
    case opened
    /// An element right below it: a stanza, features, an error.
    case element(XMLElement)
    /// The end tag of the stream.
    case closed
}

/// Reads a stream of XML (RFC 6120, section 4) from bytes that come in pieces, by expat.
///
/// It is strict: what RFC 6120, section 11.1, forbids (comments, processing instructions, document types and with them
/// entities) ends it, and so does text between stanzas, and a stanza beyond its bounds. Its memory is that of some
/// stanzas, whatever the stream had before.
struct XMLStreamReader: Sendable {
    /// The bytes of one stanza. A push has at most 4,096, which are 5,464 in base64; RFC 6120, section 13.12, wants at
    /// least 10,000.
    static let largestStanza = 64 * 1024
    /// How deep elements nest in a stanza. Data forms in a query take six.
    static let deepest = 32
    /// The elements of one stanza. A server's list of services has one for each.
    static let mostElements = 1000
    /// The attributes of one element.
    static let mostAttributes = 32

    private var parser: XMLParser

    /// How many bytes the present parser has read, and may still know the names of.
    var bytesOfParser: Int { parser.fed }

    /// A reader of a stream that begins.
    init() { parser = XMLParser() }

    /// A reader of a stream whose beginning somebody else read; servers write its prefix as RFC 6120 does.
    init(withinStream: Void) {
        parser = XMLParser()
        parser.feed("<stream:stream xmlns='jabber:client' xmlns:stream='\(XMPP.streams)'>".utf8.map(\.self)[...])
        _ = parser.takeEvents()
    }

    /// Whether the last byte ended a stanza, or the stream's start tag, or was a blank between stanzas.
    var isBetweenStanzas: Bool { parser.isBetweenStanzas }

    /// Reads what comes next.
    ///
    /// - Returns: what it brought, and for a person why nothing more can be read; `nil` where more can.
    mutating func take(_ bytes: [UInt8]) -> (events: [XMLStreamEvent], violation: String?) {
        // Values are copied, and expat's parsers cannot be: the one who writes needs one that nobody else has.
        if !isKnownUniquelyReferenced(&parser) { parser = XMLParser(copying: parser) }
        // So that of a stanza that is too large no more than a slice is kept beyond its bound.
        var rest = bytes[...]
        while !rest.isEmpty, parser.violation == nil {
            if parser.isWorn { parser = XMLParser(copying: parser) }
            parser.feed(rest.prefix(4096))
            rest = rest.dropFirst(4096)
        }
        return (parser.takeEvents(), parser.violation)
    }
}
