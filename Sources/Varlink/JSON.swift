// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The one way this module reads and writes JSON.
enum JSON {
    // Both are used only from calls that finish at once and are never reconfigured; Foundation documents concurrent use
    // of one instance as safe.
    private static let decoder = JSONDecoder()
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        // Sorted, so that equal values make equal messages; it costs a tenth of the encoding.
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        // JSON has no infinity. As a string it reaches the peer, who names the parameter; a thrown error would reach
        // nobody who could act on it.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        return encoder
    }()

    /// Decodes a message.
    ///
    /// - Throws: `DecodingError`.
    static func decode<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) throws -> T {
        try decoder.decode(type, from: Data(bytes))
    }

    /// Encodes `value` and ends it with the NUL of a message.
    static func encodeMessage(_ value: some Encodable) -> [UInt8] {
        var bytes: [UInt8] = []
        append(value, to: &bytes, room: 1)
        bytes.append(0)
        return bytes
    }

    /// Encodes `value` behind what there is. An `encode(to:)` that throws is a mistake in the program.
    ///
    /// - Parameter room: so many bytes will follow.
    static func append(_ value: some Encodable, to bytes: inout [UInt8], room: Int = 0) {
        do {
            let data = try encoder.encode(value)
            if bytes.isEmpty { bytes.reserveCapacity(data.count + room) }
            bytes.append(contentsOf: data)
        } catch {
            // The encoder refuses numbers that are none, which are texts here; all else can be written.
            preconditionFailure("\(type(of: value)) cannot be encoded: \(error)")
        }
    }

    /// Decodes the outermost object of a message, which must be UTF-8: `JSONDecoder` alone would accept UTF-16 with a
    /// byte order mark, and overlook bytes that are no character in fields it does not read.
    ///
    /// - Throws: what is wrong with the message; `misfit` names it when the object has not the members it should have.
    static func decodeEnvelope<T: Decodable>(
        _ type: T.Type, from bytes: [UInt8], misfit: (String) -> VarlinkViolation
    ) throws(VarlinkViolation) -> T {
        guard (try? UTF8Span(validating: bytes.span)) != nil else { throw .notUTF8 }
        do {
            return try decode(type, from: bytes)
        } catch let error as DecodingError {
            switch error {
            case .dataCorrupted(let context) where context.codingPath.isEmpty: throw .notJSON
            case .typeMismatch(_, let context) where context.codingPath.isEmpty: throw .notAnObject
            case .valueNotFound(_, let context) where context.codingPath.isEmpty: throw .notAnObject
            default: throw misfit(error.fault)
            }
        } catch {
            throw misfit("\(error)")
        }
    }
}

/// A member of an object by whatever name it has.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension KeyedDecodingContainer {
    /// Whether there is a value other than `null`.
    func holds(_ key: Key) throws -> Bool {
        try contains(key) && !decodeNil(forKey: key)
    }

    /// The value; when it was left out or is `null`, what an empty object stands for.
    func decodeOrEmpty<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try holds(key) ? decode(type, forKey: key) : JSON.decode(type, from: Array("{}".utf8))
    }
}

extension DecodingError {
    /// Where it went wrong, as "outer.inner[2]"; empty for the outermost value.
    var path: String {
        switch self {
        case .keyNotFound(let key, let context): (context.codingPath + [key]).joinedPath
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.joinedPath
        @unknown default: ""
        }
    }

    /// Where and what, in words.
    var fault: String {
        switch self {
        case .keyNotFound: "\(path) is missing"
        case .typeMismatch: "\(path) has the wrong type"
        case .valueNotFound: "\(path) is null"
        case .dataCorrupted: "\(path) has a value that is not allowed"
        @unknown default: "\(self)"
        }
    }
}

extension [any CodingKey] {
    /// The path as "outer.inner[2]".
    var joinedPath: String {
        reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
    }
}
