// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// A certificate as it comes over the wire, from anybody.
package enum ForeignCertificate {
    /// Calls `body` with OpenSSL's object of it; not at all where the bytes (DER) are none.
    package static func read(_ bytes: [UInt8], _ body: (OpaquePointer) -> Void) {
        bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            guard let certificate = d2i_X509(nil, &next, CLong(buffer.count)) else { return }
            defer { X509_free(certificate) }
            body(certificate)
        }
    }
}
