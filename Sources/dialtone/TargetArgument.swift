// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneConnection
internal import DialtoneNetworkPath

/// A target on the command line.
struct TargetArgument {
    /// The ways to write one, for help texts.
    static let forms = "HOST, HOST:PORT, ADDRESS, [ADDRESS]:PORT or SCHEME://HOST[:PORT]"

    /// As it was written.
    let text: String
    let target: Target
    /// What is spoken there, where that was said.
    var scheme: Remote.Scheme?

    /// Refuses an address that each link has for its own where no link is named.
    ///
    /// - Parameter target: the target with all that was said of its packets; by default as it was written.
    func requireLink(of target: Target? = nil) throws {
        let target = target ?? self.target
        guard target.isLinkLocal, target.interface == nil else { return }
        throw ValidationError("each link has a \(text) of its own: name one, as in \(target.host)%eth0")
    }

    /// Reads a target; what is none is told with what would be one.
    static func parse(_ text: String) throws -> TargetArgument {
        if text.contains("://") {
            do throws(RemoteError) {
                let remote = try Remote(text)
                return TargetArgument(
                    text: text, target: Target(remote.host, port: remote.port), scheme: remote.scheme)
            } catch {
                throw ValidationError("\(error)")
            }
        }
        guard let target = Target(text: text) else {
            if let port = text.lastIndex(of: ":").map({ text[text.index(after: $0)...] }), !port.isEmpty,
                port.allSatisfy({ $0.isASCII && $0.isNumber }), UInt16(port).map({ $0 == 0 }) ?? true
            {
                throw ValidationError("invalid port \"\(port)\" (1–65535)")
            }
            throw ValidationError(
                """
                a host is a name or an address, a port a number from 1 to 65535, \
                and an IPv6 address before a port stands in brackets; \
                only a link-local one has a link, as in fe80::1%eth0\(hint(on: text))
                """)
        }
        return TargetArgument(text: text, target: target)
    }

    /// A hyphen that was not escaped becomes a slash in a unit (systemd-escape(1)).
    private static func hint(on text: String) -> String {
        text.contains("/") ? #"; in the name of a unit, write a hyphen as \x2d (see systemd-escape)"# : ""
    }
}
