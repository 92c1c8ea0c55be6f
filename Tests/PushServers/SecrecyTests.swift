// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtonePushServers

/// What somebody sees who writes values into a log.
@Suite struct SecrecyTests {
    @Test func `no description of a server's value or of how it is parked shows a password`() throws {
        let password = "swordfish"
        let account = try XMPPAccount(jid: "juliet@lab.example", password: password, service: "lab.example")
        var talk = Talk(account: account)
        talk.logIn()
        let ntfy = try #require(NtfyServer(url: "https://ntfy.test", credentials: .token(password)))
        let user = NtfyServer.Credentials.user("juliet", password: password)
        let values: [Any] = [account, talk.server, try #require(talk.server.parking), ntfy, user]
        let encoded = Base64.text(of: [0] + Array("juliet".utf8) + [0] + Array(password.utf8))
        let bytes = "\(Array(encoded.utf8))".dropFirst().dropLast()
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                for secret in [password, encoded, String(bytes)] { #expect(!text.contains(secret), "\(text)") }
                #expect(!text.contains("- \(Array(encoded.utf8)[0])\n"), "\(text)")
            }
        }
    }
}
