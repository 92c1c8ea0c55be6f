// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtonePlatform
internal import Glibc

/// The files of a policy, opened for `dialtone-tls` to read: this process does not read them.
package final class SettingsFiles {
    /// The descriptors, in the order of ``SecuringRequest``.
    package private(set) var numbers: [CInt] = []

    /// Opens regular files. Blocks on the file system, for as long as local files take.
    ///
    /// - Throws: ``TLSFailure/unusableFile(path:problem:)``, which says what to do.
    package init(of policy: TLSPolicy) throws(TLSFailure) {
        if let path = policy.authorities {
            add(try Self.open(path, for: .certificates))
        } else {
            add(try Self.openSystemAuthorities())
        }
        guard let identity = policy.identity else { return }
        let isOneFile = identity.certificate == identity.key
        add(try Self.open(identity.certificate, for: isOneFile ? .secret : .certificates))
        add(try Self.open(identity.key, for: .secret))
        if let path = identity.passwordFile { add(try Self.open(path, for: .secret)) }
    }

    deinit { for number in numbers { close(number) } }

    private func add(_ file: consuming OwnedDescriptor) { numbers.append(file.release()) }

    /// What a file is read for, which decides who else may touch it.
    private enum Purpose {
        /// Certificates: everybody may read them, but whoever can write them decides who is trusted.
        case certificates
        /// A private key or a password: others than the owner and the group must not even read it. (The group may:
        /// Debian gives the keys of /etc/ssl/private to the group ssl-cert.)
        case secret

        var forbiddenMode: mode_t {
            switch self {
            case .certificates: S_IWGRP | S_IWOTH
            case .secret: S_IWGRP | S_IRWXO
            }
        }
    }

    private static func open(_ path: String, for purpose: Purpose) throws(TLSFailure) -> OwnedDescriptor {
        // Not to be stopped by a named pipe that nobody writes to.
        let number = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if number < 0 {
            throw .unusableFile(path: path, problem: "cannot be read: \(SystemError.text(errno))")
        }
        let descriptor = OwnedDescriptor(number)
        var status = stat()
        fstat(descriptor.number, &status)
        if let problem = problem(of: status, for: purpose) { throw .unusableFile(path: path, problem: problem) }
        return descriptor
    }

    private static func problem(of status: stat, for purpose: Purpose) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "is not a regular file" }
        guard status.st_mode & purpose.forbiddenMode != 0 else { return nil }
        switch purpose {
        case .certificates: return "can be written by others than its owner, who could trust anybody; chmod go-w"
        case .secret: return "can be read by everybody, or written by others than its owner; chmod g-w,o="
        }
    }

    /// Where systems keep the authorities that they trust, in one file: Debian, Fedora, openSUSE, OpenBSD's LibreSSL
    /// and Alpine; the first that is there counts, as in Go's crypto/x509 (root_linux.go).
    private static let systemAuthorities = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// The file of the authorities that the system trusts, or of those that `$SSL_CERT_FILE` names; an empty file where
    /// there is none, and then nobody is trusted.
    private static func openSystemAuthorities() throws(TLSFailure) -> OwnedDescriptor {
        let places = getenv("SSL_CERT_FILE").map { [String(cString: $0)] } ?? systemAuthorities
        for place in places {
            let number = Glibc.open(place, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            if number >= 0 { return OwnedDescriptor(number) }
        }
        let number = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
        if number >= 0 { return OwnedDescriptor(number) }
        throw .unusableFile(path: places[0], problem: "cannot be read: \(SystemError.text(errno))")
    }
}
