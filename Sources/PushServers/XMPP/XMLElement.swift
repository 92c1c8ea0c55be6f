// SPDX-License-Identifier: Apache-2.0

/// An element of XML that was read whole.
struct XMLElement: Hashable, Sendable {
    /// Without a prefix.
    let name: String
    /// The namespace that the name is of; "" for none.
    let namespace: String
    /// The attributes without a namespace, by their names. Nothing in use here has others.
    let attributes: [String: String]
    /// The elements in it.
    var children: [XMLElement] = []
    /// The text in it, without that of its children.
    var text = ""
    /// Whether it was written as one tag: `<a/>`.
    var isOneTag = false

    /// Whether it has that name.
    func `is`(_ name: String, _ namespace: String) -> Bool { self.name == name && self.namespace == namespace }

    /// The first element in it with that name.
    func child(_ name: String, _ namespace: String) -> XMLElement? { children.first { $0.is(name, namespace) } }

    /// How many bytes it ends with that are the same each time, for who only looks for its end.
    var end: [UInt8] { Array((isOneTag ? ">" : "</\(name)>").utf8) }
}

extension String {
    /// As it stands in an attribute's value between apostrophes, or in text. Blanks other than a space would be read as
    /// spaces (XML 1.0, section 3.3.3).
    var asXML: String {
        utf8.reduce(into: [UInt8]()) { result, byte in
            switch byte {
            case UInt8(ascii: "&"): result += "&amp;".utf8
            case UInt8(ascii: "<"): result += "&lt;".utf8
            case UInt8(ascii: ">"): result += "&gt;".utf8
            case UInt8(ascii: "'"): result += "&apos;".utf8
            case UInt8(ascii: "\""): result += "&quot;".utf8
            case 0x09, 0x0A, 0x0D: result += "&#\(byte);".utf8
            default: result.append(byte)
            }
        }.asText
    }
}

extension [UInt8] {
    fileprivate var asText: String { String(decoding: self, as: UTF8.self) }
}
