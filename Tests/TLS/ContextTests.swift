// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct ContextTests {
    @Test func `connections of equal files share a context`() throws {
        let contexts = TLSContexts()
        let surroundings = Surroundings()
        let policy = surroundings.policy
        let first = try contexts.context(for: policy, TLSFiles(of: policy))
        var other = policy
        other.serverName = "elsewhere.example.com"
        other.verifiesCertificate = false
        #expect(try contexts.context(for: other, TLSFiles(of: other)) === first)
        other.minimumVersion = .v13
        #expect(try contexts.context(for: other, TLSFiles(of: other)) !== first)
        #expect(try contexts.context(for: TLSPolicy(), TLSFiles(of: TLSPolicy())) !== first)
    }

    @Test func `a file that changed is read again`() throws {
        let contexts = TLSContexts()
        let surroundings = Surroundings()
        let certificate = TestCertificate(.init("x"), issuer: surroundings.authority)
        var policy = surroundings.policy
        func write(_ certificate: TestCertificate) {
            policy.identity = .init(
                certificate: surroundings.files.write(certificate.pem + certificate.keyText(), to: "own.pem"))
        }
        write(certificate)
        let first = try contexts.context(for: policy, TLSFiles(of: policy))
        #expect(try contexts.context(for: policy, TLSFiles(of: policy)) === first)
        write(TestCertificate(.init("renewed"), issuer: surroundings.authority))
        #expect(try contexts.context(for: policy, TLSFiles(of: policy)) !== first)
        surroundings.files.write("", to: "own.pem")
        #expect(throws: TLSFailure.self) { try contexts.context(for: policy, TLSFiles(of: policy)) }
    }

    @Test func `a context that nobody uses is let go`() throws {
        let contexts = TLSContexts()
        weak var weakly: TLSContext?
        do {
            let context = try contexts.context(for: TLSPolicy(), TLSFiles(of: TLSPolicy()))
            weakly = context
        }
        #expect(weakly == nil)
    }
}
