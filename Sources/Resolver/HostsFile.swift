// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The text of a hosts(5) file, searched for one name at a time.
///
/// Kept as the bytes that it is: the file of a machine that blocks advertisements by it has a hundred thousand lines,
/// and a table of them would cost more to make than all lookups in them.
struct HostsFile {
    private let text: [UInt8]

    init(_ text: [UInt8]) {
        self.text = text
    }

    /// The addresses that stand beside a name, by family, in their order; `nil` if it does not stand in the file at
    /// all. Names are compared without regard to the case of ASCII's letters.
    func addresses(of name: String) -> [IPAddress.Family: [IPAddress]]? {
        let wanted = name.utf8.map(\.lowercased)
        guard !wanted.isEmpty else { return nil }
        var entry: [IPAddress.Family: [IPAddress]] = [:]
        text.withUnsafeBufferPointer { text in
            for position in occurrences(of: wanted, in: text) {
                guard let address = address(beside: position, in: text) else { continue }
                if entry[address.family]?.contains(address) != true {
                    entry[address.family, default: []].append(address)
                }
            }
        }
        return entry.isEmpty ? nil : entry
    }

    /// Where `wanted` stands as a whole word.
    private func occurrences(of wanted: [UInt8], in text: UnsafeBufferPointer<UInt8>) -> [Int] {
        var found: [Int] = []
        guard let first = wanted.first, text.count >= wanted.count else { return found }
        for start in 0...text.count - wanted.count where text[start].lowercased == first {
            let end = start + wanted.count
            guard start > 0, Self.isBlank(text[start - 1]),
                end == text.count || Self.isBlank(text[end]) || Self.endsLine(text[end]),
                wanted.indices.allSatisfy({ text[start + $0].lowercased == wanted[$0] })
            else { continue }
            found.append(start)
        }
        return found
    }

    /// The address at the start of the line that `position` is in; `nil` in a comment, and where none stands there.
    private func address(beside position: Int, in text: UnsafeBufferPointer<UInt8>) -> IPAddress? {
        var start = position
        while start > 0, text[start - 1] != UInt8(ascii: "\n") { start -= 1 }
        let line = text[start..<position]
        guard !line.contains(UInt8(ascii: "#")) else { return nil }
        let word = line.drop(while: Self.isBlank).prefix { !Self.isBlank($0) }
        // The zone of a link-local address ("fe80::1%eth0") is not part of it.
        return IPAddress(String(decoding: word.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self))
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private static func endsLine(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "#")
    }
}
