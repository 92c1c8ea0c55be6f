// SPDX-License-Identifier: Apache-2.0

/// A received call: its envelope is read, its parameters are read when the method is known.
public struct VarlinkCall: Sendable {
    /// How many replies the caller expects. The three flags of the envelope exclude each other.
    public enum Mode: Hashable, Sendable, CaseIterable {
        /// One; no flag is set.
        case single
        /// None, not even an error (`oneway`).
        case oneway
        /// Any number, each but the last with `continues` (`more`).
        case more
        /// One, after which the connection speaks another protocol (`upgrade`).
        case upgrade
    }

    /// The method's name with its interface.
    public let method: String
    /// How many replies the caller expects.
    public let mode: Mode

    private let message: [UInt8]

    /// Reads a message without its NUL.
    ///
    /// - Throws: what makes it no call. Members that the protocol does not know are passed over.
    public init(_ message: [UInt8]) throws(VarlinkViolation) {
        try CallShape.check(message)
        let envelope = try JSON.decodeEnvelope(Envelope.self, from: message) { .notACall($0) }
        let flags: [(Bool?, Mode)] = [
            (envelope.oneway, .oneway), (envelope.more, .more), (envelope.upgrade, .upgrade),
        ]
        let modes = flags.filter { $0.0 == true }
        guard modes.count <= 1 else { throw .notACall("oneway, more and upgrade exclude each other") }
        method = envelope.method
        mode = modes.first?.1 ?? .single
        self.message = message
    }

    /// The call's parameters. Left out, `null` and `{}` mean the same.
    ///
    /// - Throws: `org.varlink.service.InvalidParameter` with the name of the first parameter that is unknown, missing,
    ///   of the wrong type or of a value that is not allowed.
    public func parameters<P: VarlinkParameters>(as type: P.Type) throws(VarlinkFailure) -> P {
        do {
            return try JSON.decode(Body<P>.self, from: message).parameters
        } catch {
            throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: Self.culprit(error, in: message)))
        }
    }

    private static func culprit(_ error: any Error, in message: [UInt8]) -> String {
        var path = (error as? DecodingError)?.path ?? ""
        if path.isEmpty { path = (try? JSON.decode(NumberSearch.self, from: message))?.onlyPath ?? "" }
        let root = Envelope.CodingKeys.parameters.stringValue
        return path.hasPrefix(root + ".") ? String(path.dropFirst(root.count + 1)) : path.isEmpty ? root : path
    }

    private struct Envelope: Decodable {
        let method: String
        let oneway: Bool?
        let more: Bool?
        let upgrade: Bool?

        enum CodingKeys: CodingKey {
            case method, parameters, oneway, more, upgrade
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            method = try container.decode(String.self, forKey: .method)
            oneway = try container.decodeIfPresent(Bool.self, forKey: .oneway)
            more = try container.decodeIfPresent(Bool.self, forKey: .more)
            upgrade = try container.decodeIfPresent(Bool.self, forKey: .upgrade)
        }
    }

    private struct Body<P: VarlinkParameters>: Decodable {
        let parameters: P

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Envelope.CodingKeys.self)
            if try container.holds(.parameters) {
                try P.refuseUnknownFields(container.superDecoder(forKey: .parameters))
            }
            parameters = try container.decodeOrEmpty(P.self, forKey: .parameters)
        }
    }
}

/// Finds the number that is no integer. `JSONDecoder` refuses `1.5` or `1e30` for an integer without saying where it
/// stands; asking it for every number once more, and only when it has refused one, does say it.
private struct NumberSearch: Decodable {
    /// The most values that are looked at, so that a hostile message costs no more than an honest one.
    private static let mostValues = 256

    private var paths: [String] = []
    private var visited = 0

    /// Where the number stands; `nil` when several could be meant, since the wrong name would be worse than none.
    var onlyPath: String? { paths.count == 1 ? paths[0] : nil }

    init(from decoder: any Decoder) throws {
        search(decoder)
    }

    private mutating func search(_ decoder: any Decoder) {
        visited += 1
        guard paths.count < 2, visited < Self.mostValues else { return }
        if let object = try? decoder.container(keyedBy: AnyKey.self) {
            for key in object.allKeys {
                if let member = try? object.superDecoder(forKey: key) { search(member) }
            }
        } else if var array = try? decoder.unkeyedContainer() {
            while !array.isAtEnd, let element = try? array.superDecoder() { search(element) }
        } else if let value = try? decoder.singleValueContainer() {
            let isNumber = (try? value.decode(Double.self)) != nil
            if isNumber, (try? value.decode(Int.self)) == nil { paths.append(decoder.codingPath.joinedPath) }
        }
    }
}
