// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// The files of a policy, opened by who may open them.
package struct TLSFiles: ~Copyable {
    /// The authorities that are trusted: the policy's own or, where it names none, the system's.
    package let authorities: OwnedDescriptor
    /// The client's certificate; `nil` where the policy names none, and so on.
    package let certificate: OwnedDescriptor?
    /// The key that goes with it.
    package let key: OwnedDescriptor?
    /// The password of the key.
    package let password: OwnedDescriptor?

    /// Files.
    package init(
        authorities: consuming OwnedDescriptor, certificate: consuming OwnedDescriptor? = nil,
        key: consuming OwnedDescriptor? = nil, password: consuming OwnedDescriptor? = nil
    ) {
        self.authorities = authorities
        self.certificate = certificate
        self.key = key
        self.password = password
    }

    /// Which versions of the files they are.
    var stamps: [FileStamp?] {
        [
            FileStamp(authorities), Self.stamp(of: certificate), Self.stamp(of: key), Self.stamp(of: password),
        ]
    }

    private static func stamp(of file: borrowing OwnedDescriptor?) -> FileStamp? {
        switch file {
        case .some(let file): FileStamp(file)
        case .none: nil
        }
    }
}
