// SPDX-License-Identifier: Apache-2.0

/// Where a server is: the parts of its URL that the dialler and the request need.
struct ServerURL: Hashable, Sendable {
    /// Whether its bytes are inside TLS.
    let isSecure: Bool
    /// The host and, where one is written, the port.
    let host: String
    /// The path and the query, from the slash on.
    let path: String

    /// What the machine's agent dials.
    var remote: String { "\(isSecure ? "wss" : "ws")://\(host)" }

    /// Reads a URL.
    ///
    /// - Parameters:
    ///   - secure: the scheme with TLS.
    ///   - plain: the one without.
    /// - Returns: `nil` for another scheme, no host, a user or a character that no URL has (RFC 3986).
    init?(_ text: String, secure: String, plain: String) {
        guard text.utf8.count <= 1000, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x22 }) else {
            return nil
        }
        let isSecure = text.hasPrefix("\(secure)://")
        guard isSecure || text.hasPrefix("\(plain)://") else { return nil }
        let rest = text.dropFirst((isSecure ? secure : plain).count + 3)
        let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest.dropFirst(host.count)
        guard host.contains(where: { $0.isLetter || $0.isNumber }), !path.contains("#"), path.first != "?",
            host.allSatisfy({ $0.isLetter || $0.isNumber || ".-:[]_".contains($0) })
        else { return nil }
        (self.isSecure, self.host, self.path) = (isSecure, String(host), path.isEmpty ? "/" : String(path))
    }
}
