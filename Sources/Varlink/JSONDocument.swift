// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneJansson

/// What bytes say in JSON, as jansson read it.
///
/// Nobody changes the tree once it is there, so any thread may read it.
final class JSONDocument: @unchecked Sendable {
    private let root: UnsafeMutablePointer<json_t>

    /// Reads UTF-8.
    ///
    /// - Throws: `notUTF8` and `notJSON`.
    init(_ bytes: some Collection<UInt8>) throws(VarlinkViolation) {
        var failure = json_error_t()
        // Any value, so that one that is no object can be told from what is no JSON; in a text, NUL is a character like
        // others.
        let flags = Int(JSON_DECODE_ANY | JSON_ALLOW_NUL)
        var tree = Self.load(bytes, flags, &failure)
        if tree == nil, json_error_code(&failure) == json_error_numeric_overflow {
            // An integer of more than 64 bits is not the end of the message, unless no double has room for it: who
            // reads its field refuses it by name.
            tree = Self.load(bytes, flags | Int(JSON_DECODE_INT_AS_REAL), &failure)
        }
        guard let tree else {
            throw json_error_code(&failure) == json_error_invalid_utf8 ? .notUTF8 : .notJSON
        }
        root = tree
    }

    deinit { json_decref(root) }

    private static func load(
        _ bytes: some Collection<UInt8>, _ flags: Int, _ failure: inout json_error_t
    ) -> UnsafeMutablePointer<json_t>? {
        bytes.withContiguousStorageIfAvailable { bytes in
            bytes.withMemoryRebound(to: CChar.self) { json_loadb($0.baseAddress, $0.count, flags, &failure) }
        }
            ?? Array(bytes).withUnsafeBytes { bytes in
                json_loadb(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, flags, &failure)
            }
    }

    /// The objects in the array that the document is; `nil` where it is none, or one is no such object.
    func objects<Object: VarlinkObject>() -> [Object]? {
        let reading = JSONReading(of: self, refusesUnknown: false)
        let objects: [Object]? = JSONFields.elements(of: root, "", reading) { JSONFields.read($0, $1, reading) }
        return reading.fault == nil ? objects : nil
    }

    /// The members of the object that the document is.
    ///
    /// - Parameter refusesUnknown: whether members that nobody asks for are wrong.
    /// - Throws: `notAnObject`.
    func object(refusesUnknown: Bool = false) throws(VarlinkViolation) -> JSONFields {
        let reading = JSONReading(of: self, refusesUnknown: refusesUnknown)
        guard let object = JSONFields(root, reading) else { throw .notAnObject }
        return object
    }
}

/// One reading of a document: what is wrong with it, as far as the first thing goes.
final class JSONReading {
    /// What is wrong, and where.
    struct Fault {
        /// As "outer.inner[2]".
        var path: String
        let problem: String

        var description: String { "\(path) \(problem)" }
    }

    /// Whether members that nobody asks for are wrong too.
    fileprivate let refusesUnknown: Bool
    fileprivate(set) var fault: Fault?
    /// As long as it is read it is there.
    private let document: JSONDocument

    fileprivate init(of document: JSONDocument, refusesUnknown: Bool) {
        (self.document, self.refusesUnknown) = (document, refusesUnknown)
    }

    fileprivate func wrong<Result>(_ path: String) -> Result? {
        note(path, "has the wrong type")
        return nil
    }

    fileprivate func note(_ path: String, _ problem: String) {
        if fault == nil { fault = Fault(path: path, problem: problem) }
    }
}

/// The members of an object, read by their names. They are there as long as the document.
struct JSONFields: VarlinkFieldReader {
    private typealias Value = UnsafeMutablePointer<json_t>

    private let object: UnsafeMutablePointer<json_t>
    let reading: JSONReading
    private var asked: [String] = []

    /// `nil` for a value that is no object.
    fileprivate init?(_ value: UnsafeMutablePointer<json_t>, _ reading: JSONReading) {
        guard value.pointee.type == JSON_OBJECT else { return nil }
        (object, self.reading) = (value, reading)
    }

    mutating func flag(_ name: String) -> Bool? {
        guard let value = value(name) else { return nil }
        switch value.pointee.type {
        case JSON_TRUE: return true
        case JSON_FALSE: return false
        default: return reading.wrong(name)
        }
    }

    mutating func integer(_ name: String) -> Int? { value(name).flatMap { Self.integer($0) ?? reading.wrong(name) } }

    mutating func number(_ name: String) -> Double? {
        guard let value = value(name) else { return nil }
        switch value.pointee.type {
        case JSON_INTEGER, JSON_REAL: return json_number_value(value)
        default: return reading.wrong(name)
        }
    }

    mutating func text(_ name: String) -> String? { value(name).flatMap { Self.text($0) ?? reading.wrong(name) } }

