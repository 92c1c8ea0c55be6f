// SPDX-License-Identifier: Apache-2.0

/// A value of D-Bus's (D-Bus specification, "Type System"), as far as anybody here uses them.
package indirect enum BusValue: Hashable, Sendable {
    /// Text, `s`.
    case string(String)
    /// The path of an object, `o`.
    case path(String)
    /// `b`.
    case boolean(Bool)
    /// `y`.
    case byte(UInt8)
    /// `i`.
    case int32(Int32)
    /// `u`.
    case uint32(UInt32)
    /// `x`.
    case int64(Int64)
    /// `t`.
    case uint64(UInt64)
    /// `d`.
    case double(Double)
    /// `ay`.
    case bytes([UInt8])
    /// An array of values that all have this type.
    case array(of: String, [BusValue])
    /// `a{sv}`. Its values are what the variants hold.
    case dictionary([String: BusValue])
    /// Values of several types in a row, `(…)`.
    case structure([BusValue])
    /// A value that carries its type, `v`.
    case variant(BusValue)
    /// A value of a type that nobody here reads, which is this one. It cannot be sent.
    case other(String)

    /// `as`.
    package static func strings(_ texts: [String]) -> BusValue { .array(of: "s", texts.map { .string($0) }) }

    /// Its type, as D-Bus writes it.
    package var signature: String {
        switch self {
        case .string: "s"
        case .path: "o"
        case .boolean: "b"
        case .byte: "y"
        case .int32: "i"
        case .uint32: "u"
        case .int64: "x"
        case .uint64: "t"
        case .double: "d"
        case .bytes: "ay"
        case .array(let type, _): "a\(type)"
        case .dictionary: "a{sv}"
        case .structure(let members): "(\(members.map(\.signature).joined()))"
        case .variant: "v"
        case .other(let type): type
        }
    }

    /// The text of a string; `nil` of anything else, as all that follow.
    package var text: String? { if case .string(let text) = self { text } else { nil } }

    /// The bytes of an array of bytes.
    package var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    /// The number of a `u`.
    package var uint32: UInt32? { if case .uint32(let number) = self { number } else { nil } }

    /// The value of a `b`.
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }

    /// The entries of an `a{sv}`.
    package var dictionary: [String: BusValue]? { if case .dictionary(let entries) = self { entries } else { nil } }
}
