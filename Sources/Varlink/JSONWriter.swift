// SPDX-License-Identifier: Apache-2.0

/// Writes objects as JSON (RFC 8259), without blanks.
///
/// Not by the library that reads it: that one would have a tree made of each value first, to be written once and
/// thrown away.
struct JSONWriter: VarlinkFieldWriter {
    private(set) var bytes: [UInt8]
    private var isFirst = true

    /// Writes behind what there is.
    init(behind bytes: [UInt8] = []) { self.bytes = bytes }

    /// Writes an object.
    mutating func append(_ object: some VarlinkWritable) {
        let outer = isFirst
        isFirst = true
        bytes.append(UInt8(ascii: "{"))
        object.write(to: &self)
        bytes.append(UInt8(ascii: "}"))
        isFirst = outer
    }

    /// Makes room for so many bytes in all.
    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Writes an element of an array.
    mutating func append(_ object: some VarlinkWritable, isFirst: Bool) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        append(object)
    }

    /// All that was written, and `tail`. Nothing is left of it here.
    mutating func finish(_ tail: [UInt8] = []) -> [UInt8] {
        bytes += tail
        defer { bytes = [] }
        return bytes
    }

    mutating func put(_ name: String, _ value: Bool) {
        key(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func put(_ name: String, _ value: Int) {
        key(name)
        bytes.append(contentsOf: "\(value)".utf8)
    }

    mutating func put(_ name: String, _ value: Double) {
        key(name)
        // JSON has no infinity. As a string it reaches the peer, who names the parameter; to stop here would reach
        // nobody who could act on it.
        guard value.isFinite else { return append(value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity") }
        bytes.append(contentsOf: (Int(exactly: value).map { "\($0)" } ?? "\(value)").utf8)
    }

    mutating func put(_ name: String, _ value: String) {
        key(name)
        append(value)
    }

    mutating func put(_ name: String, _ value: Timestamp) { put(name, value.description) }

    mutating func put(_ name: String, _ values: [Int]) {
        key(name)
        array(values) { $0.bytes.append(contentsOf: "\($1)".utf8) }
    }

    mutating func put(_ name: String, _ values: [String]) {
        key(name)
        array(values) { $0.append($1) }
    }

    mutating func put(_ name: String, _ value: some VarlinkWritable) {
        key(name)
        append(value)
    }

    mutating func put(_ name: String, _ values: [some VarlinkWritable]) {
        key(name)
        append(values)
    }

    /// Writes objects in an array.
    mutating func append(_ objects: [some VarlinkWritable]) { array(objects) { $0.append($1) } }

    private mutating func key(_ name: String) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        append(name)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func array<Value>(_ values: [Value], _ append: (inout JSONWriter, Value) -> Void) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(&self, value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func append(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        if text.utf8.allSatisfy({ Self.escape(of: $0) == nil }) {
            bytes.append(contentsOf: text.utf8)
        } else {
            for byte in text.utf8 {
                if let escape = Self.escape(of: byte) {
                    bytes.append(contentsOf: escape.utf8)
                } else {
                    bytes.append(byte)
                }
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// How a character is written that may not stand in a string as it is (RFC 8259 section 7); `nil` where it may.
    private static func escape(of byte: UInt8) -> String? {
        switch byte {
        case UInt8(ascii: "\""): "\\\""
        case UInt8(ascii: "\\"): "\\\\"
        case UInt8(ascii: "\n"): "\\n"
        case UInt8(ascii: "\r"): "\\r"
        case UInt8(ascii: "\t"): "\\t"
        case 0..<0x10: "\\u000" + String(byte, radix: 16)
        case 0x10..<0x20: "\\u00" + String(byte, radix: 16)
        default: nil
        }
    }
}

extension VarlinkWritable {
    /// In JSON, as a message has it.
    public var json: [UInt8] {
        var writer = JSONWriter()
        writer.append(self)
        return writer.finish()
    }
}

extension Array where Element: VarlinkWritable {
    /// In JSON.
    public var json: [UInt8] {
        var writer = JSONWriter()
        writer.append(self)
        return writer.finish()
    }
}
