// SPDX-License-Identifier: Apache-2.0

/// How `dialtone-tls` is started.
package enum RelayStart {
    /// Where it finds what it takes channels from, as the service manager passes it (`SD_LISTEN_FDS_START`): a
    /// listening socket, or one over which its parent sends each of them.
    package static let listener: CInt = 3
    /// The argument with which it serves flows by itself.
    package static let serving = "--serve"
}
