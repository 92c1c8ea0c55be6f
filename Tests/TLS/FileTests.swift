// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct FileTests {
    let surroundings = Surroundings()
    let client: TestCertificate

    init() {
        client = TestCertificate(.init("client"), issuer: surroundings.authority)
    }

    private var server: TestServer {
        var settings = TestServer.Settings()
        settings.clientAuthority = surroundings.authority
        return TestServer(surroundings.certificate, settings)
    }

    private func policy(key: String, password: String? = nil) -> TLSPolicy {
        var policy = surroundings.policy
        policy.identity = .init(
            certificate: surroundings.files.write(client.chain, to: "client.pem", mode: 0o644), key: key,
            passwordFile: password)
        return policy
    }

    private func problem(_ policy: TLSPolicy) -> String? {
        do throws(TLSFailure) {
            _ = try TLSContext(policy)
            return nil
        } catch {
            guard case .unusableFile(let path, let problem) = error else { return "\(error)" }
            #expect(path.hasPrefix(surroundings.files.directory))
            #expect(error.isPermanent)
            return problem
        }
    }

    // MARK: - The client's certificate

    @Test(arguments: [0x0303...0x0303, 0x0304...0x0304] as [ClosedRange<Int32>])
    func `a server that asks gets the certificate`(versions: ClosedRange<Int32>) throws {
        var settings = TestServer.Settings()
        settings.clientAuthority = surroundings.authority
        settings.versions = versions
        let server = TestServer(surroundings.certificate, settings)
        let link = try surroundings.link(
            policy(key: surroundings.files.write(client.keyText(), to: "key.pem")), server: server)
        link.run()
        #expect(link.client.send("hello") == 5)
        link.run()
        #expect(link.client.state == .open)
        #expect(link.server.received == Array("hello".utf8))

        #expect(try surroundings.failure(server: server) == .clientCertificateRequired)
        let stranger = TestCertificate(.init("stranger"), issuer: TestCertificate(.authority("Nobody")))
        var policy = surroundings.policy
        policy.identity = .init(
            certificate: surroundings.files.write(stranger.pem + stranger.keyText(), to: "stranger.pem", mode: 0o640))
        guard case .clientCertificateRefused(let alert) = try surroundings.failure(policy, server: server) else {
            Issue.record("not told as refused")
            return
        }
        #expect(alert.description == "unknown CA")
    }

    @Test func `an encrypted key needs its password`() throws {
        let key = surroundings.files.write(client.keyText(password: "open sesame"), to: "key.pem")
        let none = problem(policy(key: key))
        #expect(none?.contains("holds an encrypted key, and no password_file is named") == true)
        let wrong = surroundings.files.write("open simsim\n", to: "wrong")
        #expect(problem(policy(key: key, password: wrong)) == "cannot be decrypted by the password in \(wrong)")
        let right = surroundings.files.write("open sesame\nanother line\n", to: "right")
        #expect(problem(policy(key: key, password: right)) == nil)
        let empty = surroundings.files.write("\n", to: "empty")
        #expect(problem(policy(key: key, password: empty)) == "cannot be decrypted by the password in \(empty)")
    }

    @Test(
        arguments: [(0o600, true), (0o640, true), (0o400, true), (0o644, false), (0o660, false), (0o604, false)]
            as [(UInt32, Bool)])
    func `a key is read only where it is kept`(mode: UInt32, isFine: Bool) {
        let found = problem(policy(key: surroundings.files.write(client.keyText(), to: "key.pem", mode: mode)))
        #expect((found == nil) == isFine, "\(found ?? "")")
        if !isFine { #expect(found?.hasSuffix("chmod g-w,o=") == true) }
    }

    @Test func `a key beside its certificate is kept as a key`() {
        var policy = surroundings.policy
        policy.identity = .init(
            certificate: surroundings.files.write(client.pem + client.keyText(), to: "both.pem", mode: 0o644))
        #expect(problem(policy)?.hasSuffix("chmod g-w,o=") == true)
    }

    @Test func `files that are of no use say why`() {
        let key = surroundings.files.write(client.keyText(), to: "key.pem")
        let other = surroundings.files.write(surroundings.authority.keyText(), to: "other.pem")
        let text = surroundings.files.write("a note about certificates\n", to: "text")
        #expect(problem(policy(key: other))?.hasPrefix("does not go with the certificate in ") == true)
        #expect(problem(policy(key: text)) == "holds no private key in PEM")
        let missing = problem(policy(key: "\(surroundings.files.directory)/none"))
        #expect(missing == "cannot be read: No such file or directory")
        #expect(problem(policy(key: surroundings.files.directory)) == "is not a regular file")

        var policy = TLSPolicy()
        policy.authorities = text
        #expect(problem(policy) == "holds no certificate in PEM")
        let half = surroundings.authority.pem.dropLast(100)
        policy.authorities = surroundings.files.write("\(half)\n", to: "half.pem")
        #expect(problem(policy)?.hasPrefix("is damaged: ") == true)
        policy.authorities = surroundings.files.write(surroundings.authority.pem, to: "open.pem", mode: 0o666)
        #expect(problem(policy)?.hasSuffix("chmod go-w") == true)
        policy = self.policy(key: key)
        policy.identity?.certificate = text
        #expect(problem(policy) == "holds no certificate in PEM")
    }

    // MARK: - Secrets

    @Test func `no description holds a key or a password`() throws {
        let secret = "open sesame"
        let key = surroundings.files.write(client.keyText(password: secret), to: "key.pem")
        let password = surroundings.files.write(secret, to: "password")
        let policy = policy(key: key, password: password)
        let context = try TLSContext(policy)
        let resumption = TLSResumption()
        let link = try surroundings.link(policy, server: server, in: context, resuming: resumption)
        link.run()
        #expect(link.client.state == .open)
        #expect(link.client.send("a body that is private") == 22)
        var texts: [String] = []
        for value in [policy, context, link.client, resumption, link.client.summary as Any] as [Any] {
            var text = ""
            dump(value, to: &text)
            texts += [text, "\(value)", String(reflecting: value)]
        }
        var wrong = policy
        wrong.identity?.passwordFile = surroundings.files.write("\(secret)!", to: "wrong")
        texts.append(problem(wrong) ?? "")
        // Any sixteen characters in a row of the key's body would be too many.
        let body = client.keyText().split(separator: "\n").dropFirst().dropLast().joined()
        for text in texts {
            #expect(!text.contains(secret))
            #expect(!text.contains("private"))
            #expect(!text.contains(body.prefix(16)))
        }
    }
}
