// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection
internal import DialtoneNetworkPath

// What OpenSSL's errors and the server's alerts mean for an operator.

extension TLSSession {
    /// The meaning of what a call failed of.
    func failure(_ error: OpenSSL.Failure?) -> TLSFailure {
        guard let error, error.library == ERR_LIB_SSL else { return .broken(error?.text ?? "unknown error") }
        if error.reason >= SSL_AD_REASON_OFFSET, let number = UInt8(exactly: error.reason - SSL_AD_REASON_OFFSET) {
            return failure(TLSAlert(rawValue: number))
        }
        let isHandshaking = state == .handshaking
        if isHandshaking, let problem = check?.problem { return .certificate(problem) }
        switch error.reason {
        case SSL_R_CERTIFICATE_VERIFY_FAILED: return .certificate(.invalid(error.text))
        case SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL, SSL_R_CA_MD_TOO_WEAK:
            return .certificate(.weak(error.text))
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW:
            return .noCommonVersion(minimum: request.policy.minimumVersion)
        case SSL_R_WRONG_VERSION_NUMBER where isHandshaking: return .notTLS
        case SSL_R_UNEXPECTED_EOF_WHILE_READING: return isHandshaking ? .endedInHandshake : .truncated
        default: return .broken(error.text)
        }
    }

    /// The server's alert. Some are clear, others mean what they mean by what went before.
    private func failure(_ alert: TLSAlert) -> TLSFailure {
        if certificateWasRequested, isAboutCertificate(alert) {
            return context.hasIdentity ? .clientCertificateRefused(alert) : .clientCertificateRequired
        }
        switch CInt(alert.rawValue) {
        case SSL_AD_PROTOCOL_VERSION: return .noCommonVersion(minimum: request.policy.minimumVersion)
        case SSL_AD_HANDSHAKE_FAILURE where SSL_get_pending_cipher(handle) == nil: return .noCommonCipher
        case SSL_AD_INSUFFICIENT_SECURITY: return .noCommonCipher
        case SSL_AD_NO_APPLICATION_PROTOCOL: return .noCommonProtocol(offered: request.applicationProtocols)
        case SSL_AD_UNRECOGNIZED_NAME: return .unknownName(request.host.description)
        default: return .alert(alert)
        }
    }

    /// Whether a server that asked for a certificate may mean that one. `handshake failure` is how TLS 1.2 says that
    /// there was none (RFC 5246, section 7.4.6).
    private func isAboutCertificate(_ alert: TLSAlert) -> Bool {
        [
            SSL_AD_HANDSHAKE_FAILURE, SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE,
            SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
            SSL_AD_ACCESS_DENIED, SSL_AD_CERTIFICATE_REQUIRED,
        ].contains(CInt(alert.rawValue))
    }
}