    mutating func integers(_ name: String) -> [Int]? { elements(name) { value, _ in Self.integer(value) } }

    mutating func texts(_ name: String) -> [String]? { elements(name) { value, _ in Self.text(value) } }

    mutating func object<Object: VarlinkObject>(_ name: String) -> Object? {
        guard let value = value(name) else { return nil }
        return Self.read(value, name, reading) ?? reading.wrong(name)
    }

    mutating func objects<Object: VarlinkObject>(_ name: String) -> [Object]? {
        let reading = reading
        return elements(name) { Self.read($0, $1, reading) }
    }

    mutating func refuse(_ name: String) { reading.note(name, "has a value that is not allowed") }

    mutating func lacks(_ name: String) {
        reading.note(name, json_object_get(object, name) == nil ? "is missing" : "is null")
    }

    /// What the object is. Where it is left out, or `null`, what an empty one is.
    mutating func objectOrEmpty<Object: VarlinkObject>(_ name: String) -> Object? {
        if let value = value(name) { return Self.read(value, name, reading) ?? reading.wrong(name) }
        guard let empty = json_object() else { return nil }
        defer { json_decref(empty) }
        return Self.read(empty, name, reading)
    }

    fileprivate static func read<Object: VarlinkObject>(
        _ value: UnsafeMutablePointer<json_t>, _ name: String, _ reading: JSONReading
    ) -> Object? {
        let isFirst = reading.fault == nil
        guard var inner = JSONFields(value, reading) else { return nil }
        let object = inner.whole(Object.self)
        if isFirst, let fault = reading.fault { reading.fault?.path = "\(name).\(fault.path)" }
        return object
    }

    /// What the object is, with no other members where those are refused.
    mutating func whole<Object: VarlinkObject>(_: Object.Type = Object.self) -> Object? {
        let result = Object(from: &self)
        guard reading.refusesUnknown, reading.fault == nil else { return result }
        var member = json_object_iter(object)
        while let place = member {
            let name = String(cString: json_object_iter_key(place))
            // By bytes, as jansson compares; Swift takes a composed and a decomposed letter for the same.
            if !asked.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
                refuse(name)
                break
            }
            member = json_object_iter_next(object, place)
        }
        return result
    }

    /// The value; `nil` where there is none, and for `null`.
    private mutating func value(_ name: String) -> Value? {
        if reading.refusesUnknown { asked.append(name) }
        guard let value = json_object_get(object, name), value.pointee.type != JSON_NULL else { return nil }
        return value
    }

    private static func integer(_ value: Value) -> Int? {
        switch value.pointee.type {
        case JSON_INTEGER: Int(exactly: json_integer_value(value))
        // Larger ones may have been another integer before they were a double.
        case JSON_REAL where abs(json_real_value(value)) < 0x1p53: Int(exactly: json_real_value(value))
        default: nil
        }
    }

    private static func text(_ value: Value) -> String? {
        guard let start = json_string_value(value) else { return nil }
        return start.withMemoryRebound(to: UInt8.self, capacity: json_string_length(value)) { start in
            String(decoding: UnsafeBufferPointer(start: start, count: json_string_length(value)), as: UTF8.self)
        }
    }

    private mutating func elements<Element>(_ name: String, _ take: (Value, String) -> Element?) -> [Element]? {
        guard let value = value(name) else { return nil }
        return Self.elements(of: value, name, reading, take)
    }

    fileprivate static func elements<Element>(
        of value: UnsafeMutablePointer<json_t>, _ name: String, _ reading: JSONReading,
        _ take: (UnsafeMutablePointer<json_t>, String) -> Element?
    ) -> [Element]? {
        guard value.pointee.type == JSON_ARRAY else { return reading.wrong(name) }
        var elements: [Element] = []
        for index in 0..<json_array_size(value) {
            let place = "\(name)[\(index)]"
            guard let value = json_array_get(value, index), let element = take(value, place) else {
                return reading.wrong(place)
            }
            elements.append(element)
        }
        return elements
    }
}

extension VarlinkObject {
    /// Reads JSON. What it does not know it passes over.
    ///
    /// - Returns: `nil` for what is none, or no such object.
    public init?(json: some Collection<UInt8>) {
        guard let document = try? JSONDocument(json), var fields = try? document.object(),
            let object = fields.whole(Self.self), fields.reading.fault == nil
        else { return nil }
        self = object
    }
}

extension Array where Element: VarlinkObject {
    /// Reads JSON. What it does not know it passes over.
    ///
    /// - Returns: `nil` for what is none, or no array of such objects.
    public init?(json: some Collection<UInt8>) {
        guard let document = try? JSONDocument(json), let objects: [Element] = document.objects() else { return nil }
        self = objects
    }
}
