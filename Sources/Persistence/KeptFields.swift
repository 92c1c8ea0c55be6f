// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

// How what is told is kept: in numbered fields, of which each has its number by its name. So a field that comes to the
// definition, wherever it stands there, is kept as well, and changes nothing of what was kept before.

/// Writes an object to be kept.
struct KeptFieldWriter: VarlinkFieldWriter {
    private(set) var fields = FieldWriter()
    /// Most events fit in it, so that they are written without growing.
    private static let usualSize = 512

    /// The bytes of `object`.
    static func bytes(of object: some VarlinkWritable) -> [UInt8] {
        var writer = KeptFieldWriter()
        writer.fields.reserve(usualSize)
        object.write(to: &writer)
        // As long as they are and no longer: events are kept by the ten thousand.
        return writer.fields.bytes.withUnsafeBufferPointer { Array($0) }
    }

    mutating func put(_ name: String, _ value: Bool) { fields.put(keptNumber(of: name), value ? 1 : 0) }
    mutating func put(_ name: String, _ value: Int) { fields.put(keptNumber(of: name), signed: Int64(value)) }
    mutating func put(_ name: String, _ value: Double) { fields.put(keptNumber(of: name), value.bitPattern) }
    mutating func put(_ name: String, _ value: String) { fields.put(keptNumber(of: name), value) }
    mutating func put(_ name: String, _ value: Timestamp) {
        fields.put(keptNumber(of: name), signed: value.milliseconds)
    }
    mutating func put(_ name: String, _ values: [Int]) { for value in values { put(name, value) } }
    mutating func put(_ name: String, _ values: [String]) { for value in values { put(name, value) } }
    mutating func put(_ name: String, _ value: some VarlinkWritable) {
        let start = fields.begin(keptNumber(of: name))
        value.write(to: &self)
        fields.end(start)
    }
    mutating func put(_ name: String, _ values: [some VarlinkWritable]) { for value in values { put(name, value) } }
}

/// Reads an object that was kept.
struct KeptFieldReader: VarlinkFieldReader {
    private var values: [(number: Int, value: FieldReader.Value)] = []
    /// Whether these bytes cannot have been written by any version of this program.
    private(set) var isDamaged = false

    /// The object that `bytes` are.
    static func object<Object: VarlinkObject>(_ bytes: some Sequence<UInt8>) throws(DamagedState) -> Object {
        var reader = KeptFieldReader(ArraySlice(bytes))
        guard let object = Object(from: &reader), !reader.isDamaged else { throw DamagedState() }
        return object
    }

    private init(_ bytes: ArraySlice<UInt8>) {
        var fields = FieldReader(bytes)
        do throws(DamagedState) {
            while let next = try fields.next() { values.append((next.field, next.value)) }
        } catch {
            isDamaged = true
        }
    }

    mutating func flag(_ name: String) -> Bool? {
        read(name) { value throws(DamagedState) in try value.unsigned() != 0 }
    }

    mutating func integer(_ name: String) -> Int? {
        read(name) { value throws(DamagedState) in Int(try value.signed()) }
    }

    mutating func number(_ name: String) -> Double? {
        read(name) { value throws(DamagedState) in Double(bitPattern: try value.unsigned()) }
    }

    mutating func text(_ name: String) -> String? { read(name) { value throws(DamagedState) in try value.text() } }

    mutating func time(_ name: String) -> Timestamp? {
        read(name) { value throws(DamagedState) in Timestamp(milliseconds: try value.signed()) }
    }

    mutating func integers(_ name: String) -> [Int]? {
        readAll(name) { value throws(DamagedState) in Int(try value.signed()) }
    }

    mutating func texts(_ name: String) -> [String]? {
        readAll(name) { value throws(DamagedState) in try value.text() }
    }

    mutating func object<Object: VarlinkObject>(_ name: String) -> Object? {
        read(name) { value throws(DamagedState) in try Self.object(try value.bytes()) }
    }

    mutating func objects<Object: VarlinkObject>(_ name: String) -> [Object]? {
        readAll(name) { value throws(DamagedState) in try Self.object(try value.bytes()) }
    }

    mutating func refuse(_ name: String) { isDamaged = true }

    mutating func lacks(_ name: String) { isDamaged = true }

    /// An empty array is written as none.
    mutating func lackingElements<Element>(_ name: String) -> [Element]? { [] }

    /// The last one of a number, as with Protocol Buffers.
    private mutating func read<Value>(
        _ name: String, _ take: (FieldReader.Value) throws(DamagedState) -> Value
    ) -> Value? {
        let number = keptNumber(of: name)
        guard let last = values.last(where: { $0.number == number }) else { return nil }
        return taken(last.value, take)
    }

    private mutating func readAll<Value>(
        _ name: String, _ take: (FieldReader.Value) throws(DamagedState) -> Value
    ) -> [Value]? {
        let number = keptNumber(of: name)
        var all: [Value] = []
        for (each, value) in values where each == number {
            if let value = taken(value, take) { all.append(value) }
        }
        return all.isEmpty ? nil : all
    }

    private mutating func taken<Value>(
        _ value: FieldReader.Value, _ take: (FieldReader.Value) throws(DamagedState) -> Value
    ) -> Value? {
        do throws(DamagedState) {
            return try take(value)
        } catch {
            isDamaged = true
            return nil
        }
    }
}

/// The number of a field: its name's FNV-1a hash (draft-eastlake-fnv), folded to 16 bits.
package func keptNumber(of name: String) -> Int {
    var name = name
    let hash = name.withUTF8 { $0.reduce(UInt32(0x811C_9DC5)) { ($0 ^ UInt32($1)) &* 0x0100_0193 } }
    return Int(hash >> 16 ^ hash & 0xFFFF)
}
