// SPDX-License-Identifier: Apache-2.0

/// What exactly answers a keepalive that was sent.
enum AnswerPattern: Hashable, Sendable {
    /// These bytes and no others.
    case bytes([UInt8])
    /// An `iq` of type `result` or `error` with this id.
    case xmppResult(id: [UInt8])

    /// How the bytes that begin at the boundary between two messages compare with it.
    enum Match: Hashable, Sendable {
        /// The first so many are the answer, whole.
        case whole(length: Int)
        /// They may become it.
        case beginning
        /// They are something else.
        case mismatch
    }

    /// The longest answer to wait for. A literal one is known; the longest `iq` that a server makes of a ping is an
    /// error with two addresses (each at most 3071 bytes by RFC 7622, commonly below 100) and a line of text.
    static let longest = 2048

    /// Compares.
    func match(_ bytes: ArraySlice<UInt8>) -> Match {
        switch self {
        case .bytes(let expected):
            guard bytes.starts(with: expected.prefix(bytes.count)) else { return .mismatch }
            return bytes.count < expected.count ? .beginning : .whole(length: expected.count)
        case .xmppResult(let id):
            return XMPPResult(id: id).match(bytes)
        }
    }
}

/// The answer to an XMPP ping in the form that servers give it: the start tag of an `iq`, whose attributes may stand in
/// any order, and for an error its children.
private struct XMPPResult {
    let id: [UInt8]

    func match(_ bytes: ArraySlice<UInt8>) -> AnswerPattern.Match {
        let start = Array("<iq".utf8)
        guard bytes.starts(with: start.prefix(bytes.count)) else { return .mismatch }
        var scanner = TagScanner(rest: bytes.dropFirst(start.count))
        switch scanner.readAttributes() {
        case .malformed: return .mismatch
        case .unfinished: return bytes.count < AnswerPattern.longest ? .beginning : .mismatch
        case .ended: break
        }
        let type = scanner.value(of: "type")
        guard scanner.value(of: "id") == id, type == Array("result".utf8) || type == Array("error".utf8) else {
            return .mismatch
        }
        var element = XMPPFraming()
        let length = element.advance(bytes)
        if element.isBetweenMessages { return .whole(length: length) }
        return element.isLost || bytes.count >= AnswerPattern.longest ? .mismatch : .beginning
    }
}

/// Reads the attributes of a start tag, from behind its name to its end.
private struct TagScanner {
    enum End { case ended, unfinished, malformed }

    private(set) var attributes: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] = []
    private var rest: ArraySlice<UInt8>

    init(rest: ArraySlice<UInt8>) { self.rest = rest }

    /// The value of an attribute that occurs once.
    func value(of name: String) -> [UInt8]? {
        let found = attributes.filter { $0.name.elementsEqual(name.utf8) }
        return found.count == 1 ? Array(found[0].value) : nil
    }

    mutating func readAttributes() -> End {
        while true {
            let blanks = rest.prefix { $0.isXMLBlank }.count
            rest = rest.dropFirst(blanks)
            guard let next = rest.first else { return .unfinished }
            if next == UInt8(ascii: ">") || next == UInt8(ascii: "/") { return .ended }
            // `<iqx` is another element.
            guard blanks > 0 else { return .malformed }
            let name = rest.prefix { $0 != UInt8(ascii: "=") && !$0.isXMLBlank && !$0.isTagMark }
            rest = rest.dropFirst(name.count)
            guard let equals = rest.popFirst() else { return .unfinished }
            guard equals == UInt8(ascii: "="), !name.isEmpty else { return .malformed }
            guard let quote = rest.popFirst() else { return .unfinished }
            guard quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") else { return .malformed }
            let value = rest.prefix { $0 != quote }
            rest = rest.dropFirst(value.count)
            guard rest.popFirst() != nil else { return .unfinished }
            guard !value.contains(UInt8(ascii: "<")) else { return .malformed }
            attributes.append((name, value))
        }
    }
}

extension UInt8 {
    /// White space of XML 1.0, production 3.
    var isXMLBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }

    fileprivate var isTagMark: Bool { self == UInt8(ascii: "<") || self == UInt8(ascii: ">") || isSlash }

    private var isSlash: Bool { self == UInt8(ascii: "/") }
}
