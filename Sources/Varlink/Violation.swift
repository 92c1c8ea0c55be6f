// SPDX-License-Identifier: Apache-2.0

/// What a peer sent that is not Varlink. It ends the connection it came on and nothing else: after it, the boundaries
/// of messages, and so who is being answered, cannot be trusted.
public enum VarlinkViolation: Error, Hashable, Sendable, CustomStringConvertible {
    /// A message, complete or not, is longer than `limit` bytes.
    case messageTooLong(limit: Int)
    /// A message is not UTF-8.
    case notUTF8
    /// A message is not JSON.
    case notJSON
    /// A message is JSON, but not an object.
    case notAnObject
    /// A call's objects and arrays are nested more than `limit` deep.
    case nestedTooDeep(limit: Int)
    /// A call has more than `limit` members in its objects, or values in its arrays.
    case tooManyValues(limit: Int)
    /// A text of a call has more than `limit` combining marks in a row.
    case tooManyMarks(limit: Int)
    /// More than `limit` bytes came while a stream runs, which no call behind it ends.
    case tooMuchBehindAStream(limit: Int)
    /// Of the connections of a user who is over the share of memory, this one takes the most: by a message that is not
    /// complete, calls sent ahead, or an answer that is not read.
    case tooMuchHeld(bytes: Int)
    /// An object that is not a call; the text says what is wrong with it.
    case notACall(String)
    /// An object that is not a reply; the text says what is wrong with it.
    case notAReply(String)
    /// A reply to nothing: no call is waiting for one, or the call asked for a single one and more are announced.
    case unexpectedReply
    /// More descriptors rode on a message than are allowed, than the sender may have waiting, or than this process has
    /// room for (`MSG_CTRUNC`).
    case descriptorsTruncated
    /// Descriptors rode on several parts of one message.
    case descriptorsInPieces
    /// A message names a descriptor that did not come with it.
    case descriptorMissing

    /// What the peer did, for the end of a sentence.
    public var description: String {
        switch self {
        case .messageTooLong(let limit): "a message is longer than \(limit) bytes"
        case .notUTF8: "a message is not UTF-8"
        case .notJSON: "a message is not JSON"
        case .notAnObject: "a message is not a JSON object"
        case .nestedTooDeep(let limit): "a call is nested more than \(limit) deep"
        case .tooManyValues(let limit): "a call has more than \(limit) members or values"
        case .tooManyMarks(let limit): "a text of a call has more than \(limit) combining marks in a row"
        case .tooMuchBehindAStream(let limit): "more than \(limit) bytes came while a stream runs"
        case .tooMuchHeld(let bytes):
            "the user's clients hold more unread answers and unfinished calls than allowed, this one \(bytes) bytes"
        case .notACall(let reason): "a message is not a call: \(reason)"
        case .notAReply(let reason): "a message is not a reply: \(reason)"
        case .unexpectedReply: "a reply came that no call asked for"
        case .descriptorsTruncated: "a message has more file descriptors than there is room for"
        case .descriptorsInPieces: "the file descriptors of a message came in pieces"
        case .descriptorMissing: "a message names a file descriptor that did not come with it"
        }
    }
}
