// SPDX-License-Identifier: Apache-2.0

/// Stanzas as they are written, and what is read of errors.
enum XMPPStanza {
    /// An iq (RFC 6120, section 8.2.3).
    static func iq(_ type: String, id: String, to: String?, _ content: String = "") -> String {
        let address = to.map { " to='\($0.asXML)'" } ?? ""
        let start = "<iq type='\(type)' id='\(id.asXML)'\(address)"
        return content.isEmpty ? "\(start)/>" : "\(start)>\(content)</iq>"
    }

    /// Why an iq is refused (RFC 6120, section 8.3.3), with what its sender is to do (section 8.3.2).
    enum Refusal: String {
        case badRequest = "bad-request"
        case forbidden
        case itemNotFound = "item-not-found"
        case notAcceptable = "not-acceptable"
        case recipientUnavailable = "recipient-unavailable"
        case resourceConstraint = "resource-constraint"
        case serviceUnavailable = "service-unavailable"

        var type: String {
            switch self {
            case .badRequest: "modify"
            case .forbidden: "auth"
            case .itemNotFound, .notAcceptable, .serviceUnavailable: "cancel"
            case .recipientUnavailable, .resourceConstraint: "wait"
            }
        }
    }

    /// An iq's answer of type `error`.
    static func error(_ refusal: Refusal, id: String, to: String?) -> String {
        iq(
            "error", id: id, to: to,
            "<error type='\(refusal.type)'><\(refusal.rawValue) xmlns='\(XMPP.stanzaErrors)'/></error>")
    }

    /// The condition of a stanza's error, or of a `failed` of XEP-0198.
    static func condition(of stanza: XMLElement) -> String {
        let error = stanza.child("error", XMPP.client) ?? stanza
        return error.children.first { $0.namespace == XMPP.stanzaErrors && $0.name != "text" }?.name
            ?? "undefined-condition"
    }
}
