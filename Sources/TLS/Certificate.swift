// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import Glibc

// What a certificate says of itself, as text for people. It is the server's word until it is verified, and often stands
// in an error for the very reason that it is not: so it is cut short and made printable, or a server could write lines
// of its own into the log.

/// An X.509 certificate that somebody else keeps alive.
struct Certificate {
    /// The longest name that is shown: as long as a host name may be.
    private static let longestName = 253
    /// How many of a certificate's names are shown. Those of large services have a hundred.
    private static let namesShown = 8

    let handle: OpaquePointer

    init?(_ handle: OpaquePointer?) {
        guard let handle else { return nil }
        self.handle = handle
    }

    /// Who it is for: the common name and the organization, as far as it has them.
    var subject: String { Self.text(ofName: X509_get_subject_name(handle)) }

    /// Who vouches for it.
    var issuer: String { Self.text(ofName: X509_get_issuer_name(handle)) }

    /// The host names and addresses that it is for, the first few.
    var names: [String] {
        guard let list = X509_get_ext_d2i(handle, NID_subject_alt_name, nil, nil).map({ OpaquePointer($0) }) else {
            return []
        }
        defer { GENERAL_NAMES_free(list) }
        var names: [String] = []
        for index in 0..<max(OPENSSL_sk_num(list), 0) {
            let entry = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
            guard let name = Self.text(ofAlternative: entry) else { continue }
            if names.count == Self.namesShown { return names + ["…"] }
            names.append(name)
        }
        return names
    }

    /// From when on it is valid (RFC 3339, UTC).
    var notBefore: String { Self.text(ofTime: X509_get0_notBefore(handle)) }

    /// Until when it is valid (RFC 3339, UTC).
    var notAfter: String { Self.text(ofTime: X509_get0_notAfter(handle)) }

    /// Until when it is valid, in seconds since 1970, UTC; `nil` where it does not say so.
    var end: Int64? {
        var parts = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(handle), &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }

    /// Whether its time is over, by this machine's clock.
    var isExpired: Bool { X509_cmp_current_time(X509_get0_notAfter(handle)) < 0 }

    /// The pin of its key.
    var pin: CertificatePin? {
        var encoded: UnsafeMutablePointer<UInt8>?
        let length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(handle), &encoded)
        guard length > 0, let encoded else { return nil }
        defer { CRYPTO_free(encoded, #fileID, #line) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var size: CUnsignedInt = 0
        guard EVP_Digest(encoded, Int(length), &digest, &size, EVP_sha256(), nil) == 1 else { return nil }
        // Four characters for three bytes begun, and a NUL.
        var text = [UInt8](repeating: 0, count: (Int(size) + 2) / 3 * 4 + 1)
        EVP_EncodeBlock(&text, digest, CInt(size))
        return CertificatePin(String(decoding: text.dropLast(), as: UTF8.self))
    }

    /// This machine's clock, as the certificate's times are written.
    static var clock: String {
        guard let now = ASN1_TIME_set(nil, time(nil)) else { return "unknown" }
        defer { ASN1_STRING_free(now) }
        return text(ofTime: now)
    }

    private static func text(ofTime time: UnsafePointer<ASN1_TIME>?) -> String {
        var parts = tm()
        guard ASN1_TIME_to_tm(time, &parts) == 1 else { return "an unreadable time" }
        func padded(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
            + "T\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))Z"
    }

    private static func text(ofName name: OpaquePointer?) -> String {
        let common = entry(NID_commonName, of: name)
        let organization = entry(NID_organizationName, of: name)
        switch (common, organization) {
        case (let common?, let organization?) where common != organization: return "\(common) (\(organization))"
        case (let common?, _): return common
        case (nil, let organization?): return organization
        case (nil, nil): return "a nameless certificate"
        }
    }

    private static func entry(_ kind: CInt, of name: OpaquePointer?) -> String? {
        let index = X509_NAME_get_index_by_NID(name, kind, -1)
        guard index >= 0, let entry = X509_NAME_get_entry(name, index) else { return nil }
        return text(ofString: X509_NAME_ENTRY_get_data(entry))
    }

    private static func text(ofAlternative name: UnsafeMutablePointer<GENERAL_NAME>?) -> String? {
        var kind: CInt = 0
        let pointer = GENERAL_NAME_get0_value(name, &kind)
        switch kind {
        case GEN_DNS:
            return text(ofString: pointer?.assumingMemoryBound(to: ASN1_STRING.self))
        case GEN_IPADD:
            guard let value = pointer?.assumingMemoryBound(to: ASN1_STRING.self).pointee else { return nil }
            return IPAddress(bytes: UnsafeRawBufferPointer(start: value.data, count: Int(value.length)))?.description
        // Mail addresses, URIs and other names do not name a server.
        default: return nil
        }
    }

    private static func text(ofString string: UnsafePointer<ASN1_STRING>?) -> String? {
        guard let start = ASN1_STRING_get0_data(string) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string)))
        return printable(bytes.prefix(longestName))
    }

    /// Printable ASCII as it is, and a question mark for each other byte.
    static func printable(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}
