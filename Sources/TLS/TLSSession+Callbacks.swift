// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

// OpenSSL's callbacks. They come from within the calls of the session that they are about, on its thread.

extension TLSSession {
    static func of(_ handle: OpaquePointer?) -> TLSSession? {
        SSL_get_ex_data(handle, 0).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }

    fileprivate func sessionArrived(_ session: OpaquePointer) -> Bool {
        resumption?.keep(session, of: self) ?? false
    }

    fileprivate func passes(_ chain: OpaquePointer) -> Bool {
        check?.passes(chain) ?? false
    }

    func certificatesRefused() {
        check?.refuse(ComputingBounds.problemOfLongList)
    }

    fileprivate func certificateRequested() {
        certificateWasRequested = true
    }
}

/// A ticket or session for later; 1 takes over its reference.
func sessionArrived(_ handle: OpaquePointer?, _ session: OpaquePointer?) -> CInt {
    guard let session, let owner = TLSSession.of(handle) else { return 0 }
    return owner.sessionArrived(session) ? 1 : 0
}

/// The server's chain, to be judged; 1 lets it pass.
func certificateArrived(_ chain: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> CInt {
    let handle = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx())
    guard let chain, let owner = TLSSession.of(handle.map { OpaquePointer($0) }) else { return 0 }
    return owner.passes(chain) ? 1 : 0
}

/// The server asks for a client certificate; 1 goes on with the context's.
func certificateRequested(_ handle: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> CInt {
    TLSSession.of(handle)?.certificateRequested()
    return 1
}
