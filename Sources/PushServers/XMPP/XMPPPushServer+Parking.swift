// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor

extension XMPPPushServer {
    /// Nothing is under way, and both sides have acknowledged what they sent. A push that waits for its app's answer is
    /// none of that: the answer goes out on this socket, or after a resumption.
    package var parking: PushParking? {
        guard phase == .established, reader.isBetweenStanzas, acknowledgementAwaited == nil,
            memory.management?.unacknowledged.isEmpty != false, questions.isEmpty, wanted.isEmpty
        else { return nil }
        return PushParking(opening: opening, answers: .xmpp(handled: memory.management?.handled ?? 0))
    }

    /// The login and the resumption, as the server answered them before. Nothing in it changes from socket to socket
    /// while nobody handles a stanza.
    private var opening: [PushParking.OpeningStep] {
        guard let resumption else { return [] }
        let features = Array("</stream:features>".utf8)
        return [
            .init(send: streamHeader, begins: [UInt8(ascii: "<")], until: features, contains: Array("PLAIN".utf8)),
            .init(send: plainLogin, begins: Array("<success".utf8), until: ends.success),
            .init(
                send: streamHeader, begins: [UInt8(ascii: "<")], until: features,
                contains: Array(XMPP.management.utf8)),
            .init(send: resumption, begins: Array("<resumed".utf8), until: ends.resumed),
        ]
    }
}
