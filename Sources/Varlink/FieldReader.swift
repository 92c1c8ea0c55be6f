// SPDX-License-Identifier: Apache-2.0

/// Something other than a message out of which the fields of an object can be read: a table in a file. What is wrong
/// there it reports itself, and takes for absent.
public protocol VarlinkFieldReader {
    /// Reads a field.
    mutating func flag(_ name: String) -> Bool?
    /// Reads a field.
    mutating func integer(_ name: String) -> Int?
    /// Reads a field.
    mutating func number(_ name: String) -> Double?
    /// Reads a field.
    mutating func text(_ name: String) -> String?
    /// Reads a field.
    mutating func texts(_ name: String) -> [String]?
    /// Reads a field that is an object.
    mutating func object<Object: VarlinkReadable>(_ name: String) -> Object?
    /// Reads a field that is an array of objects.
    mutating func objects<Object: VarlinkReadable>(_ name: String) -> [Object]?
}

/// An object all of whose fields may be left out.
public protocol VarlinkReadable {
    /// Reads every field, in the order of the definition.
    init(from reader: inout some VarlinkFieldReader)
}
