// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
package import DialtoneConnection
internal import DialtoneNetworkPath

/// The client's end of one TLS session: bytes in, bytes out. It has no socket, no timer, no queue and no clock but the
/// one that OpenSSL compares certificates with.
///
/// ## The driver's loop
///
/// 1. After each call on the session, whichever it was: ``drain(_:)`` what is to be sent, and look at ``state``.
/// 2. While ``wantsInput``, read from the socket, at most ``inputLimit`` bytes at once, and hand them to
///    ``receive(_:)``; at the end of the stream call ``receiveEnd()``. While it does not want input, leave the bytes in
///    the socket: the server's TCP then waits, and nothing here grows.
/// 3. In ``State/open``, ``unreadPlaintext`` says that there is something to ``read(into:)``, and ``send(_:)`` takes
///    what is to go out. Nothing else is needed to keep a session that nobody reads: tickets, key updates, alerts and
///    the server's end are dealt with as they come, up to the first byte of plaintext that nobody asked for.
/// 4. ``close()`` says the end to the server; drain it, then close the socket. After ``State/failed(_:)`` there may be
///    an alert to drain, too, which tells the server's log why.
///
/// A session starts in ``State/handshaking`` with its first flight ready to be drained. Deadlines are the driver's.
///
/// ## Rules
///
/// Not `Sendable`: a session belongs to one thread, and OpenSSL takes no lock for it. No signal can come of it, since
/// it touches no descriptor. Early data is never sent: it could be played back by whoever recorded it.
package final class TLSSession {
    /// Where the session stands, behind what is still ``unreadPlaintext``.
    package enum State: Hashable, Sendable {
        /// Keys are being agreed on.
        case handshaking
        /// The server is who it must be, and both can send.
        case open
        /// The server said that it sends no more, and all that it sent was read.
        case closed
        /// It is over; with why.
        case failed(TLSFailure)
    }

    /// The most that ``receive(_:)`` takes at once: a full record (RFC 8446, section 5.2: 2¹⁴ + 256 bytes and a
    /// header). What of it is not decrypted yet, because nobody reads, is kept; so this is also the most that waits
    /// here.
    package static let inputLimit = 16_384 + 256 + 5

    /// The most that waits to be sent before ``send(_:)`` takes no more: two records, one on its way and one behind it.
    /// It is overrun by less than a record, and by the handshake's own flights.
    package static let outputLimit = 2 * 16_384

    /// The plaintext of a record (RFC 8446, section 5.1).
    private static let recordLimit = 16_384

    /// Where it stands.
    package private(set) var state = State.handshaking
    /// Whether the handshake came to its end.
    private var isAgreed = false

    let handle: OpaquePointer
    let request: TLSRequest
    let context: TLSContext
    let resumption: TLSResumption?
    private let wire = Wire()
    private let assurance: TLSSummary.Assurance
    /// Only while the handshake runs.
    private(set) var check: ServerCheck?
    /// Whether the server asked for a client certificate.
    package var certificateWasRequested = false

    /// Begins a session: the first flight is ready to be drained.
    ///
    /// - Parameters:
    ///   - request: whom the session is with, and how.
    ///   - context: made for the request's policy.
    ///   - resumption: the connection's earlier sessions, and where new ones are kept; `nil` for neither.
    /// - Throws: ``TLSFailure/broken(_:)`` when OpenSSL has no memory, or refuses the name.
    package init(
        _ request: TLSRequest, in context: TLSContext, resuming resumption: TLSResumption? = nil
    ) throws(TLSFailure) {
        OpenSSL.clearErrors()
        guard let handle = SSL_new(context.handle) else { throw .broken(OpenSSL.takeText()) }
        self.handle = handle
        self.request = request
        self.context = context
        self.resumption = resumption
        let check = ServerCheck(request)
        self.check = check
        assurance = check.assurance
        // A session that cannot be made is freed by `deinit`, since all of its parts are there.
        guard let bio = wire.makeBIO() else { throw .broken("out of memory") }
        SSL_set_bio(handle, bio, bio)
        // Unretained: callbacks come from within calls of this object alone.
        guard SSL_set_ex_data(handle, 0, Unmanaged.passUnretained(self).toOpaque()) == 1, check.expect(on: handle),
            offerNames()
        else { throw .broken(OpenSSL.takeText()) }
        resumption?.offer(to: self)
        SSL_set_connect_state(handle)
        advance()
    }

    deinit {
        // OpenSSL takes a session that ends without a word for one not to be resumed. But here it is the network that
        // ended it, as a rule, and to come back quickly is what tickets are for. A session that failed of TLS itself
        // was marked already.
        if SSL_in_init(handle) == 0 { SSL_set_shutdown(handle, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(handle)
    }

    /// Asks for the host by name, if it has one (RFC 6066, section 3: an address is no name), and offers the protocols.
    private func offerNames() -> Bool {
        switch request.host {
        case .name(let name): if copenssl_set_server_name(handle, name) != 1 { return false }
        case .address: break
        }
        if request.applicationProtocols.isEmpty { return true }
        // Each with its length before it. 0 is success here, unlike everywhere else.
        let offered = request.applicationProtocols.flatMap { name in
            [UInt8(truncatingIfNeeded: name.utf8.count)] + Array(name.utf8)
        }
        return SSL_set_alpn_protos(handle, offered, CUnsignedInt(offered.count)) == 0
    }
}

// MARK: - The wire

extension TLSSession {
    /// Whether bytes from the socket are of use now. Not while there is plaintext that nobody read, nor while much
    /// waits to be sent, nor when it is over.
    package var wantsInput: Bool {
        switch state {
        case .handshaking, .open: !wire.isEnded && unreadPlaintext == 0 && pendingOutput < Self.outputLimit
        case .closed, .failed: false
        }
    }

    /// Takes bytes that came from the socket; at most ``inputLimit``, and only while ``wantsInput``. They may begin and
    /// end anywhere in a record.
    package func receive(_ bytes: UnsafeRawBufferPointer) {
        // Whoever reads the socket asks first, and has a buffer of that size: no server has a say in it.
        precondition(wantsInput && bytes.count <= Self.inputLimit, "bytes are taken only while they are wanted")
        wire.lend(bytes) { advance() }
    }

    /// The stream ended. Without the server's word before it, the session fails with ``TLSFailure/truncated`` as soon
    /// as all plaintext is read.
    package func receiveEnd() {
        wire.isEnded = true
        advance()
    }

    /// How many bytes wait to be sent.
    package var pendingOutput: Int { wire.pendingOutput }

    /// Offers `write` the bytes that wait to be sent, once; it says how many it took. Not called when there are none.
    package func drain(_ write: (UnsafeRawBufferPointer) -> Int) {
        wire.drain(write)
    }
}

// MARK: - Plaintext

extension TLSSession {
    /// How many bytes can be read at once: those of one record. 0 when there are none.
    package var unreadPlaintext: Int {
        state == .open ? Int(SSL_pending(handle)) : 0
    }

    /// Copies plaintext of the record that is next to be read, as far as it fits, and leaves it to be read; says how
    /// many bytes.
    package func peek(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard unreadPlaintext > 0, let start = buffer.baseAddress else { return 0 }
        return max(Int(SSL_peek(handle, start, CInt(clamping: min(buffer.count, unreadPlaintext)))), 0)
    }

    /// Copies plaintext to `buffer`, and says how many bytes: as many as fit, or as there are. Decrypts no more than it
    /// is asked for.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        while state == .open, count < buffer.count, let start = buffer.baseAddress {
            OpenSSL.clearErrors()
            let result = SSL_read(handle, start + count, CInt(clamping: buffer.count - count))
            if result <= 0 {
                conclude(result)
                return count
            }
            count += Int(result)
        }
        // So that the state says what comes next, when that is not more plaintext.
        advance()
        return count
    }

    /// Encrypts as much of `plaintext` as there is room for, and says how many bytes: 0 while more than ``outputLimit``
    /// waits, and in any state but ``State/open``. Call it again with the rest when that is drained.
    package func send(_ plaintext: UnsafeRawBufferPointer) -> Int {
        var count = 0
        while state == .open, count < plaintext.count, pendingOutput < Self.outputLimit,
            let start = plaintext.baseAddress
        {
            OpenSSL.clearErrors()
            let result = SSL_write(handle, start + count, CInt(min(plaintext.count - count, Self.recordLimit)))
            if result <= 0 {
                conclude(result)
                return count
            }
            count += Int(result)
        }
        return count
    }

    /// Says to the server that nothing more will be sent (close_notify). Does nothing before the handshake is over,
    /// when it was said already, and after a failure.
    package func close() {
        switch state {
        case .open, .closed: break
        case .handshaking, .failed: return
        }
        guard SSL_get_shutdown(handle) & SSL_SENT_SHUTDOWN == 0 else { return }
        OpenSSL.clearErrors()
        SSL_shutdown(handle)
        OpenSSL.clearErrors()
    }
}

