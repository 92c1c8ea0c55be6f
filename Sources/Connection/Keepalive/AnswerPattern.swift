// SPDX-License-Identifier: Apache-2.0

/// What exactly answers a keepalive that was sent.
enum AnswerPattern: Hashable, Sendable {
    /// These bytes and no others.
    case bytes([UInt8])
    /// An `iq` of type `result` or `error` with this id.
    case xmppResult(id: [UInt8])

    /// How the bytes that begin at the boundary between two messages compare with it.
    enum Match: Hashable, Sendable {
        /// The first so many are the answer, whole.
        case whole(length: Int)
        /// They may become it.
        case beginning
        /// They are something else.
        case mismatch
    }

    /// The longest answer to wait for. A literal one is known; the longest `iq` that a server makes of a ping is an
    /// error with two addresses (each at most 3071 bytes by RFC 7622, commonly below 100) and a line of text.
    static let longest = 2048

    /// Compares.
    func match(_ bytes: ArraySlice<UInt8>) -> Match {
        switch self {
        case .bytes(let expected):
            guard bytes.starts(with: expected.prefix(bytes.count)) else { return .mismatch }
            return bytes.count < expected.count ? .beginning : .whole(length: expected.count)
        case .xmppResult(let id):
            return XMPPResult(id: id).match(bytes)
        }
    }
}

/// The answer to an XMPP ping in the form that servers give it: the start tag of an `iq`, whose attributes may stand in
/// any order, and for an error its children.
private struct XMPPResult {
    let id: [UInt8]

    func match(_ bytes: ArraySlice<UInt8>) -> AnswerPattern.Match {
        XMPPElement.match(bytes, name: "iq") { tag in
            let type = tag.value(of: "type")
            return tag.value(of: "id") == id && (type == Array("result".utf8) || type == Array("error".utf8))
        }
    }
}
