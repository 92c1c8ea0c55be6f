// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import Testing

@testable import DialtoneTLS

/// What a server cannot have the client compute.
@Suite struct ComputingBoundsTests {
    private func outcome(
        of surroundings: Surroundings, certificate: TestCertificate? = nil, _ settings: TestServer.Settings
    ) throws -> TLSSession {
        let link = try surroundings.link(server: TestServer(certificate ?? surroundings.certificate, settings))
        link.run()
        return link.client
    }

    private func problem(_ client: TLSSession) -> String {
        if case .certificate(let problem)? = client.failure { problem.description } else { "\(client.state)" }
    }

    @Test func `no keys are exchanged over a finite field of the server's choice`() throws {
        var request = TestCertificate.Request(Surroundings.name, alternatives: "DNS:\(Surroundings.name)")
        request.key = .rsa(bits: 2048)
        var settings = TestServer.Settings()
        settings.versions = 0x0303...0x0303
        settings.ciphers = "DHE-RSA-AES256-GCM-SHA384"
        #expect(try outcome(of: Surroundings(request), settings).failure == .noCommonCipher)
    }

    @Test(arguments: ["ffdhe2048", "ffdhe8192"]) func `nor over a named one`(group: String) throws {
        var settings = TestServer.Settings()
        settings.versions = 0x0304...0x0304
        settings.groups = group
        #expect(try outcome(of: Surroundings(), settings).failure == .noCommonCipher)
    }

    @Test(arguments: ["X25519", "P-256", "P-384", "P-521", "X448"]) func `curves are spoken as before`(group: String)
        throws
    {
        for version in TLSPolicy.Version.allCases {
            var settings = TestServer.Settings()
            settings.versions = version.number...version.number
            settings.groups = "\(group):P-256"
            #expect(try outcome(of: Surroundings(), settings).state == .open)
        }
    }

    @Test(arguments: TLSPolicy.Version.allCases)
    func `a list of more certificates than are read is not decoded`(version: TLSPolicy.Version) throws {
        let surroundings = Surroundings()
        for (count, isOpen) in [(9, true), (10, false), (60, false)] {
            var settings = TestServer.Settings()
            settings.versions = version.number...version.number
            // Behind the server's own: what goes with its issuer's is trusted, and not sent.
            settings.furtherCertificates = (0..<count).map { TestCertificate(.init("further \($0)")) }
            let client = try outcome(of: surroundings, settings)
            #expect((client.state == .open) == isOpen, "\(count): \(client.state)")
            if isOpen { continue }
            #expect(
                problem(client) == "the certificate is invalid: the server sends more than 10 certificates", "\(count)")
        }
    }

    @Test func `a list without an end is not read`() throws {
        let surroundings = Surroundings()
        var settings = TestServer.Settings()
        var long = TestCertificate.Request("long")
        long.alternatives = (0..<2200).map { "DNS:host\($0).example" }.joined(separator: ",")
        settings.furtherCertificates = [TestCertificate(long)]
        #expect(try outcome(of: surroundings, settings).failure == .broken("excessive message size"))
    }

    @Test(arguments: [
        (TestCertificate.Key.publicRSA(bits: 16_384), "its RSA key is longer than 8192 bits"),
        (.rsaWithExponent("10000000000000001", bits: 2048), "its RSA key has a long exponent"),
        (.curve("sect571r1"), "its key is on none of the curves P-256, P-384 and P-521"),
        (.curve("brainpoolP512r1"), "its key is on none of the curves P-256, P-384 and P-521"),
    ]) func `no signature of an unusual key is verified`(key: TestCertificate.Key, words: String) throws {
        let surroundings = Surroundings()
        var request = TestCertificate.Request("unusual")
        request.key = key
        var settings = TestServer.Settings()
        settings.furtherCertificates = [TestCertificate(request, issuer: surroundings.authority)]
        #expect(try problem(outcome(of: surroundings, settings)) == "the certificate is invalid: \(words)")
    }

    @Test(arguments: [TestCertificate.Key.curve("P-384"), .curve("P-521"), .rsa(bits: 4096)])
    func `usual keys are taken as before`(key: TestCertificate.Key) throws {
        var request = TestCertificate.Request(Surroundings.name, alternatives: "DNS:\(Surroundings.name)")
        request.key = key
        #expect(try outcome(of: Surroundings(request), TestServer.Settings()).state == .open)
    }

    @Test func `a list is counted within its bounds`() {
        func isTooLong(_ bytes: [UInt8], _ version: TLSPolicy.Version) -> Bool {
            bytes.withUnsafeBytes { ComputingBounds.isTooLong($0, version: version.number) }
        }
        for version in TLSPolicy.Version.allCases {
            #expect(!isTooLong([], version))
            #expect(!isTooLong([0xFF], version))
            #expect(!isTooLong([UInt8](repeating: 0xFF, count: 40_000), version))
            // Certificates of no bytes, as many as there is room for.
            #expect(isTooLong([UInt8](repeating: 0, count: 400), version))
        }
    }
}