// MARK: - What came of it

extension TLSSession {
    /// What was agreed on; `nil` before the handshake is over.
    package var summary: TLSSummary? {
        guard isAgreed, let version = TLSPolicy.Version(number: SSL_version(handle)) else { return nil }
        return TLSSummary(
            version: version, cipher: copenssl_cipher_name(handle).map { String(cString: $0) } ?? "unknown",
            assurance: assurance, isResumed: SSL_session_reused(handle) == 1, applicationProtocol: selectedProtocol,
            certificateEnd: certificateEnd)
    }

    /// The end that comes first. A client's certificate counts where the server asked for it.
    private var certificateEnd: TLSSummary.CertificateEnd? {
        let server = Certificate(SSL_get0_peer_certificate(handle))?.end
        let own = certificateWasRequested ? Certificate(SSL_get_certificate(handle))?.end : nil
        let ends = [
            server.map { TLSSummary.CertificateEnd(seconds: $0, isOwn: false) },
            own.map { TLSSummary.CertificateEnd(seconds: $0, isOwn: true) },
        ]
        return ends.compactMap(\.self).min { $0.seconds < $1.seconds }
    }

    private var selectedProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: CUnsignedInt = 0
        SSL_get0_alpn_selected(handle, &start, &count)
        guard let start, count > 0 else { return nil }
        return Certificate.printable(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    /// Goes as far as the bytes that came allow: through the handshake, and up to the first byte of plaintext.
    private func advance() {
        if state == .handshaking {
            OpenSSL.clearErrors()
            let result = SSL_do_handshake(handle)
            if result == 1 { handshakeEnded() } else { conclude(result) }
        }
        if state == .open {
            // Looks without taking: what is not plaintext is dealt with, and the first record that is stays where it
            // is.
            var byte: UInt8 = 0
            OpenSSL.clearErrors()
            let result = SSL_peek(handle, &byte, 1)
            guard result <= 0 else { return }
            conclude(result)
            // 16 KB for handshake messages are what the context's mode leaves. Refused while a record is half there.
            SSL_free_buffers(handle)
        }
    }

    private func handshakeEnded() {
        check = nil
        state = .open
        // The server chooses from what was offered (RFC 7301, section 3.2). One that chose something else speaks
        // something else.
        if let selectedProtocol, !request.applicationProtocols.contains(selectedProtocol) {
            return fail(.noCommonProtocol(offered: request.applicationProtocols))
        }
        isAgreed = true
        forgetCertificates()
    }

    /// Lets go of the certificates that the server sent, which were judged: of a chain of two they are 9 KB a session.
    /// OpenSSL keeps its own reference to the server's own, for a session that is taken up again.
    private func forgetCertificates() {
        for chain in [SSL_get_peer_cert_chain(handle), SSL_get0_verified_chain(handle)] {
            while let certificate = OPENSSL_sk_pop(chain) { X509_free(OpaquePointer(certificate)) }
        }
    }

    private func conclude(_ result: CInt) {
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: break
        case SSL_ERROR_ZERO_RETURN:
            // In the handshake it is the server's way to hang up.
            if state == .handshaking { fail(.endedInHandshake) } else { over(.closed) }
        default: fail(failure(OpenSSL.takeFailure()))
        }
        OpenSSL.clearErrors()
    }

    private func fail(_ failure: TLSFailure) {
        // What is wrong with this server may be wrong with its sessions.
        if state == .handshaking { resumption?.forget() }
        over(.failed(failure))
    }

    private func over(_ end: State) {
        state = end
        check = nil
        wire.discardInput()
    }
}
