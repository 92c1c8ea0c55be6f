// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneDistributor

extension ConnectionsAPI.Park.Parameters {
    /// How the push connection's socket is given back.
    init(_ parking: PushParking, of connection: String, epoch: Int) {
        let answer: ConnectionsAPI.AnsweredMessage =
            switch parking.answers {
            case .webSocket: .init(protocol: "websocket")
            case .xmpp(let handled): .init(protocol: "xmpp", handled: Int(handled))
            }
        self.init(
            name: connection, epoch: epoch, opening: parking.opening.map { ConnectionsAPI.OpeningStep($0) },
            answers: [answer])
    }
}

extension ConnectionsAPI.OpeningStep {
    fileprivate init(_ step: PushParking.OpeningStep) {
        self.init(
            send: step.send.escaped,
            expect: ConnectionsAPI.OpeningAnswer(
                bytes: step.begins.isEmpty ? nil : step.begins.escaped, until: step.until?.escaped,
                message: step.isFrame ? "websocket" : nil, contains: step.contains?.escaped))
    }
}

extension [UInt8] {
    /// As openings write bytes: each one that is no plain character of ASCII as `\xNN`.
    fileprivate var escaped: String {
        let digits = Array<UInt8>("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in self {
            if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "\\") {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
