// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneDistributor
internal import DialtonePushServers

extension PushSettings {
    /// The server's value, which goes on from what it remembered.
    ///
    /// - Throws: why it cannot be used, for a person.
    func makeServer(memory: [UInt8]?) throws(PushServiceError) -> any PushServer {
        switch server {
        case .xmpp(let jid):
            let place = try host.map { host throws(PushServiceError) in try Self.place(host) }
            let isLocal = ["127.0.0.1", "::1"].contains(place?.host)
            do throws(XMPPAccountError) {
                let account = try XMPPAccount(
                    jid: jid, password: String(decoding: password ?? [], as: UTF8.self), host: place?.host,
                    port: place?.port, service: service, security: isLocal ? .plainTextToLoopback : .directTLS)
                return XMPPPushServer(account: account, memory: memory)
            } catch {
                throw PushServiceError(description: error.description)
            }
        case .autopush(let url):
            guard let server = AutopushServer(url: url, memory: memory) else { throw Self.badURL(url) }
            return server
        case .ntfy(let url):
            let credentials = password.map { NtfyServer.Credentials.token(String(decoding: $0, as: UTF8.self)) }
            if credentials != nil, !url.hasPrefix("https:"), !Self.isOfThisMachine(url) {
                throw PushServiceError(
                    description: "\"\(url)\" would send the access token to another machine unencrypted: write https")
            }
            guard let server = NtfyServer(url: url, credentials: credentials, memory: memory) else {
                throw Self.badURL(url)
            }
            return server
        }
    }

    /// How the machine's agent is to secure the connection; `nil` for as usual.
    var tls: ConnectionsAPI.TLS? {
        var tls = ConnectionsAPI.TLS()
        tls.ca = ca
        // Wherever the account's server is, its certificate is the domain's (RFC 6120, section 13.7.1.2).
        if case .xmpp(let jid) = server, host != nil, let sign = jid.firstIndex(of: "@") {
            tls.serverName = String(jid[jid.index(after: sign)...])
        }
        return tls == ConnectionsAPI.TLS() ? nil : tls
    }

    /// Whether a URL without TLS leads to this machine.
    private static func isOfThisMachine(_ url: String) -> Bool {
        let host = url.dropFirst("http://".count)
        return ["127.0.0.1", "[::1]", "localhost"].contains { name in
            host.hasPrefix(name) && [nil, ":", "/"].contains(host.dropFirst(name.count).first)
        }
    }

    private static func badURL(_ url: String) -> PushServiceError {
        PushServiceError(description: "\"\(url)\" is no server's URL")
    }

    /// `host:port`, `host` or `[address]:port`.
    private static func place(_ text: String) throws(PushServiceError) -> (host: String, port: UInt16?) {
        let (host, rest): (Substring, Substring)
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            (host, rest) = (text[text.index(after: text.startIndex)..<end], text[text.index(after: end)...])
        } else {
            let colon = text.firstIndex(of: ":") ?? text.endIndex
            (host, rest) = (text[..<colon], text[colon...])
        }
        let port = rest.isEmpty ? nil : UInt16(rest.dropFirst())
        guard !host.isEmpty, rest.isEmpty || rest.first == ":" && port != nil else {
            throw PushServiceError(description: "host = \"\(text)\" is no host and port: write xmpp.example.com:5223")
        }
        return (String(host), port)
    }
}

/// Why there is no push.
struct PushServiceError: Error, CustomStringConvertible {
    /// For a person.
    let description: String
    /// Whether another try may go better.
    var mayPass = false
}
