// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConfiguration
import Testing

@testable import DialtoneSession

/// What becomes of `[push]` in session.toml.
@Suite struct PushServerSettingsTests {
    private static func settings(_ server: PushSettings.Server, password: String? = nil) -> PushSettings {
        var settings = PushSettings(server: server)
        settings.password = password.map { Array($0.utf8) }
        return settings
    }

    @Test(arguments: [
        ("https://ntfy.example", true), ("http://127.0.0.1:8080", true), ("http://[::1]", true),
        ("http://localhost/", true), ("http://ntfy.example", false), ("http://localhost.example", false),
        ("http://127.0.0.1.example/", false), ("http://localhost@ntfy.example", false),
        ("http://localhost:80@ntfy.example/", false), ("http://127.0.0.2", false),
    ])
    func `a token goes to another machine over TLS alone`(url: String, isTaken: Bool) {
        let server = try? Self.settings(.ntfy(url), password: "tk_secret").makeServer(memory: nil)
        #expect((server != nil) == isTaken, "\(url)")
        // Without a token there is nothing to hide.
        if !url.contains("@") { #expect((try? Self.settings(.ntfy(url)).makeServer(memory: nil)) != nil, "\(url)") }
    }

    @Test(arguments: [
        ("xmpp.example.com", true), ("xmpp.example.com:5223", true), ("[2001:db8::1]:5223", true), ("", false),
        (":5223", false), ("xmpp.example.com:", false), ("xmpp.example.com:70000", false), ("[2001:db8::1", false),
        ("[2001:db8::1]5223", false), ("xmpp.example.com:5223:1", false),
    ])
    func `a host has a name and may have a port`(host: String, isTaken: Bool) {
        var settings = Self.settings(.xmpp("alice@example.com"), password: "secret")
        settings.host = host
        #expect(((try? settings.makeServer(memory: nil)) != nil) == isTaken, "\(host)")
        // The certificate is the domain's all the same.
        #expect(settings.tls?.serverName == "example.com")
    }
}
