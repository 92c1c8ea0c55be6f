// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

/// Voluntary Application Server Identification (RFC 8292): an app's server signs a short statement with a key of its
/// own, so that a push service takes pushes for a registration from that server alone.
package enum VAPID {
    /// The longest time that a statement may be valid (RFC 8292 section 2: 24 hours).
    package static let longestValidity = Duration.seconds(24 * 60 * 60)

    /// The longest `Authorization` field that is read: a statement with an address to write to has some 400 bytes.
    private static let longestField = 4096

    /// What the statement of a sender says, once it is checked.
    package struct Statement: Hashable, Sendable {
        /// The sender's key, in its text form.
        package let key: String
        /// Whom to write to about its pushes, a `mailto:` or `https:` URI; `nil` where it does not say so.
        package let contact: String?
        /// Until when it is valid, in seconds since 1970, UTC.
        package let expiration: Double
    }

    /// Why a sender is not who a registration is for.
    package enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The field is no `vapid t=…, k=…` (RFC 8292 section 3).
        case noCredentials
        /// The key is no point of P-256 in base64url (section 3.2), or not the one that is expected.
        case wrongKey
        /// The token is no JSON Web Token signed with ES256 (section 2).
        case noToken
        /// The signature is not of that key.
        case wrongSignature
        /// The token is for another push service: its `aud` is another origin, or none.
        case wrongAudience(String?)
        /// The token has no `exp`, is no longer valid, or is valid for more than a day.
        case wrongExpiration(Double?)

        package var description: String {
            switch self {
            case .noCredentials: "the Authorization field is not \"vapid t=TOKEN, k=KEY\" (RFC 8292)"
            case .wrongKey: "the key is not the one that the app registered with"
            case .noToken: "the token is no JSON Web Token signed with ES256"
            case .wrongSignature: "the token's signature is not of the key beside it"
            case .wrongAudience(let audience):
                "the token is for \(audience ?? "nobody"): its aud must be the origin of the endpoint"
            case .wrongExpiration(let time):
                """
                the token is valid until \(time.map { "\($0)" } ?? "no time"): its exp must be within the next 24 hours
                """
            }
        }
    }

    /// The text form of a public key (RFC 8292 section 3.2): its uncompressed point in base64url, 87 characters.
    ///
    /// - Returns: `nil` for bytes that are no point of P-256.
    package static func text(ofKey point: [UInt8]) -> String? {
        CurveKey(point: point) == nil ? nil : Base64URL.text(of: point)
    }

    /// The point that a key's text form stands for; `nil` for a text that is none.
    package static func key(of text: String) -> [UInt8]? {
        guard text.utf8.count == 87, let point = Base64URL.bytes(of: text), CurveKey(point: point) != nil else {
            return nil
        }
        return point
    }

    /// Checks an `Authorization` field of a sender's request.
    ///
    /// - Parameters:
    ///   - field: its value, which may be anything.
    ///   - key: the text form of the key that the registration is for; `nil` for any.
    ///   - audience: the origin of the push service: scheme, host, and port unless it is the scheme's own.
    ///   - now: seconds since 1970, UTC.
    package static func check(
        _ field: String, key expected: String? = nil, audience: String, now: Double
    ) throws(Refusal) -> Statement {
        guard let (token, key) = credentials(of: field) else { throw .noCredentials }
        guard let point = self.key(of: key), let signer = CurveKey(point: point),
            expected == nil || expected == key
        else { throw .wrongKey }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.bytes(of: parts[0]).flatMap(Header.init(json:)),
            header.algorithm == "ES256", let body = Base64URL.bytes(of: parts[1]),
            let signature = Base64URL.bytes(of: parts[2])
        else { throw .noToken }
        guard signer.verifies(signature, of: Array("\(parts[0]).\(parts[1])".utf8)) else { throw .wrongSignature }
        guard let claims = Claims(json: body) else { throw .noToken }
        guard claims.audience == audience else { throw .wrongAudience(claims.audience) }
        let latest = now + Double(longestValidity.components.seconds)
        guard let expiration = claims.expiration, expiration > now, expiration <= latest else {
            throw .wrongExpiration(claims.expiration)
        }
        return Statement(key: key, contact: claims.subject, expiration: expiration)
    }

    /// The parameters of the scheme `vapid`, in either order (RFC 9110 section 11.4).
    private static func credentials(of field: String) -> (token: String, key: String)? {
        guard field.utf8.count <= longestField, let space = field.firstIndex(of: " "),
            field[..<space].lowercased() == "vapid"
        else { return nil }
        var parameters: [String: String] = [:]
        for parameter in field[space...].split(separator: ",") {
            let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmed }
            guard pair.count == 2, parameters.updateValue(pair[1], forKey: pair[0].lowercased()) == nil else {
                return nil
            }
        }
        guard let token = parameters["t"], let key = parameters["k"] else { return nil }
        return (token, key)
    }

    /// The header of a token (RFC 7515 section 4.1).
    private struct Header: VarlinkObject {
        let algorithm: String?

        init?(from fields: inout some VarlinkFieldReader) { algorithm = fields.text("alg") }

        func write(to fields: inout some VarlinkFieldWriter) { if let algorithm { fields.put("alg", algorithm) } }
    }

    /// What a token claims (RFC 8292 section 2).
    private struct Claims: VarlinkObject {
        let audience: String?
        let expiration: Double?
        let subject: String?

        init?(from fields: inout some VarlinkFieldReader) {
            (audience, expiration) = (fields.text("aud"), fields.number("exp"))
            subject = fields.text("sub")
        }

        func write(to fields: inout some VarlinkFieldWriter) {
            if let audience { fields.put("aud", audience) }
            if let expiration { fields.put("exp", expiration) }
            if let subject { fields.put("sub", subject) }
        }
    }
}

extension Substring {
    /// Without blanks around it, and without quotes around what is left (RFC 9110 section 5.6).
    fileprivate var trimmed: String {
        var text = self
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        text = text.drop { $0 == " " || $0 == "\t" }
        if text.count >= 2, text.first == "\"", text.last == "\"" { text = text.dropFirst().dropLast() }
        return String(text)
    }
}
