// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtoneTLSTestSupport

@testable import DialtoneTLS

/// A client and a server with a wire between them, on which the test says how the bytes are cut.
final class TestLink {
    let client: TLSSession
    let server: TestServer.Session
    /// How many bytes the client is given at once, out of at most as many as it takes.
    var piece: (Int) -> Int = { $0 }
    /// What the server sent and the client did not want yet.
    private(set) var waiting: [UInt8] = []
    /// How many bytes the client sent.
    private(set) var sent = 0

    init(_ client: TLSSession, _ server: TestServer) {
        self.client = client
        self.server = server.accept()
    }

    /// Carries what there is until nobody has anything more to say.
    func run() {
        while carryUp() || carryDown() {}
    }

    /// From the client to the server; whether there was anything.
    func carryUp() -> Bool {
        var bytes: [UInt8] = []
        client.drain {
            bytes = Array($0)
            return $0.count
        }
        if bytes.isEmpty { return false }
        sent += bytes.count
        server.receive(bytes)
        return true
    }

    /// From the server to the client; whether the client took anything.
    func carryDown() -> Bool {
        waiting += server.takeOutput()
        let before = waiting.count
        while client.wantsInput, !waiting.isEmpty {
            let count = min(waiting.count, piece(min(waiting.count, TLSSession.inputLimit)))
            waiting.prefix(count).withUnsafeBytes { client.receive($0) }
            waiting.removeFirst(count)
        }
        return waiting.count != before
    }
}

extension TLSSession {
    func send(_ text: String) -> Int {
        Array(text.utf8).withUnsafeBytes { send($0) }
    }

    func read(atMost count: Int = 65_536) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            length = read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    func readText() -> String { String(decoding: read(), as: UTF8.self) }

    var failure: TLSFailure? {
        if case .failed(let failure) = state { failure } else { nil }
    }
}

/// An authority that a test's clients trust, the files they name, and a server that it vouches for.
final class Surroundings {
    static let name = "sip.example.com"

    let files = TestFiles()
    let authority: TestCertificate
    let certificate: TestCertificate

    /// A server with a certificate for ``name``, or with another one.
    init(_ request: TestCertificate.Request = .init(name, alternatives: "DNS:\(name)")) {
        authority = TestCertificate(.authority("Test Authority"))
        certificate = TestCertificate(request, issuer: authority)
    }

    /// A policy that trusts the authority and no other.
    var policy: TLSPolicy {
        var policy = TLSPolicy()
        policy.authorities = files.write(authority.pem, to: "authority.pem", mode: 0o644)
        return policy
    }

    /// A client under a policy of its own or the usual one, and the server, not connected yet.
    func link(
        _ policy: TLSPolicy? = nil, host: String = name, offering: [String] = [], server: TestServer? = nil,
        in context: TLSContext? = nil, resuming: TLSResumption? = nil
    ) throws -> TestLink {
        let policy = policy ?? self.policy
        let request = TLSRequest(to: Target.Host(host), offering: offering, under: policy)
        let session = try TLSSession(request, in: context ?? TLSContext(policy), resuming: resuming)
        return TestLink(session, server ?? TestServer(certificate))
    }

    /// What a handshake with the server fails of.
    func failure(
        _ policy: TLSPolicy? = nil, host: String = name, offering: [String] = [], server: TestServer? = nil
    ) throws -> TLSFailure? {
        let link = try link(policy, host: host, offering: offering, server: server)
        link.run()
        return link.client.failure
    }
}
