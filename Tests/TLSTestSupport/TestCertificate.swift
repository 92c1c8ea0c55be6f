// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneTLS
internal import Glibc

/// A certificate with its key, made for one test.
package final class TestCertificate {
    /// What to write into a certificate.
    package struct Request {
        /// The common name.
        package var name: String
        /// The subjectAltName as openssl's configuration spells it: `DNS:example.com,IP:192.0.2.7`; `nil` for none.
        package var alternatives: String?
        /// Whether it may vouch for others.
        package var isAuthority = false
        /// From when to when it is valid, in seconds from now.
        package var validity: ClosedRange<Int> = -3600...86_400
        /// The key: an elliptic curve's name, or the bits of an RSA key.
        package var key = Key.curve("P-256")
        /// The extended key usage, as openssl's configuration spells it.
        package var usage: String? = "serverAuth,clientAuth"

        /// A certificate for `name`, which stands among the alternatives, too.
        package init(_ name: String, alternatives: String? = nil) {
            self.name = name
            self.alternatives = alternatives
        }

        /// An authority.
        package static func authority(_ name: String) -> Request {
            var request = Request(name)
            request.isAuthority = true
            request.usage = nil
            return request
        }
    }

    /// The kinds of key.
    package enum Key: Sendable {
        case curve(String)
        case rsa(bits: Int)
        /// With this public exponent, in hexadecimal digits.
        case rsaWithExponent(String, bits: Int)
        /// A public key alone, of a modulus that is a number as any: nothing can be signed with it.
        case publicRSA(bits: Int)
    }

    /// OpenSSL's object, which goes with this one.
    package var handle: OpaquePointer { certificate }

    let certificate: OpaquePointer
    let key: OpaquePointer
    let issuer: TestCertificate?

    /// A certificate that `issuer` signs; without one, itself.
    package init(_ request: Request, issuer: TestCertificate? = nil) {
        // First of all: what sets the library up decides whether it is taken down while other threads are inside.
        precondition(OpenSSL.isReady)
        self.issuer = issuer
        key = Self.makeKey(request.key)
        guard let certificate = X509_new() else { preconditionFailure("out of memory") }
        self.certificate = certificate
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), CLong(Int32.random(in: 1 ... .max)))
        X509_gmtime_adj(X509_getm_notBefore(certificate), request.validity.lowerBound)
        X509_gmtime_adj(X509_getm_notAfter(certificate), request.validity.upperBound)
        X509_set_pubkey(certificate, key)
        let subject = X509_get_subject_name(certificate)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, request.name, -1, -1, 0)
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer?.certificate ?? certificate))
        add(NID_basic_constraints, request.isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE")
        add(NID_subject_key_identifier, "hash")
        if let alternatives = request.alternatives { add(NID_subject_alt_name, alternatives) }
        if let usage = request.usage { add(NID_ext_key_usage, usage) }
        let size = X509_sign(certificate, issuer?.key ?? key, EVP_sha256())
        precondition(size > 0, "the certificate cannot be signed")
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    private static func makeKey(_ kind: Key) -> OpaquePointer {
        let context: OpaquePointer?
        switch kind {
        case .curve(let curve):
            context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_group_name(context, curve)
        case .publicRSA(let bits):
            return publicKey(bits)
        case .rsaWithExponent(let exponent, let bits):
            context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, CInt(bits))
            var number: OpaquePointer?
            BN_hex2bn(&number, exponent)
            EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context, number)
            BN_free(number)
        case .rsa(let bits):
            context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, CInt(bits))
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_generate(context, &key)
        guard let key else { preconditionFailure("no key can be made") }
        return key
    }

    private static func publicKey(_ bits: Int) -> OpaquePointer {
        var (modulus, exponent): (OpaquePointer?, OpaquePointer?)
        BN_hex2bn(&modulus, String(repeating: "F", count: bits / 4))
        BN_hex2bn(&exponent, "10001")
        // Kept by their place until the list is made.
        let names = (strdup("n"), strdup("e"))
        let parameters = OSSL_PARAM_BLD_new()
        let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil)
        defer {
            free(names.0)
            free(names.1)
            BN_free(modulus)
            BN_free(exponent)
            OSSL_PARAM_BLD_free(parameters)
            EVP_PKEY_CTX_free(context)
        }
        OSSL_PARAM_BLD_push_BN(parameters, names.0, modulus)
        OSSL_PARAM_BLD_push_BN(parameters, names.1, exponent)
        let list = OSSL_PARAM_BLD_to_param(parameters)
        defer { OSSL_PARAM_free(list) }
        var key: OpaquePointer?
        EVP_PKEY_fromdata_init(context)
        EVP_PKEY_fromdata(context, &key, copenssl_public_key, list)
        guard let key else { preconditionFailure("no key can be made") }
        return key
    }

    private func add(_ kind: CInt, _ value: String) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer?.certificate ?? certificate, certificate, nil, nil, 0)
        guard let added = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
            preconditionFailure("\(value) is no value for an extension")
        }
        X509_add_ext(certificate, added, -1)
        X509_EXTENSION_free(added)
    }

    /// The certificate in PEM, and those of its issuers up to, without, the one that signed itself.
    package var chain: String {
        var text = pem
        var next = issuer
        while let certificate = next, let above = certificate.issuer {
            text += certificate.pem
            next = above
        }
        return text
    }

    /// The certificate alone in PEM.
    package var pem: String { Self.text { PEM_write_bio_X509($0, certificate) } }

    /// The private key in PEM, encrypted if a password is given.
    package func keyText(password: String? = nil) -> String {
        guard let password else {
            return Self.text { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
        }
        return Self.text {
            PEM_write_bio_PKCS8PrivateKey($0, key, EVP_aes_256_cbc(), password, CInt(password.utf8.count), nil, nil)
        }
    }

    /// A revocation list of this authority's in PEM, which names the certificates that it took back.
    package func revocationList(of revoked: [TestCertificate], validity: ClosedRange<Int> = -3600...86_400) -> String {
        let list = X509_CRL_new()
        defer { X509_CRL_free(list) }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(certificate))
        let (from, until) = (ASN1_TIME_new(), ASN1_TIME_new())
        defer {
            ASN1_STRING_free(from)
            ASN1_STRING_free(until)
        }
        X509_gmtime_adj(from, validity.lowerBound)
        X509_gmtime_adj(until, validity.upperBound)
        X509_CRL_set1_lastUpdate(list, from)
        X509_CRL_set1_nextUpdate(list, until)
        for certificate in revoked {
            let entry = X509_REVOKED_new()
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.certificate))
            X509_REVOKED_set_revocationDate(entry, from)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_CRL_sign(list, key, EVP_sha256())
        return Self.text { PEM_write_bio_X509_CRL($0, list) }
    }

    private static func text(_ write: (OpaquePointer?) -> CInt) -> String {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        precondition(write(bio) == 1, "it cannot be written")
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = BIO_read(bio, &buffer, CInt(buffer.count))
        return String(decoding: buffer.prefix(Int(count)), as: UTF8.self)
    }
}
