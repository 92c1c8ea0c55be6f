// SPDX-License-Identifier: Apache-2.0

/// What a recording holds beside the kernel's messages: a word, and named values, such as
/// `watch id=3 host=192.0.2.7 port=5060`.
///
/// It is text in a packet's comment, so that whoever opens the file in Wireshark reads it as it is.
package struct RecordingMark: Hashable, Sendable, CustomStringConvertible {
    /// What it is.
    package var word: String
    /// Its values, in order.
    package var fields: [Field]

    /// One named value.
    package struct Field: Hashable, Sendable {
        /// Its name.
        package var name: String
        /// Its value, as text.
        package var value: String

        /// A named value.
        package init(_ name: String, _ value: some CustomStringConvertible) {
            self.name = name
            self.value = value.description
        }

        /// A named list. A comma within an item is escaped.
        package init(_ name: String, list: [String]) {
            self.name = name
            value = list.map { RecordingMark.escaped($0, RecordingMark.isSpecialInList) }.joined(separator: ",")
        }
    }

    /// A mark.
    package init(_ word: String, _ fields: [Field] = []) {
        self.word = word
        self.fields = fields
    }

    /// The value of that name; `nil` where it has none.
    package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    /// A value that is a list: items between commas, none of them empty.
    package func list(_ name: String) -> [String] {
        self[name]?.split(separator: ",").compactMap { Self.unescaped($0) } ?? []
    }

    /// The text of the file.
    package var description: String {
        ([word] + fields.map { "\($0.name)=\(Self.escaped($0.value))" }).joined(separator: " ")
    }

    /// A mark from its text; `nil` where it is none.
    package init?(text: String) {
        let parts = text.split(separator: " ")
        guard let word = parts.first, !word.contains("=") else { return nil }
        self.word = String(word)
        fields = []
        for part in parts.dropFirst() {
            guard let end = part.firstIndex(of: "="), let value = Self.unescaped(part[part.index(after: end)...]) else {
                return nil
            }
            fields.append(Field(String(part[..<end]), value))
        }
    }

    /// As in a URL: what would end a value stands as `%` and two hexadecimal digits. Names of interfaces and hosts are
    /// as odd as their users make them.
    private static func escaped(_ text: String, _ isSpecial: (UInt8) -> Bool = isSpecial) -> String {
        guard text.utf8.contains(where: isSpecial) else { return text }
        let bytes = text.utf8.flatMap { byte in
            isSpecial(byte) ? Array("%\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8) : [byte]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Blanks, control characters and the sign of the escape itself.
    private static func isSpecial(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "%")
    }

    private static func isSpecialInList(_ byte: UInt8) -> Bool { isSpecial(byte) || byte == UInt8(ascii: ",") }

    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(Substring(rest.prefix(2)), radix: 16) else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
