// SPDX-License-Identifier: Apache-2.0

/// Bytes that cannot have been written by any version of this program.
package struct DamagedState: Error, Hashable {
    /// Nothing more can be said of them.
    package init() {}
}

/// Writes values as numbered fields, so that an older version passes over what it does not know and a newer one finds
/// missing what an older one did not write.
///
/// The encoding is that of Protocol Buffers ("Encoding", wire types 0 and 2): `protoc --decode_raw` reads it.
package struct FieldWriter {
    /// What was written.
    package private(set) var bytes: [UInt8] = []

    /// Begins with nothing.
    package init() {}

    /// Writes a number.
    package mutating func put(_ field: Int, _ number: UInt64) {
        putNumber(UInt64(field) << 3)
        putNumber(number)
    }

    /// Writes a number that may be negative, small ones of either sign in few bytes.
    package mutating func put(_ field: Int, signed number: Int64) {
        put(field, UInt64(bitPattern: (number << 1) ^ (number >> 63)))
    }

    /// Writes bytes.
    package mutating func put(_ field: Int, _ value: some Collection<UInt8>) {
        putNumber(UInt64(field) << 3 | 2)
        putNumber(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    /// Writes text; nothing for `nil`.
    package mutating func put(_ field: Int, _ text: String?) {
        guard let text else { return }
        put(field, text.utf8)
    }

    /// Writes fields within a field.
    package mutating func put(_ field: Int, _ write: (inout FieldWriter) -> Void) {
        let start = begin(field)
        write(&self)
        end(start)
    }

    /// Begins a field whose bytes are what is written until ``end(_:)``, which is told what this returns.
    package mutating func begin(_ field: Int) -> Int {
        putNumber(UInt64(field) << 3 | 2)
        return bytes.count
    }

    /// Ends a field that begins there.
    package mutating func end(_ start: Int) {
        // Its length comes before it.
        for (place, byte) in Varint(UInt64(bytes.count - start)).enumerated() { bytes.insert(byte, at: start + place) }
    }

    /// Makes room for so many more bytes at once.
    package mutating func reserve(_ count: Int) { bytes.reserveCapacity(bytes.count + count) }

    private mutating func putNumber(_ number: UInt64) {
        for byte in Varint(number) { bytes.append(byte) }
    }

    /// The bytes of a number: seven bits in each, the lowest first, and the eighth set in all but the last.
    private struct Varint: Sequence, IteratorProtocol {
        private var rest: UInt64?

        init(_ number: UInt64) { rest = number }

        mutating func next() -> UInt8? {
            guard let number = rest else { return nil }
            rest = number < 0x80 ? nil : number >> 7
            return UInt8(truncatingIfNeeded: number & 0x7F) | (number < 0x80 ? 0 : 0x80)
        }
    }
}

/// Reads what a ``FieldWriter`` wrote, field by field.
package struct FieldReader {
    /// What stands in a field.
    package struct Value {
        fileprivate let number: UInt64?
        fileprivate let content: ArraySlice<UInt8>

        /// As a number.
        package func unsigned() throws(DamagedState) -> UInt64 {
            guard let number else { throw DamagedState() }
            return number
        }

        /// As a number in fewer bits.
        package func unsigned<T: FixedWidthInteger & UnsignedInteger>(as type: T.Type) throws(DamagedState) -> T {
            guard let value = T(exactly: try unsigned()) else { throw DamagedState() }
            return value
        }

        /// As a number that may be negative.
        package func signed() throws(DamagedState) -> Int64 {
            let number = try unsigned()
            return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
        }

        /// As bytes.
        package func bytes() throws(DamagedState) -> ArraySlice<UInt8> {
            if number != nil { throw DamagedState() }
            return content
        }

        /// As text.
        package func text() throws(DamagedState) -> String { String(decoding: try bytes(), as: UTF8.self) }

        /// As one of a few words.
        package func choice<T: RawRepresentable<String>>() throws(DamagedState) -> T {
            guard let choice = T(rawValue: try text()) else { throw DamagedState() }
            return choice
        }

        /// As fields of its own.
        package func fields() throws(DamagedState) -> FieldReader { FieldReader(try bytes()) }
    }

    private var rest: ArraySlice<UInt8>

    /// Reads from the beginning of `bytes`.
    package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// The next field; `nil` after the last one.
    package mutating func next() throws(DamagedState) -> (field: Int, value: Value)? {
        if rest.isEmpty { return nil }
        let key = try takeNumber()
        guard let field = Int(exactly: key >> 3) else { throw DamagedState() }
        switch key & 7 {
        case 0: return (field, Value(number: try takeNumber(), content: []))
        case 2:
            let count = try takeNumber()
            guard count <= rest.count else { throw DamagedState() }
            defer { rest = rest.dropFirst(Int(count)) }
            return (field, Value(number: nil, content: rest.prefix(Int(count))))
        default: throw DamagedState()
        }
    }

    private mutating func takeNumber() throws(DamagedState) -> UInt64 {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while let byte = rest.popFirst() {
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
            if shift > 63 { break }
        }
        throw DamagedState()
    }
}
