// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// An account at an XMPP server, and how the server is reached.
package struct XMPPAccount: Hashable, Sendable {
    /// What keeps others from reading the stream, and with it the password.
    package enum Security: Hashable, Sendable {
        /// TLS from the first byte (XEP-0368). There is no STARTTLS: the machine's agent secures whole sockets.
        case directTLS
        /// Nothing, for a server on this machine.
        case plainTextToLoopback
    }

    /// The longest JID that is taken. RFC 7622, section 3.1, allows 3,071 bytes; what is kept of a session has to fit
    /// into 64 KiB.
    static let longestJID = 256

    /// What stands before the `@`.
    let localPart: String
    /// What stands behind it.
    let domain: String
    /// As the person types it.
    let password: String
    /// The JID of the push service; `nil` where the server is asked for it (XEP-0030).
    let service: String?
    /// The URL that the machine's agent dials. Without a host it names the domain, whose SRV records count.
    let remote: String

    /// An account.
    ///
    /// - Parameters:
    ///   - jid: `user@domain`, as the server writes it: it is not prepared (RFC 7622).
    ///   - host: the server's name or address; `nil` for what the domain's SRV records say. Its certificate is to be
    ///     the domain's all the same (RFC 6120, section 13.7.1.2), which whoever dials has to say.
    ///   - port: `nil` for the one of the scheme.
    ///   - service: the JID of the push service.
    /// - Throws: what is wrong with it, for a person.
    package init(
        jid: String, password: String, host: String? = nil, port: UInt16? = nil, service: String? = nil,
        security: Security = .directTLS
    ) throws(XMPPAccountError) {
        let parts = jid.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, jid.utf8.count <= Self.longestJID, Self.isPart(parts[0]), Self.isPart(parts[1]) else {
            throw XMPPAccountError("\"\(jid.printable)\" is no account: write user@domain")
        }
        guard !password.isEmpty, password.utf8.count <= 1024, !password.utf8.contains(0) else {
            throw XMPPAccountError("the password of \(jid) has to have from 1 to 1024 bytes, and no NUL")
        }
        if let service, service.utf8.count > Self.longestJID || !Self.isPart(service[...]) {
            throw XMPPAccountError("\"\(service.printable)\" is no push service: write its domain")
        }
        if security == .plainTextToLoopback, !["127.0.0.1", "::1"].contains(host) {
            throw XMPPAccountError("an account without TLS needs the host 127.0.0.1 or ::1")
        }
        (localPart, domain, self.password) = (String(parts[0]), parts[1].lowercased(), password)
        self.service = service?.lowercased()
        let scheme = security == .directTLS ? "xmpps" : "xmpp"
        let name = host ?? domain
        let authority = name.contains(":") ? "[\(name)]" : name
        remote = "\(scheme)://\(authority)" + (port.map { ":\($0)" } ?? "")
    }

    /// Its JID, without a resource.
    var bareJID: String { "\(localPart)@\(domain)" }

    /// Whether it can be a part of a JID: nothing of what separates parts or what RFC 7622, section 3.3.1, excludes.
    private static func isPart(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy { $0.value > 0x20 && !"\"&'/<>@\u{7F}".unicodeScalars.contains($0) }
    }
}

extension XMPPAccount: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Its JID. The password is nobody's business.
    package var description: String { bareJID }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["jid": bareJID]) }
}

/// Why something is no account.
package struct XMPPAccountError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, and what to write.
    package let description: String

    init(_ description: String) { self.description = description }
}
