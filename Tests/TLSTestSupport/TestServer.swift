// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// A server's end of TLS sessions in memory, made with OpenSSL's own memory BIOs.
package final class TestServer {
    /// How a server behaves.
    package struct Settings {
        /// The versions that it speaks, as in `TLS1_2_VERSION`.
        package var versions: ClosedRange<Int32> = 0x0303...0x0304
        /// The cipher list; with `@SECLEVEL=0` for what is too weak for this system.
        package var ciphers: String?
        /// The groups for the exchange of keys, as OpenSSL's list has them; `nil` for those that it has by itself.
        package var groups: String?
        /// Certificates that it sends behind its chain.
        package var furtherCertificates: [TestCertificate] = []
        /// Whether clients are asked for a certificate, and by whose signature one is accepted.
        package var clientAuthority: TestCertificate?
        /// What it speaks by ALPN; empty for a server that does not know ALPN.
        package var applicationProtocols: [String] = []
        /// What it answers by ALPN whatever it is offered.
        package var imposedProtocol: String?
        /// How many tickets it sends.
        package var tickets = 2
        /// Whether it sends its issuers' certificates along with its own.
        package var sendsChain = true

        /// A server of today.
        package init() {}
    }

    private let context: OpaquePointer
    private let settings: Settings

    /// A server with a certificate.
    package init(_ certificate: TestCertificate, _ settings: Settings = Settings()) {
        guard let context = SSL_CTX_new(TLS_server_method()) else { preconditionFailure("out of memory") }
        self.context = context
        self.settings = settings
        // Keys that are too weak are what some tests are about; the client refuses them.
        SSL_CTX_set_security_level(context, 0)
        _ = copenssl_set_minimum_version(context, settings.versions.lowerBound)
        _ = copenssl_set_maximum_version(context, settings.versions.upperBound)
        if let ciphers = settings.ciphers { SSL_CTX_set_cipher_list(context, ciphers) }
        if let groups = settings.groups {
            _ = groups.withCString { list in
                SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: list))
            }
        }
        SSL_CTX_ctrl(context, SSL_CTRL_SET_DH_AUTO, 1, nil)
        SSL_CTX_set_num_tickets(context, settings.tickets)
        SSL_CTX_set_session_id_context(context, "test", 4)
        SSL_CTX_use_certificate(context, certificate.certificate)
        SSL_CTX_use_PrivateKey(context, certificate.key)
        if settings.sendsChain { certificate.addIssuers(to: context) }
        for further in settings.furtherCertificates {
            _ = copenssl_add_chain_certificate(context, further.certificate)
        }
        if let authority = settings.clientAuthority {
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.certificate)
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        SSL_CTX_set_alpn_select_cb(context, selectProtocol, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// One more session.
    package func accept() -> Session { Session(context, self) }

    /// One session of a server.
    package final class Session {
        private let handle: OpaquePointer
        private let input = BIO_new(BIO_s_mem())
        private let output = BIO_new(BIO_s_mem())
        private let server: TestServer
        /// What was read so far.
        package private(set) var received: [UInt8] = []
        /// Whether the client said that it ends.
        package var sawClose: Bool { SSL_get_shutdown(handle) & SSL_RECEIVED_SHUTDOWN != 0 }
        /// What the server's log would say.
        package private(set) var error: String?

        fileprivate init(_ context: OpaquePointer, _ server: TestServer) {
            guard let handle = SSL_new(context) else { preconditionFailure("out of memory") }
            self.handle = handle
            self.server = server
            SSL_set_bio(handle, input, output)
            SSL_set_accept_state(handle)
        }

        deinit {
            SSL_free(handle)
        }

        /// The name that the client asked for.
        package var requestedName: String? {
            SSL_get_servername(handle, CInt(TLSEXT_NAMETYPE_host_name)).map { String(cString: $0) }
        }

        /// Whether the handshake is over.
        package var isOpen: Bool { SSL_is_init_finished(handle) == 1 }

        /// Whether the session was taken up from an earlier one.
        package var isResumed: Bool { SSL_session_reused(handle) == 1 }

        /// Takes what the client sent, and goes on as far as it can.
        package func receive(_ bytes: [UInt8]) {
            BIO_write(input, bytes, CInt(bytes.count))
            ERR_clear_error()
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = SSL_read(handle, &buffer, CInt(buffer.count))
                if count <= 0 {
                    let code = SSL_get_error(handle, count)
                    if code == SSL_ERROR_SSL, let text = ERR_reason_error_string(ERR_peek_error()) {
                        error = String(cString: text)
                    }
                    ERR_clear_error()
                    return
                }
                received += buffer.prefix(Int(count))
            }
        }

        /// Takes what is to be sent to the client.
        package func takeOutput() -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
            let count = bytes.isEmpty ? 0 : BIO_read(output, &bytes, CInt(bytes.count))
            return Array(bytes.prefix(Int(max(count, 0))))
        }

        /// Sends plaintext.
        package func send(_ bytes: [UInt8]) {
            ERR_clear_error()
            let count = SSL_write(handle, bytes, CInt(bytes.count))
            precondition(count == bytes.count, "the server cannot send")
        }

        /// Says the end.
        package func close() { SSL_shutdown(handle) }

        /// Changes its keys, and wants the client to change its own, or not.
        package func updateKeys(requesting: Bool) {
            SSL_key_update(handle, requesting ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
            SSL_do_handshake(handle)
        }

        /// Sends another ticket.
        package func sendTicket() {
            SSL_new_session_ticket(handle)
            SSL_do_handshake(handle)
        }

        /// Wants to negotiate anew (TLS 1.2).
        package func renegotiate() {
            SSL_renegotiate(handle)
            SSL_do_handshake(handle)
        }
    }

    fileprivate func select(from offered: UnsafeBufferPointer<UInt8>) -> (UnsafePointer<UInt8>, UInt8)? {
        if let imposed = settings.imposedProtocol {
            let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: imposed.utf8.count)
            copy.update(from: Array(imposed.utf8), count: imposed.utf8.count)
            return (UnsafePointer(copy), UInt8(imposed.utf8.count))
        }
        var index = 0
        while index < offered.count, let start = offered.baseAddress {
            let count = Int(offered[index])
            let name = String(decoding: offered[(index + 1)...].prefix(count), as: UTF8.self)
            if settings.applicationProtocols.contains(name) { return (start + index + 1, UInt8(count)) }
            index += count + 1
        }
        return nil
    }

    fileprivate var knowsProtocols: Bool { !settings.applicationProtocols.isEmpty }
}

private func selectProtocol(
    _ handle: OpaquePointer?, _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ count: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: CUnsignedInt,
    _ argument: UnsafeMutableRawPointer?
) -> CInt {
    guard let argument else { return SSL_TLSEXT_ERR_NOACK }
    let server = Unmanaged<TestServer>.fromOpaque(argument).takeUnretainedValue()
    guard let choice = server.select(from: UnsafeBufferPointer(start: offered, count: Int(offeredCount))) else {
        return server.knowsProtocols ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK
    }
    selected?.pointee = choice.0
    count?.pointee = choice.1
    return SSL_TLSEXT_ERR_OK
}

extension TestCertificate {
    fileprivate func addIssuers(to context: OpaquePointer) {
        var next = issuer
        while let certificate = next, let above = certificate.issuer {
            _ = copenssl_add_chain_certificate(context, certificate.certificate)
            next = above
        }
    }
}
