// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Foundation

/// What a client of XMPP says to log in: SASL PLAIN, a stream of its own, a resource and presence (RFC 6120, sections 6
/// and 7; RFC 6121, section 4.2).
enum XMPP {
    private static let stream =
        "<?xml version='1.0'?><stream:stream to='lab.example' version='1.0' xmlns='jabber:client' "
        + "xmlns:stream='http://etherx.jabber.org/streams'>"
    private static let features = "</stream:features>"

    static func opening(_ user: String, _ password: String) -> [ConnectionsAPI.OpeningStep] {
        let login = Data("\0\(user)\0\(password)".utf8).base64EncodedString()
        return [
            .init(send: stream, expect: .init(until: features, contains: "PLAIN")),
            .init(
                send: "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(login)</auth>",
                expect: .init(bytes: "<success", until: ">")),
            .init(send: stream, expect: .init(until: features, contains: "urn:ietf:params:xml:ns:xmpp-bind")),
            .init(
                send: "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                    + "<resource>door</resource></bind></iq>",
                expect: .init(bytes: "<iq ", until: "</iq>", contains: "type='result'")),
            // Which comes back to whoever sent it (RFC 6121, section 4.2.2).
            .init(send: "<presence/>", expect: .init(bytes: "<presence ", until: ">", contains: "/door")),
        ]
    }

    /// The same, said by the client itself.
    static func logIn(_ socket: ClientSocket, _ user: String, _ password: String) -> Bool {
        opening(user, password).allSatisfy { step in
            socket.send(step.send ?? "")
            guard let answer = step.expect, let end = answer.until else { return true }
            let text = socket.text(untilIncluding: end)
            return text.hasPrefix(answer.bytes ?? "") && (answer.contains.map { text.contains($0) } ?? true)
        }
    }
}
