// SPDX-License-Identifier: Apache-2.0

package import DialtoneNotifications
internal import DialtonePlatform
internal import DialtoneTOML

/// What `session.toml` says: the configuration of `dialtone-session`.
package struct SessionConfiguration: Hashable, Sendable {
    /// `[push]`; `nil` where the user wants no push.
    package var push: PushSettings?
    /// `[notifications]`: what is shown to the user; empty where notifications are switched off.
    package var notifications = NoticeRule.defaults

    /// Nothing said: no push, and the usual notifications.
    package init() {}

    /// The file where nobody named one; `nil` for a user of whom the environment names no directory.
    package static func standardFile(user: UInt32, environment: (String) -> String?) -> String? {
        ConfigurationDirectory.standard(user: user, environment: environment).map { "\($0)/session.toml" }
    }

    /// Reads and checks a file, and the file of its password. It blocks on the file system.
    ///
    /// - Parameter mayBeMissing: whether no file is the same as an empty one.
    /// - Throws: every error of the file.
    package static func load(
        _ file: String, mayBeMissing: Bool
    ) throws(ConfigurationError) -> SessionConfiguration {
        let report = ConfigurationReport()
        var configuration = SessionConfiguration()
        if let text = Configuration.text(of: file, mayBeMissing: mayBeMissing, report) {
            do throws(TOMLError) {
                let entries = try TOMLDocument.parse(text)
                var root = TableReader(entries, of: file, at: TOMLPosition(line: 1, column: 1), path: "", report)
                configuration.push = root.table("push").flatMap { PushSettings($0) }
                if let table = root.table("notifications") { configuration.notifications = [NoticeRule](table) }
                root.finish()
            } catch {
                report.error(file, error.position, nil, error.message)
            }
        }
        try report.check()
        return configuration
    }
}

/// `[push]`: which server pushes come through, and who this machine is there.
package struct PushSettings: Hashable, Sendable {
    /// The kinds of servers.
    package enum Server: Hashable, Sendable {
        /// An account of XMPP, `user@domain`.
        case xmpp(String)
        /// A server of Mozilla's protocol, by its URL.
        case autopush(String)
        /// A server of ntfy's, by its URL.
        case ntfy(String)
    }

    /// Whose pushes they are.
    package var server: Server
    /// The password of the account, or the access token of ntfy.
    package var password: [UInt8]?
    /// XMPP: the address of the push service; without one, the account's domain.
    package var service: String?
    /// XMPP: where the account's server is, as `host:port`, in place of what DNS says.
    package var host: String?
    /// The absolute path of a PEM file: what is trusted in place of the system's authorities.
    package var ca: String?

    /// As long as systemd's credentials get, and longer than any password.
    private static let longestPassword = 1024

    /// With a server, and no more.
    package init(server: Server) { self.server = server }

    /// Reads the table. What is wrong with it is in the report.
    init?(_ table: TableReader) {
        var table = table
        let text = table.required("server")
        let service = table.string("service")
        let host = table.string("host")
        let passwordFile = table.string("password_file")
        let ca = table.string("ca")
        table.finish()
        guard let text else { return nil }
        guard let server = Server(text.value) else {
            table.error(
                "server", text.position,
                """
                "\(text.value)" is no push server: write "xmpp:user@example.com", \
                "wss://push.services.mozilla.com/" or "https://ntfy.sh"
                """)
            return nil
        }
        self.server = server
        (self.service, self.host, self.ca) = (service?.value, host?.value, ca?.value)
        guard case .xmpp = server else {
            for (key, value) in [("service", service), ("host", host)] {
                if let value { table.error(key, value.position, "is for XMPP alone") }
            }
            readPassword(passwordFile, table)
            return
        }
        if passwordFile == nil, table.isAbsent("password_file") {
            table.error("password_file", table.position, "missing: an account of XMPP has a password")
        }
        readPassword(passwordFile, table)
    }

    private mutating func readPassword(_ file: Located<String>?, _ table: TableReader) {
        guard let file else { return }
        do throws(SecretFileError) {
            var bytes = try SecretFile.read(file.value, atMost: Self.longestPassword)
            // Editors end a file with a line break, which no password has.
            while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
            password = bytes
        } catch {
            table.error("password_file", file.position, "\"\(file.value)\" \(error.problem)")
        }
    }
}

extension PushSettings.Server: CustomStringConvertible {
    /// The server of that text, as it is written in the file; `nil` for none.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[1].isEmpty, text.utf8.count <= 1024,
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        switch parts[0] {
        case "xmpp" where Self.isAccount(parts[1]): self = .xmpp(String(parts[1]))
        case "wss", "ws": self = .autopush(text)
        case "https", "http": self = .ntfy(text)
        default: return nil
        }
    }

    /// As it is written in the file.
    package var description: String {
        switch self {
        case .xmpp(let account): "xmpp:\(account)"
        case .autopush(let url), .ntfy(let url): url
        }
    }

    private static func isAccount(_ text: Substring) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && !$0.contains("/") }
    }
}

extension PushSettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The server. The password is nobody's business.
    package var description: String { server.description }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["server": description]) }
}
