// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import Glibc

/// How a connection is secured. Files are for root and the daemon's own user: the daemon reads them by its own rights.
struct TLSOptions: ParsableArguments {
    @Option(help: ArgumentHelp("What is trusted in place of the system's authorities.", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("The client's certificate, for a server that asks for one.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("Its private key, where that is not in the same file.", valueName: "file"))
    var key: String?

    @Option(help: ArgumentHelp("The password of the private key.", valueName: "file"))
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "A key that the server or one above it must have: the base64 of its SHA-256 (RFC 7469); repeatable.",
            valueName: "sha256"))
    var pin: [String] = []

    @Option(help: "The name that the server must have, where it is not the remote's host.")
    var serverName: String?

    @Flag(help: "Take any certificate. Whoever is in between can pass for the server.")
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
