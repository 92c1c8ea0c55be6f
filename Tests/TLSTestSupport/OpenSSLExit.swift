// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import Glibc

/// What OpenSSL does as a process ends.
package enum OpenSSLExit {
    /// Has this process end with a failure where OpenSSL takes its tables down then.
    package static func failWhereTablesGo() {
        precondition(OPENSSL_atexit { _exit(EXIT_FAILURE) } == 1, "out of memory")
    }
}
