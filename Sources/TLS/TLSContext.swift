// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
package import DialtoneConnection
internal import DialtonePlatform
internal import Glibc

/// What sessions of equal files share: the trusted authorities, the client certificate, the versions. Shared, since a
/// gateway has thousands of sessions with the same.
///
/// Nothing of it changes once it is made, and OpenSSL counts references to it atomically: so threads may share it,
/// though the compiler cannot know.
package final class TLSContext: @unchecked Sendable {
    let handle: OpaquePointer
    /// Whether a server that asks for a client certificate gets one.
    let hasIdentity: Bool

    /// Reads the files of `policy` and sets OpenSSL up.
    ///
    /// - Throws: ``TLSFailure/unusableFile(path:problem:)``, or OpenSSL's refusal of its own configuration.
    package init(_ policy: TLSPolicy, _ files: borrowing TLSFiles) throws(TLSFailure) {
        OpenSSL.clearErrors()
        guard OpenSSL.isReady, let handle = SSL_CTX_new(TLS_client_method()) else {
            throw .broken(OpenSSL.takeText())
        }
        self.handle = handle
        hasIdentity = policy.identity != nil
        // All of its parts are there, so `deinit` runs where this throws.
        try Self.trust(policy.authorities, files.authorities, in: handle)
        if let identity = policy.identity { try Self.present(identity, files, in: handle) }
        configure(policy)
    }

    deinit {
        SSL_CTX_free(handle)
    }

    private func configure(_ policy: TLSPolicy) {
        // Buffers of 16 KB each way only while a record is in them: an idle session has none.
        copenssl_set_modes(
            handle,
            CLong(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        copenssl_refuse_renegotiation_and_compression(handle)
        _ = copenssl_set_minimum_version(handle, policy.minimumVersion.number)
        ComputingBounds.set(on: handle)
        // Sessions are kept per connection, in `TLSResumption`, and not in a table that all of a context share.
        copenssl_set_session_cache(handle, CLong(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(handle, sessionArrived)
        SSL_CTX_set_cert_verify_callback(handle, certificateArrived, nil)
        SSL_CTX_set_verify(handle, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_cb(handle, certificateRequested, nil)
    }
}

// MARK: - Trust

extension TLSContext {
    private static func trust(
        _ path: String?, _ file: borrowing OwnedDescriptor, in context: OpaquePointer
    ) throws(TLSFailure) {
        let store = SSL_CTX_get_cert_store(context)
        let name = path ?? "the system's authorities"
        let content = try SettingsContent(of: file, name)
        let found = try content.withBytes { bytes throws(TLSFailure) in
            // BIO_new_mem_buf(3) takes none for an error.
            bytes.isEmpty ? (certificates: 0, lists: 0) : try add(bytes, of: name, to: store)
        }
        // A system without authorities trusts nobody, which is said of the server's certificate.
        guard let path else { return }
        if found.certificates == 0 { throw .unusableFile(path: path, problem: "holds no certificate in PEM") }
        // A user may name an intermediate authority, or the server's own certificate, as what is trusted.
        var flags = UInt(X509_V_FLAG_PARTIAL_CHAIN)
        if found.lists > 0 { flags |= UInt(X509_V_FLAG_CRL_CHECK) }
        X509_STORE_set_flags(store, flags)
    }

    /// Adds the certificates and revocation lists of a file to a store, and says how many there were.
    private static func add(
        _ bytes: UnsafeRawBufferPointer, of path: String, to store: OpaquePointer?
    ) throws(TLSFailure) -> (certificates: Int, lists: Int) {
        OpenSSL.clearErrors()
        let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count))
        defer { BIO_free(bio) }
        guard let entries = PEM_X509_INFO_read_bio(bio, nil, passwordRefused, nil) else {
            throw .unusableFile(path: path, problem: "is damaged: \(OpenSSL.takeText())")
        }
        var found = (certificates: 0, lists: 0)
        while let entry = OPENSSL_sk_pop(entries)?.assumingMemoryBound(to: X509_INFO.self) {
            if entry.pointee.x509 != nil, X509_STORE_add_cert(store, entry.pointee.x509) == 1 {
                found.certificates += 1
            }
            if entry.pointee.crl != nil, X509_STORE_add_crl(store, entry.pointee.crl) == 1 { found.lists += 1 }
            X509_INFO_free(entry)
        }
        OPENSSL_sk_free(entries)
        // The end of the text is an entry of the queue as well.
        OpenSSL.clearErrors()
        return found
    }
}

// MARK: - The client's own certificate

extension TLSContext {
    private static func present(
        _ identity: TLSPolicy.Identity, _ files: borrowing TLSFiles, in context: OpaquePointer
    ) throws(TLSFailure) {
        let certificates = try content(of: files.certificate, identity.certificate)
        try certificates.withBytes { bytes throws(TLSFailure) in
            try useChain(bytes, of: identity.certificate, in: context)
        }
        let file = try content(of: files.key, identity.key)
        let key: OpaquePointer
        if let path = identity.passwordFile {
            let password = try content(of: files.password, path)
            key = try password.withBytes { text throws(TLSFailure) in
                let line = UnsafeRawBufferPointer(rebasing: text.prefix { $0 != UInt8(ascii: "\n") })
                return try file.withBytes { bytes throws(TLSFailure) in try privateKey(bytes, of: identity, line) }
            }
        } else {
            key = try file.withBytes { bytes throws(TLSFailure) in try privateKey(bytes, of: identity, nil) }
        }
        defer { EVP_PKEY_free(key) }
        OpenSSL.clearErrors()
        guard SSL_CTX_use_PrivateKey(context, key) == 1, SSL_CTX_check_private_key(context) == 1 else {
            let text = "does not go with the certificate in \(identity.certificate): \(OpenSSL.takeText())"
            throw .unusableFile(path: identity.key, problem: text)
        }
    }

    private static func content(
        of file: borrowing OwnedDescriptor?, _ path: String
    ) throws(TLSFailure) -> SettingsContent {
        switch file {
        case .some(let file): return try SettingsContent(of: file, path)
        case .none: throw .unusableFile(path: path, problem: "did not come with the request")
        }
    }

    private static func useChain(
        _ bytes: UnsafeRawBufferPointer, of path: String, in context: OpaquePointer
    ) throws(TLSFailure) {
        OpenSSL.clearErrors()
        let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count))
        defer { BIO_free(bio) }
        guard let own = PEM_read_bio_X509_AUX(bio, nil, passwordRefused, nil) else {
            OpenSSL.clearErrors()
            throw .unusableFile(path: path, problem: "holds no certificate in PEM")
        }
        defer { X509_free(own) }
        // Refused where its key is too small for the system's security level, for instance.
        guard SSL_CTX_use_certificate(context, own) == 1 else {
            throw .unusableFile(path: path, problem: "cannot be used: \(OpenSSL.takeText())")
        }
        while let next = PEM_read_bio_X509(bio, nil, passwordRefused, nil) {
            _ = copenssl_add_chain_certificate(context, next)
            X509_free(next)
        }
        OpenSSL.clearErrors()
    }

    private static func privateKey(
        _ bytes: UnsafeRawBufferPointer, of identity: TLSPolicy.Identity, _ password: UnsafeRawBufferPointer?
    ) throws(TLSFailure) -> OpaquePointer {
        let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count))
        defer { BIO_free(bio) }
        var request = PasswordRequest()
        if let password { request.password = password }
        OpenSSL.clearErrors()
        if let key = PEM_read_bio_PrivateKey(bio, nil, passwordAsked, &request) { return key }
        OpenSSL.clearErrors()
        guard request.wasMade else {
            throw .unusableFile(path: identity.key, problem: "holds no private key in PEM")
        }
        let problem =
            identity.passwordFile.map { "cannot be decrypted by the password in \($0)" }
            ?? "holds an encrypted key, and no password_file is named; name one, or store the key without a password"
        throw .unusableFile(path: identity.key, problem: problem)
    }
}

extension TLSPolicy.Version {
    /// As OpenSSL counts.
    var number: CInt {
        switch self {
        case .v12: TLS1_2_VERSION
        case .v13: TLS1_3_VERSION
        }
    }

    init?(number: CInt) {
        guard let version = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = version
    }
}

// MARK: - Passwords

/// What OpenSSL's question for a password is answered with. Without a function to ask, it would ask the terminal.
private struct PasswordRequest {
    var password = UnsafeRawBufferPointer(start: nil, count: 0)
    var wasMade = false
}

private func passwordAsked(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isWriting: CInt, _ request: UnsafeMutableRawPointer?
) -> CInt {
    guard let buffer, let request = request?.assumingMemoryBound(to: PasswordRequest.self) else { return -1 }
    request.pointee.wasMade = true
    let password = request.pointee.password
    guard !password.isEmpty, password.count <= Int(size) else { return -1 }
    UnsafeMutableRawBufferPointer(start: buffer, count: Int(size)).copyMemory(from: password)
    return CInt(password.count)
}

private func passwordRefused(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isWriting: CInt, _ request: UnsafeMutableRawPointer?
) -> CInt { -1 }
