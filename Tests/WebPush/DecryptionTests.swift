// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneWebPush
import Testing

/// The message of RFC 8291's appendix A.
enum Appendix {
    static let plaintext = "When I grow up, I want to be a watermelon"
    static let body = bytes(
        """
        DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3\
        jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN
        """)
    /// The receiver's private key, public key and secret.
    static let stored =
        bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
        + bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
        + bytes("BTBZMqHH6r4Tts7J_aSIgg")

    static func bytes(_ text: String) -> [UInt8] { Base64URL.bytes(of: text) ?? [] }

    /// The RFC's header, and other records behind it.
    static func message(_ records: String, recordSize: UInt8? = nil) -> [UInt8] {
        var message = body.prefix(86) + bytes(records)
        if let recordSize { message.replaceSubrange(16..<20, with: [0, 0, 0, recordSize]) }
        return Array(message)
    }

    static func keys() throws -> PushKeys { try #require(PushKeys(stored: stored)) }
}

/// Decryption.
@Suite struct DecryptionTests {
    @Test func `the message of the RFC is read`() throws {
        #expect(Appendix.body.count == 144)
        let opened = try Appendix.keys().decrypt(Appendix.body)
        #expect(String(decoding: opened, as: UTF8.self) == Appendix.plaintext)
    }

    @Test func `a message that was cut is refused at each length`() throws {
        let keys = try Appendix.keys()
        for count in Appendix.body.indices {
            #expect(throws: WebPushError.self, "\(count) bytes") {
                try keys.decrypt(Array(Appendix.body.prefix(count)))
            }
        }
    }

    @Test func `a message with any bit changed is refused`() throws {
        let keys = try Appendix.keys()
        // A record size that is another one and has room for the record says the same.
        for place in Appendix.body.indices where !(16..<20).contains(place) {
            for bit in 0..<8 {
                var body = Appendix.body
                body[place] ^= 1 << bit
                #expect(throws: WebPushError.self, "byte \(place), bit \(bit)") { try keys.decrypt(body) }
            }
        }
    }

