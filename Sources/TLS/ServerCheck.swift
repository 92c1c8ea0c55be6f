// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection
internal import DialtoneNetworkPath

/// Who the server must be, and what was found: exists while the handshake runs.
final class ServerCheck {
    /// The name or address that its certificate must have.
    private let host: Target.Host
    private let pins: Set<CertificatePin>
    private let verifies: Bool
    /// What is wrong, once something is.
    private(set) var problem: CertificateProblem?

    init(_ request: TLSRequest) {
        host = request.host
        pins = request.policy.pins
        verifies = request.policy.verifiesCertificate
    }

    /// What a server that passes is known by.
    var assurance: TLSSummary.Assurance {
        if verifies { return .verified }
        return pins.isEmpty ? .unverified : .pinned
    }

    /// Tells OpenSSL what name to look for.
    ///
    /// The common name does not count, whatever else is missing (RFC 9525, section 2), and a wildcard stands for a
    /// whole label only.
    func expect(on session: OpaquePointer) -> Bool {
        let parameters = SSL_get0_param(session)
        X509_VERIFY_PARAM_set_hostflags(
            parameters, CUnsignedInt(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        switch host {
        case .name(let name):
            return X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count) == 1
        case .address(let address):
            return X509_VERIFY_PARAM_set1_ip(parameters, address.bytes, address.bytes.count) == 1
        }
    }

    /// The server does not pass, and this is why.
    func refuse(_ problem: CertificateProblem) { self.problem = problem }

    /// Judges the chain that came, in OpenSSL's stead; whether the server passes.
    func passes(_ chain: OpaquePointer) -> Bool {
        problem =
            ComputingBounds.excess(of: chain) ?? (verifies ? verifiedProblem(chain) : unverifiedProblem(chain))
        guard problem != nil else {
            X509_STORE_CTX_set_error(chain, X509_V_OK)
            return true
        }
        // What is wrong with a pin is no error of OpenSSL's; the alert for the server is chosen by it.
        if X509_STORE_CTX_get_error(chain) == X509_V_OK { X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_UNTRUSTED) }
        return false
    }

    private func verifiedProblem(_ chain: OpaquePointer) -> CertificateProblem? {
        if X509_verify_cert(chain) != 1 { return CertificateProblem(chain, wanted: host) }
        guard !pins.isEmpty else { return nil }
        let certificates = X509_STORE_CTX_get0_chain(chain)
        for index in 0..<max(OPENSSL_sk_num(certificates), 0) {
            let certificate = Certificate(OPENSSL_sk_value(certificates, index).map { OpaquePointer($0) })
            if let pin = certificate?.pin, pins.contains(pin) { return nil }
        }
        return .pinMismatch(found: Certificate(X509_STORE_CTX_get0_cert(chain))?.pin)
    }

    /// Where the chain is not verified, anybody can append anything to it: only the key that the server proves to have
    /// counts.
    private func unverifiedProblem(_ chain: OpaquePointer) -> CertificateProblem? {
        guard !pins.isEmpty else { return nil }
        let pin = Certificate(X509_STORE_CTX_get0_cert(chain))?.pin
        return pin.map { pins.contains($0) } == true ? nil : .pinMismatch(found: pin)
    }
}

extension CertificateProblem {
    /// What OpenSSL found wrong with a chain.
    fileprivate init(_ chain: OpaquePointer, wanted: Target.Host) {
        let error = X509_STORE_CTX_get_error(chain)
        let certificate = Certificate(X509_STORE_CTX_get_current_cert(chain))
        let leaf = Certificate(X509_STORE_CTX_get0_cert(chain))
        let subject = certificate?.subject ?? "an unknown authority"
        let text = String(cString: X509_verify_cert_error_string(CLong(error)))
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            self = .expired(subject: subject, since: certificate?.notAfter ?? "an unknown day")
        case X509_V_ERR_CERT_NOT_YET_VALID:
            let until = certificate?.notBefore ?? "an unknown day"
            self = .notYetValid(subject: subject, until: until, clock: Certificate.clock)
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            self = .wrongName(wanted: wanted.description, found: leaf?.names ?? [])
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            self = .selfSigned(subject: subject)
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            self = .unknownIssuer(subject)
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            self = .unknownIssuer(certificate?.issuer ?? "an unknown authority")
        case X509_V_ERR_CERT_REVOKED:
            self = .revoked(subject: subject)
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_HAS_EXPIRED,
            X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
            self = .revocationUnknown(text)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            self = .weak(text)
        case X509_V_ERR_INVALID_PURPOSE:
            self = .wrongPurpose
        default:
            self = .invalid(text)
        }
    }
}
