// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct HandshakeTests {
    @Test(arguments: TLSPolicy.Version.allCases)
    func `both versions are spoken`(version: TLSPolicy.Version) throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.versions = version.number...version.number
        let link = try surroundings.link(server: TestServer(surroundings.certificate, settings))
        #expect(link.client.state == .handshaking)
        #expect(link.client.summary == nil)
        link.run()
        #expect(link.client.state == .open)
        let summary = try #require(link.client.summary)
        #expect(summary.version == version)
        #expect(summary.assurance == .verified)
        #expect(!summary.isResumed)
        #expect(summary.applicationProtocol == nil)
        #expect(!summary.cipher.isEmpty)
        #expect(link.client.send("REGISTER") == 8)
        link.run()
        #expect(link.server.received == Array("REGISTER".utf8))
        link.server.send(Array("200 OK".utf8))
        link.run()
        #expect(link.client.unreadPlaintext == 6)
        #expect(link.client.readText() == "200 OK")
        #expect(link.client.unreadPlaintext == 0)
    }

    @Test(arguments: TLSPolicy.Version.allCases)
    func `bytes may come one by one`(version: TLSPolicy.Version) throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.versions = version.number...version.number
        let link = try surroundings.link(server: TestServer(surroundings.certificate, settings))
        link.piece = { _ in 1 }
        link.run()
        link.server.send(Array("INVITE".utf8))
        link.run()
        #expect(link.client.readText() == "INVITE")
    }

    @Test(arguments: seeds(8))
    func `bytes may be cut anywhere`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        if random.chance(50) { settings.versions = 0x0303...0x0303 }
        let link = try surroundings.link(server: TestServer(surroundings.certificate, settings))
        link.piece = { Int.random(in: 1...min($0, 700), using: &random) }
        link.run()
        #expect(link.client.state == .open)
        var expected: [UInt8] = []
        var read: [UInt8] = []
        for _ in 0..<40 {
            let bytes = (0..<Int.random(in: 1...5000, using: &random)).map { UInt8(truncatingIfNeeded: $0) }
            expected += bytes
            link.server.send(bytes)
            link.run()
            read += link.client.read(atMost: Int.random(in: 1...6000, using: &random))
        }
        link.run()
        while link.client.unreadPlaintext > 0 {
            read += link.client.read()
            link.run()
        }
        #expect(read == expected)
        #expect(link.client.state == .open)
    }

    @Test func `the server is asked for its name`() throws {
        let surroundings = Surroundings()
        let link = try surroundings.link()
        link.run()
        #expect(link.server.requestedName == Surroundings.name)
        var policy = surroundings.policy
        policy.serverName = Surroundings.name
        let override = try surroundings.link(policy, host: "edge-7.example.net")
        override.run()
        #expect(override.server.requestedName == Surroundings.name)
        #expect(override.client.state == .open)
    }

    @Test(arguments: ["192.0.2.7", "2001:db8::7"])
    func `an address is no name to ask for`(address: String) throws {
        let surroundings = Surroundings(.init("server", alternatives: "IP:192.0.2.7,IP:2001:db8::7"))
        let link = try surroundings.link(host: address)
        link.run()
        #expect(link.client.state == .open)
        #expect(link.server.requestedName == nil)
    }

    @Test func `the protocol is offered and chosen`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.applicationProtocols = ["xmpp-client"]
        let server = TestServer(surroundings.certificate, settings)
        let link = try surroundings.link(offering: ["xmpp-client"], server: server)
        link.run()
        #expect(link.client.summary?.applicationProtocol == "xmpp-client")

        #expect(try surroundings.failure(offering: ["mqtt"], server: server) == .noCommonProtocol(offered: ["mqtt"]))
        var policy = surroundings.policy
        policy.applicationProtocols = []
        let silent = try surroundings.link(policy, offering: ["mqtt"], server: server)
        silent.run()
        #expect(silent.client.state == .open)
    }

    @Test func `a server that knows no protocols is fine`() throws {
        let link = try Surroundings().link(offering: ["sip/2"])
        link.run()
        #expect(link.client.state == .open)
        #expect(link.client.summary?.applicationProtocol == nil)
    }

    @Test func `a server that chooses what was not offered is not spoken to`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.imposedProtocol = "http/1.1"
        let server = TestServer(surroundings.certificate, settings)
        let failure = try surroundings.failure(offering: ["mqtt"], server: server)
        // OpenSSL looks itself since 3.0.15, and says it in its own way.
        #expect([.noCommonProtocol(offered: ["mqtt"]), .broken("bad extension")].contains(failure))
    }

    @Test func `versions before 1.2 are not spoken`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.versions = 0x0301...0x0302
        settings.ciphers = "ALL:@SECLEVEL=0"
        let failure = try surroundings.failure(server: TestServer(surroundings.certificate, settings))
        #expect(failure == .noCommonVersion(minimum: .v12))
        #expect(failure?.description == "the server does not speak TLS 1.2 or later")
        #expect(failure?.isPermanent == true)
    }

    @Test func `the minimum is kept`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.versions = 0x0303...0x0303
        var policy = surroundings.policy
        policy.minimumVersion = .v13
        let server = TestServer(surroundings.certificate, settings)
        #expect(try surroundings.failure(policy, server: server) == .noCommonVersion(minimum: .v13))
    }

    @Test func `no cipher in common is said so`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        settings.versions = 0x0303...0x0303
        settings.ciphers = "ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0"
        let server = TestServer(surroundings.certificate, settings)
        #expect(try surroundings.failure(server: server) == .noCommonCipher)
    }
}