    @Test(arguments: seeds(200))
    func `bytes of any kind are refused`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let keys = try Appendix.keys()
        var body = Appendix.body + (0..<random.below(200)).map { _ in UInt8(random.below(256)) }
        random.damage(&body, upTo: 8)
        if body == Appendix.body { body.append(0) }
        #expect(throws: WebPushError.self) { try keys.decrypt(body) }
        let noise = (0..<random.below(5000)).map { _ in UInt8(random.below(256)) }
        #expect(throws: WebPushError.self) { try keys.decrypt(noise) }
    }

    @Test func `other keys read nothing, and keys are kept and read`() throws {
        let keys = try PushKeys()
        #expect(throws: WebPushError.notAuthentic) { try keys.decrypt(Appendix.body) }
        #expect(PushKeys(stored: keys.stored) == keys)
        expect(keys.publicKey.count, is: 65)
        expect(keys.secret.count, is: 16)
        #expect(try PushKeys().stored != keys.stored)
    }

    @Test func `kept keys that were cut or changed are no keys`() throws {
        for count in Appendix.stored.indices {
            #expect(PushKeys(stored: Array(Appendix.stored.prefix(count))) == nil, "\(count) bytes")
        }
        // The pair alone can be checked: each secret of 16 bytes is one.
        for place in 0..<97 {
            var stored = Appendix.stored
            stored[place] ^= 1
            #expect(PushKeys(stored: stored) == nil, "byte \(place)")
        }
    }

    @Test(arguments: [0, 1, 17, 57])
    func `a record size that the record does not keep to is refused`(size: Int) throws {
        var body = Appendix.body
        body.replaceSubrange(16..<20, with: [0, 0, 0, UInt8(size)])
        #expect(throws: WebPushError.recordSize(size)) { try Appendix.keys().decrypt(body) }
    }

    @Test func `a last record may be as long as the record size`() throws {
        var body = Appendix.body
        body.replaceSubrange(16..<20, with: [0, 0, 0, 58])
        expect(try Appendix.keys().decrypt(body), is: Array(Appendix.plaintext.utf8))
    }

    /// Records for the keys of the RFC's message, with its salt and its sender's key, made by Python's `cryptography`.
    @Test(arguments: [
        ("xp7XWWDSmhYhds0t_JoOuZS2SucJkThqTA", [UInt8]("call".utf8)), ("p1gPSRS1XkN9hEVCx_GBFHA", []),
        // What looks like a delimiter before the last one is content.
        ("xP27N2IF3EG9cu11Fa6EH6lLsZEN", [UInt8(ascii: "a"), 2, 0]),
    ])
    func `what stands before the last delimiter is the message`(record: String, content: [UInt8]) throws {
        expect(try Appendix.keys().decrypt(Appendix.message(record)), is: content)
    }

    @Test(arguments: [
        ("a delimiter of a record that is not the last", "xp7XWWPSqTQuPxun30lW-jXvpnDemA"),
        ("only zeros", "pf-7O9wcslQ7Zn9-nlVK2FsEiw"), ("content alone", "xp7XWX9sC5BUYXZ7QC12aBVPX_4"),
    ])
    func `without the delimiter of a last record there is no message`(what: String, record: String) {
        #expect(throws: WebPushError.noDelimiter, "\(what)") {
            try Appendix.keys().decrypt(Appendix.message(record))
        }
    }

    @Test func `several records are refused, as their sender was to make one`() {
        // "ca" and "ll", each in a record of 19 bytes.
        let records = "xp66vYT8zbpCSWBp_ANAgWwslWf3h0n82IZJ9x4dF-fTkygT6tU"
        #expect(throws: WebPushError.recordSize(19)) {
            try Appendix.keys().decrypt(Appendix.message(records, recordSize: 19))
        }
    }

    @Test func `what is wrong is said`() throws {
        let keys = try Appendix.keys()
        let long = [UInt8](repeating: 7, count: 4097)
        #expect(throws: WebPushError.tooLong(4097)) { try keys.decrypt(long) }
        #expect(throws: WebPushError.tooShort(5)) { try keys.decrypt(Array("hello".utf8)) }
        #expect(throws: WebPushError.noSenderKey) { try keys.decrypt(Array(long.dropLast())) }
        var body = Appendix.body
        // The other half of the points with this x is on the curve, too; a point with another x hardly ever is.
        body.replaceSubrange(22..<86, with: [UInt8](repeating: 0xFF, count: 64))
        #expect(throws: WebPushError.noSenderKey) { try keys.decrypt(body) }
        for error in [WebPushError.tooLong(1), .tooShort(1), .noSenderKey, .recordSize(1), .notAuthentic, .noDelimiter]
        {
            #expect("\(error)".hasPrefix("the message"), "\(error)")
        }
    }
}

/// base64url.
@Suite struct Base64URLTests {
    /// RFC 4648 section 10, without padding.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the RFC's texts are written and read`(plain: String, text: String) {
        #expect(Base64URL.text(of: Array(plain.utf8)) == text)
        #expect(Base64URL.bytes(of: text) == Array(plain.utf8))
    }

    @Test func `every pair of bytes comes back`() {
        for first in UInt8.min ... .max {
            for second in UInt8.min ... .max {
                let bytes = [first, second, first]
                #expect(Base64URL.bytes(of: Base64URL.text(of: bytes)) == bytes)
            }
        }
    }

    @Test(arguments: ["Z", "Zg==", "Zh", "Zm9", "Zm9v Yg", "+/+/", "Zm9vé", "\u{0}aaa", "AAAAA"])
    func `what is not the one text for its bytes is none`(text: String) {
        #expect(Base64URL.bytes(of: text) == nil)
    }
}
