// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

/// A text of a server that is to be an object of JSON.
enum JSONText {
    /// So deep may objects and arrays stand in one another; the servers' stand three deep. The reader of JSON allows
    /// 2,048 and calls itself for each.
    static let deepest = 16

    /// Reads an object; `nil` for a text that is none, or one of other types, or a deeper one.
    static func object<Object: VarlinkObject>(_ text: [UInt8]) -> Object? {
        isShallow(text) ? Object(json: text) : nil
    }

    private static func isShallow(_ text: [UInt8]) -> Bool {
        var (depth, isString, isEscaped) = (0, false, false)
        for byte in text {
            if isString {
                if !isEscaped, byte == UInt8(ascii: "\"") { isString = false }
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth > deepest { return false }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
        }
        return true
    }
}
