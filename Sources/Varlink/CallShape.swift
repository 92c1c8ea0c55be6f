// SPDX-License-Identifier: Apache-2.0

/// What is asked of a call's JSON before it is read: that reading it takes no more than its length is worth.
///
/// The decoder recurses into what is nested, and takes more than linear time for objects with many members. So both are
/// counted first, in one pass over the bytes that knows strings from the rest and nothing else; whether it is JSON is
/// for the decoder to say. What its texts cost to compare is looked at next (``StreamSafe``).
enum CallShape {
    /// How deep objects and arrays may be nested. The deepest parameter of an interface is at six.
    static let deepest = 32
    /// The most members of all objects together. `Open` with everything set and an opening of its longest has some 200.
    static let mostMembers = 512
    /// The most values of all arrays together. The longest honest call lists a few hundred names.
    static let mostValues = 4096

    /// Looks at a message.
    static func check(_ message: [UInt8]) throws(VarlinkViolation) {
        var (depth, members, values) = (0, 0, 0)
        var isInString = false
        var isEscaped = false
        var mayHaveMarks = false
        for byte in message {
            // The first of the marks, U+0300, begins so.
            if byte >= 0xCC { mayHaveMarks = true }
            if isInString {
                if isEscaped {
                    isEscaped = false
                    if byte == UInt8(ascii: "u") { mayHaveMarks = true }
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                guard depth <= deepest else { throw .nestedTooDeep(limit: deepest) }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ":"):
                members += 1
                guard members <= mostMembers else { throw .tooManyValues(limit: mostMembers) }
            case UInt8(ascii: ","):
                values += 1
                guard values <= mostValues else { throw .tooManyValues(limit: mostValues) }
            default: break
            }
        }
        if mayHaveMarks, !StreamSafe.holds(of: message) { throw .tooManyMarks(limit: StreamSafe.mostMarks) }
    }
}
