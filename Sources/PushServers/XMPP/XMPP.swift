// SPDX-License-Identifier: Apache-2.0

/// XMPP's namespaces.
enum XMPP {
    /// RFC 6120, section 4.8.1.
    static let streams = "http://etherx.jabber.org/streams"
    /// Stanzas (RFC 6120, section 4.8.3).
    static let client = "jabber:client"
    /// RFC 6120, section 6.
    static let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"
    /// RFC 6120, section 5.
    static let startTLS = "urn:ietf:params:xml:ns:xmpp-tls"
    /// RFC 6120, section 7.
    static let bind = "urn:ietf:params:xml:ns:xmpp-bind"
    /// Conditions of a stanza's error (RFC 6120, section 8.3.3), and of XEP-0198's `failed`.
    static let stanzaErrors = "urn:ietf:params:xml:ns:xmpp-stanzas"
    /// XEP-0198.
    static let management = "urn:xmpp:sm:3"
    /// XEP-0199.
    static let ping = "urn:xmpp:ping"
    /// XEP-0030, section 3.
    static let discoInfo = "http://jabber.org/protocol/disco#info"
    /// XEP-0030, section 4.
    static let discoItems = "http://jabber.org/protocol/disco#items"
    /// The protocol between a push service and who distributes pushes; described by the service `up` (codeberg.org,
    /// iNPUTmice/up), and spoken by prosody's mod_unified_push.
    static let push = "http://gultsch.de/xmpp/drafts/unified-push"
}
