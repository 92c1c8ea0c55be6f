// SPDX-License-Identifier: Apache-2.0

/// An element of an XML stream that is looked for where the next stanza begins.
enum XMPPElement {
    /// Compares bytes that begin at the boundary between two stanzas with an element of this name.
    ///
    /// - Parameter isMeant: whether it is the element, by the attributes of its start tag.
    static func match(
        _ bytes: ArraySlice<UInt8>, name: String, where isMeant: (TagScanner) -> Bool
    ) -> AnswerPattern.Match {
        let start = Array("<\(name)".utf8)
        guard bytes.starts(with: start.prefix(bytes.count)) else { return .mismatch }
        var scanner = TagScanner(rest: bytes.dropFirst(start.count))
        switch scanner.readAttributes() {
        case .malformed: return .mismatch
        case .unfinished: return bytes.count < AnswerPattern.longest ? .beginning : .mismatch
        case .ended: break
        }
        guard isMeant(scanner) else { return .mismatch }
        var element = XMPPFraming()
        let length = element.advance(bytes)
        if element.hasEnded { return .whole(length: length) }
        return element.isLost || bytes.count >= AnswerPattern.longest ? .mismatch : .beginning
    }
}

/// Reads the attributes of a start tag, from behind its name to its end.
struct TagScanner {
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
