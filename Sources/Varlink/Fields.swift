// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What can be written as an object.
public protocol VarlinkWritable {
    /// Writes every field that has a value, in the order of the definition.
    func write(to fields: inout some VarlinkFieldWriter)
}

/// An object of an interface: what has fields. Parameters, replies and errors are objects.
public protocol VarlinkObject: VarlinkWritable, Hashable, Sendable {
    /// Reads every field, in the order of the definition; `nil` where one that must be there is not.
    init?(from fields: inout some VarlinkFieldReader)
}

/// What the fields of an object are read out of: a message, a table in a file, or what was kept. What is wrong there it
/// notes itself, and takes for absent.
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
    mutating func time(_ name: String) -> Timestamp?
    /// Reads a field.
    mutating func duration(_ name: String) -> Duration?
    /// Reads a field.
    mutating func integers(_ name: String) -> [Int]?
    /// Reads a field.
    mutating func texts(_ name: String) -> [String]?
    /// Reads a field that is an object.
    mutating func object<Object: VarlinkObject>(_ name: String) -> Object?
    /// Reads a field that is an array of objects.
    mutating func objects<Object: VarlinkObject>(_ name: String) -> [Object]?
    /// Notes that what was read of a field is not among its values. `name` may have an index: "names[2]".
    mutating func refuse(_ name: String)
    /// Notes that a field without which there is no object was not read.
    mutating func lacks(_ name: String)
    /// What an array that was not read is where there must be one.
    mutating func lackingElements<Element>(_ name: String) -> [Element]?
}

extension VarlinkFieldReader {
    /// Reads a field that is a text of RFC 3339.
    public mutating func time(_ name: String) -> Timestamp? {
        guard let text = text(name) else { return nil }
        if let time = Timestamp(text) { return time }
        refuse(name)
        return nil
    }

    /// Reads a field that is a number of milliseconds.
    public mutating func duration(_ name: String) -> Duration? { integer(name).map { .milliseconds($0) } }

    /// Reads a field that is one of a few words.
    public mutating func choice<Choice: RawRepresentable<String>>(_ name: String) -> Choice? {
        guard let text = text(name) else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        refuse(name)
        return nil
    }

    /// Reads a field that is an array of such words.
    public mutating func choices<Choice: RawRepresentable<String>>(_ name: String) -> [Choice]? {
        guard let texts = texts(name) else { return nil }
        let choices = texts.map(Choice.init)
        if let index = choices.firstIndex(where: { $0 == nil }) {
            refuse("\(name)[\(index)]")
            return nil
        }
        return choices.compactMap(\.self)
    }

    /// Notes that a field without which there is no object was not read.
    public mutating func lacking<Value>(_ name: String) -> Value? {
        lacks(name)
        return nil
    }

    /// Notes that it was not read.
    public mutating func lackingElements<Element>(_ name: String) -> [Element]? { lacking(name) }
}

/// What the fields of an object are written into: a message, or what is kept.
public protocol VarlinkFieldWriter {
    /// Writes a field.
    mutating func put(_ name: String, _ value: Bool)
    /// Writes a field.
    mutating func put(_ name: String, _ value: Int)
    /// Writes a field.
    mutating func put(_ name: String, _ value: Double)
    /// Writes a field.
    mutating func put(_ name: String, _ value: String)
    /// Writes a field.
    mutating func put(_ name: String, _ value: Timestamp)
    /// Writes a field.
    mutating func put(_ name: String, _ values: [Int])
    /// Writes a field.
    mutating func put(_ name: String, _ values: [String])
    /// Writes a field that is an object.
    mutating func put(_ name: String, _ value: some VarlinkWritable)
    /// Writes a field that is an array of objects.
    mutating func put(_ name: String, _ values: [some VarlinkWritable])
}

extension VarlinkFieldWriter {
    /// Writes a field in whole milliseconds, as many as a number can be.
    public mutating func put(_ name: String, _ value: Duration) { put(name, Int(clamping: value.milliseconds)) }
}

/// No fields.
public struct VarlinkEmpty: VarlinkObject {
    /// No fields.
    public init() {}
    /// Reads nothing.
    public init(from fields: inout some VarlinkFieldReader) {}
    /// Writes nothing.
    public func write(to fields: inout some VarlinkFieldWriter) {}
}
