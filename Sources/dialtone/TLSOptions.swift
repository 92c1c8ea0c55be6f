// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import Glibc

/// How a connection is secured. Files are for root and the daemon's own user: the daemon reads them by its own rights.
struct TLSOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The certificate authorities to trust instead of the system's.", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("The client certificate, for servers that ask for one.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("The certificate's private key, if it is not in the same file.", valueName: "file"))
    var key: String?

    @Option(help: ArgumentHelp("The password of the private key.", valueName: "file"))
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "A public key that the server's chain must contain: the base64 of its SHA-256 (RFC 7469); repeatable.",
            valueName: "sha256"))
    var pin: [String] = []

    @Option(help: "The name in the server's certificate, if it is not the host dialled.")
    var serverName: String?

    @Flag(help: "Accept any certificate. Anybody on the way can then pretend to be the server.")
    var noVerify = false

    /// For the daemon; `nil` when none was given. Its paths are absolute, since the daemon works elsewhere.
    var wire: ConnectionsAPI.TLS? {
        let wire = ConnectionsAPI.TLS(
            pins: pin.isEmpty ? nil : pin, verify: noVerify ? false : nil, serverName: serverName,
            ca: Self.absolute(ca), certificate: Self.absolute(certificate),
            key: Self.absolute(key),
            passwordFile: Self.absolute(passwordFile))
        return wire == ConnectionsAPI.TLS() ? nil : wire
    }

    private static func absolute(_ path: String?) -> String? {
        guard let path, !path.hasPrefix("/"), let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        return "\(String(cString: directory))/\(path)"
    }
}
