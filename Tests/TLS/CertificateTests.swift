// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct CertificateTests {
    @Test func `an expired one says since when`() throws {
        var request = TestCertificate.Request(Surroundings.name, alternatives: "DNS:\(Surroundings.name)")
        request.validity = -86_400 ... -3600
        let failure = try Surroundings(request).failure()
        guard case .certificate(.expired("sip.example.com", let since)) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(since.wholeMatch(of: #/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/#) != nil)
        #expect(failure?.description == "the certificate of sip.example.com expired on \(since)")
        #expect(failure?.isPermanent == true)
    }

    @Test func `an expired authority is named`() throws {
        let surroundings = Surroundings()
        var request = TestCertificate.Request.authority("Old Authority")
        request.validity = -86_400 ... -3600
        let old = TestCertificate(request)
        let certificate = TestCertificate(.init("s", alternatives: "DNS:\(Surroundings.name)"), issuer: old)
        var policy = TLSPolicy()
        policy.authorities = surroundings.files.write(old.pem, to: "old.pem")
        guard
            case .certificate(.expired("Old Authority", _)) = try surroundings.failure(
                policy, server: TestServer(certificate))
        else {
            Issue.record("not told as expired")
            return
        }
    }

    @Test func `one that is not valid yet makes the clock suspect and passes`() throws {
        var request = TestCertificate.Request(Surroundings.name, alternatives: "DNS:\(Surroundings.name)")
        request.validity = 3600...86_400
        let failure = try Surroundings(request).failure()
        guard case .certificate(.notYetValid("sip.example.com", let until, let clock)) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(clock < until)
        #expect(failure?.isPermanent == false)
    }

    @Test func `a wrong name says which it has`() throws {
        let surroundings = Surroundings(.init("x", alternatives: "DNS:sip.example.net,DNS:*.example.net,IP:192.0.2.1"))
        let failure = try surroundings.failure()
        let found = ["sip.example.net", "*.example.net", "192.0.2.1"]
        #expect(failure == .certificate(.wrongName(wanted: Surroundings.name, found: found)))
        #expect(
            failure?.description
                == "the certificate is not for sip.example.com but for sip.example.net, *.example.net, 192.0.2.1")
    }

    @Test func `many names are cut short`() throws {
        let names = (1...100).map { "DNS:host-\($0).example.net" }.joined(separator: ",")
        guard case .certificate(.wrongName(_, let found)) = try Surroundings(.init("x", alternatives: names)).failure()
        else {
            Issue.record("not told as a wrong name")
            return
        }
        #expect(found.count == 9)
        #expect(found.last == "…")
    }

    @Test func `a common name is no name`() throws {
        let failure = try Surroundings(.init(Surroundings.name)).failure()
        #expect(failure == .certificate(.wrongName(wanted: Surroundings.name, found: [])))
    }

    @Test(arguments: [
        ("DNS:*.example.com", "sip.example.com", true), ("DNS:*.example.com", "a.sip.example.com", false),
        ("DNS:*.example.com", "example.com", false), ("DNS:s*.example.com", "sip.example.com", false),
        ("DNS:*.com", "example.com", false), ("IP:192.0.2.7", "192.0.2.7", true), ("IP:192.0.2.8", "192.0.2.7", false),
        ("DNS:192.0.2.7", "192.0.2.7", false), ("IP:2001:db8::7", "2001:db8::7", true),
        ("DNS:SIP.Example.COM", "sip.example.com", true),
    ])
    func `names match by the rules`(alternatives: String, host: String, matches: Bool) throws {
        let failure = try Surroundings(.init("x", alternatives: alternatives)).failure(host: host)
        #expect((failure == nil) == matches)
    }

    @Test func `a self signed one is said to be`() throws {
        let surroundings = Surroundings()
        let own = TestCertificate(.init("door", alternatives: "DNS:\(Surroundings.name)"))
        let failure = try surroundings.failure(server: TestServer(own))
        #expect(failure == .certificate(.selfSigned(subject: "door")))
        // Named as what is trusted, it is.
        var policy = TLSPolicy()
        policy.authorities = surroundings.files.write(own.pem, to: "own.pem")
        #expect(try surroundings.failure(policy, server: TestServer(own)) == nil)
    }

    @Test func `an unknown authority is named`() throws {
        let surroundings = Surroundings()
        let other = TestCertificate(.authority("Somebody Else"))
        let certificate = TestCertificate(.init("x", alternatives: "DNS:\(Surroundings.name)"), issuer: other)
        let failure = try surroundings.failure(server: TestServer(certificate))
        #expect(failure == .certificate(.unknownIssuer("Somebody Else")))
    }

    @Test func `the system's trust does not know a test's authority`() throws {
        #expect(try Surroundings().failure(TLSPolicy()) == .certificate(.unknownIssuer("Test Authority")))
    }

    @Test func `a missing intermediate is named`() throws {
        let surroundings = Surroundings()
        let middle = TestCertificate(.authority("Middle Authority"), issuer: surroundings.authority)
        let certificate = TestCertificate(.init("x", alternatives: "DNS:\(Surroundings.name)"), issuer: middle)
        #expect(try surroundings.failure(server: TestServer(certificate)) == nil)
        var settings = TestServer.Settings()
        settings.sendsChain = false
        let forgetful = TestServer(certificate, settings)
        let failure = try surroundings.failure(server: forgetful)
        #expect(failure == .certificate(.unknownIssuer("Middle Authority")))
        #expect(failure?.advice?.contains("intermediate") == true)
        // An intermediate may be what is trusted.
        var policy = TLSPolicy()
        policy.authorities = surroundings.files.write(middle.pem, to: "middle.pem")
        #expect(try surroundings.failure(policy, server: forgetful) == nil)
    }

    @Test func `a revoked one is refused where a list says so`() throws {
        let surroundings = Surroundings()
        func policy(_ lists: String) -> TLSPolicy {
            var policy = TLSPolicy()
            policy.authorities = surroundings.files.write(surroundings.authority.pem + lists, to: "lists.pem")
            return policy
        }
        let authority = surroundings.authority
        let revoked = authority.revocationList(of: [surroundings.certificate])
        #expect(try surroundings.failure(policy(revoked)) == .certificate(.revoked(subject: Surroundings.name)))
        #expect(try surroundings.failure(policy(authority.revocationList(of: []))) == nil)
        let old = authority.revocationList(of: [], validity: -86_400 ... -3600)
        #expect(try surroundings.failure(policy(old)) == .certificate(.revocationUnknown("CRL has expired")))
    }

    @Test func `a weak key is refused where the system says so`() throws {
        var request = TestCertificate.Request("x", alternatives: "DNS:\(Surroundings.name)")
        request.key = .rsa(bits: 1024)
        guard case .certificate(.weak(let text)) = try Surroundings(request).failure() else {
            Issue.record("not told as weak")
            return
        }
        #expect(text.lowercased().contains("key too"))
    }

    @Test func `one that is not for servers is refused`() throws {
        var request = TestCertificate.Request("x", alternatives: "DNS:\(Surroundings.name)")
        request.usage = "clientAuth"
        #expect(try Surroundings(request).failure() == .certificate(.wrongPurpose))
    }

    @Test func `what a server calls itself cannot write into a log`() throws {
        let surroundings = Surroundings()
        let own = TestCertificate(.init("door\n[31mall is well\u{7}", alternatives: "DNS:\(Surroundings.name)"))
        let failure = try #require(try surroundings.failure(server: TestServer(own)))
        #expect(failure == .certificate(.selfSigned(subject: "door?[31mall is well?")))
    }

    // MARK: - Pins and no verification

    @Test func `a pin may be of any key in the verified chain`() throws {
        let surroundings = Surroundings()
        for pinned in [surroundings.certificate, surroundings.authority] {
            var policy = surroundings.policy
            policy.pins = [try #require(pinned.pin)]
            let link = try surroundings.link(policy)
            link.run()
            #expect(link.client.summary?.assurance == .verified)
        }
    }

    @Test func `a wrong pin says which it should be`() throws {
        let surroundings = Surroundings()
        var policy = surroundings.policy
        policy.pins = [try #require(TestCertificate(.init("other")).pin)]
        let failure = try surroundings.failure(policy)
        let pin = try #require(surroundings.certificate.pin)
        #expect(failure == .certificate(.pinMismatch(found: pin)))
        #expect(failure?.description == "the server's key is not pinned; its pin is \(pin)")
    }

    @Test func `a pin does not replace the verification`() throws {
        let surroundings = Surroundings(.init("x", alternatives: "DNS:other.example.com"))
        var policy = surroundings.policy
        policy.pins = [try #require(surroundings.certificate.pin)]
        let failure = try surroundings.failure(policy)
        #expect(failure == .certificate(.wrongName(wanted: Surroundings.name, found: ["other.example.com"])))
    }

    @Test func `without verification anything goes and the summary says so`() throws {
        var policy = TLSPolicy()
        policy.verifiesCertificate = false
        let link = try Surroundings(.init("x")).link(policy)
        link.run()
        #expect(link.client.state == .open)
        #expect(link.client.summary?.assurance == .unverified)
    }

    @Test func `without verification only the server's own key counts for a pin`() throws {
        let surroundings = Surroundings(.init("x"))
        let middle = TestCertificate(.authority("Middle"), issuer: surroundings.authority)
        let certificate = TestCertificate(.init("x"), issuer: middle)
        var policy = TLSPolicy()
        policy.verifiesCertificate = false
        policy.pins = [try #require(certificate.pin)]
        let link = try surroundings.link(policy, server: TestServer(certificate))
        link.run()
        #expect(link.client.summary?.assurance == .pinned)
        // The chain is what the server appended: anybody can append a certificate that is public.
        policy.pins = [try #require(middle.pin)]
        let failure = try surroundings.failure(policy, server: TestServer(certificate))
        #expect(failure == .certificate(.pinMismatch(found: certificate.pin)))
    }

    @Test func `the pin is the one that OpenSSL s tools make`() throws {
        let surroundings = Surroundings()
        let path = surroundings.files.write(surroundings.certificate.pem, to: "certificate.pem")
        let command =
            "openssl x509 -in \(path) -pubkey -noout | openssl pkey -pubin -outform der "
            + "| openssl dgst -sha256 -binary | openssl enc -base64"
        let result = Program.run("/bin/sh", ["-c", command])
        try #require(result.status == 0)
        let digest = result.output.split(separator: "\n").first.map(String.init) ?? ""
        #expect(surroundings.certificate.pin?.digest == digest)
    }
}

extension TestCertificate {
    /// The pin as the client makes it.
    var pin: CertificatePin? { Certificate(handle)?.pin }
}
