// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct ResumptionTests {
    let surroundings = Surroundings()
    let resumption = TLSResumption()

    private func server(_ version: TLSPolicy.Version, tickets: Int = 2) -> TestServer {
        var settings = TestServer.Settings()
        settings.versions = version.number...version.number
        settings.tickets = tickets
        return TestServer(surroundings.certificate, settings)
    }

    /// Connects; whether both sides say that the session was taken up.
    private func isResumed(_ policy: TLSPolicy, _ context: TLSContext, _ server: TestServer) throws -> Bool {
        let link = try surroundings.link(policy, server: server, in: context, resuming: resumption)
        link.run()
        let summary = try #require(link.client.summary)
        #expect(summary.isResumed == link.server.isResumed)
        #expect(summary.assurance == .verified)
        return summary.isResumed
    }

    @Test(arguments: TLSPolicy.Version.allCases)
    func `a session is taken up`(version: TLSPolicy.Version) throws {
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        let server = server(version)
        #expect(try !isResumed(policy, context, server))
        // Dropped without a word, as by a network that went: that is when it matters.
        for _ in 0..<5 { #expect(try isResumed(policy, context, server)) }
    }

    @Test func `tickets are used once and kept to a limit`() throws {
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        let generous = server(.v13, tickets: 10)
        #expect(try !isResumed(policy, context, generous))
        #expect(resumption.count == TLSResumption.limit)
        // From now on the same keys, but no new tickets.
        let link = try surroundings.link(policy, server: generous, in: context, resuming: resumption)
        #expect(resumption.count == TLSResumption.limit - 1)
        _ = link
        _ = try surroundings.link(policy, server: generous, in: context, resuming: resumption)
        #expect(resumption.count == 0)
        #expect(try !isResumed(policy, context, generous))
    }

    @Test func `a server that forgot makes a full handshake`() throws {
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        #expect(try !isResumed(policy, context, server(.v13)))
        #expect(try !isResumed(policy, context, server(.v13)))
    }

    @Test func `no session outlives its policy its name or its files`() throws {
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        let server = server(.v13)
        #expect(try !isResumed(policy, context, server))
        var pinned = policy
        pinned.pins = [try #require(surroundings.certificate.pin)]
        #expect(try !isResumed(pinned, context, server))
        #expect(try isResumed(pinned, context, server))
        #expect(try !isResumed(pinned, TLSContext(pinned), server))
        // A wrong pin is found out: no session without the pin is taken up in its place.
        pinned.pins = [try #require(CertificatePin("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))]
        let link = try surroundings.link(pinned, server: server, in: context, resuming: resumption)
        link.run()
        #expect(link.client.failure == .certificate(.pinMismatch(found: surroundings.certificate.pin)))
    }

    @Test func `a session of another host is not offered`() throws {
        let surroundings = Surroundings(.init("x", alternatives: "DNS:a.example.com,DNS:b.example.com"))
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        let server = TestServer(surroundings.certificate)
        for (host, isResumed) in [("a.example.com", false), ("a.example.com", true), ("b.example.com", false)] {
            let link = try surroundings.link(policy, host: host, server: server, in: context, resuming: resumption)
            link.run()
            #expect(link.client.summary?.isResumed == isResumed)
        }
    }

    @Test func `a failed handshake drops them`() throws {
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        #expect(try !isResumed(policy, context, server(.v13)))
        #expect(resumption.count > 0)
        let link = try surroundings.link(policy, in: context, resuming: resumption)
        Array("HTTP/1.1 400\r\n\r\n".utf8).withUnsafeBytes { link.client.receive($0) }
        #expect(link.client.state == .failed(.notTLS))
        #expect(resumption.count == 0)
    }
}
