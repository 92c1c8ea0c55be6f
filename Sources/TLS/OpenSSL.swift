// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// The library as a whole, and its queue of errors.
///
/// OpenSSL keeps errors in a queue of the calling thread, and a call that fails may find what an earlier one left
/// there. So each call whose failure matters begins with ``clearErrors()``, and what failed is taken right after it.
package enum OpenSSL {
    /// One entry of the queue.
    struct Failure {
        let library: CInt
        let reason: CInt
        /// OpenSSL's words for the reason, constants of its own: never a file's or a peer's content.
        let text: String
    }

    /// Sets the library up, once for the process; without its exit handler, which would take its tables down while the
    /// threads may still be inside. Reads the system's openssl.cnf, where an administrator sets the weakest
    /// ciphers and keys that are accepted. Starts no thread.
    package static let isReady: Bool = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Forgets what earlier calls on this thread failed of.
    static func clearErrors() {
        ERR_clear_error()
    }

    /// Takes the first failure since the queue was cleared, which is the cause of those after it, and forgets the rest.
    static func takeFailure() -> Failure? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        let reason = ERR_GET_REASON(code)
        let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(reason)"
        return Failure(library: ERR_GET_LIB(code), reason: reason, text: text)
    }

    /// The words of the first failure since the queue was cleared.
    static func takeText() -> String {
        takeFailure()?.text ?? "unknown error"
    }
}
