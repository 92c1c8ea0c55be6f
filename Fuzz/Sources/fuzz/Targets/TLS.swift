// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtoneTLSTestSupport

@testable internal import DialtoneTLS

extension FuzzTarget {
    /// What a server sends where TLS is expected: noise, or the words of a real server with some of them changed.
    static let tls = FuzzTarget(name: "tls") { bytes in
        var draw = Draw(bytes)
        guard let surroundings = TLSSurroundings.shared else { preconditionFailure("no certificate") }
        let choice = draw.byte()
        let client = choice < 64 ? surroundings.verifying : surroundings.trusting
        guard let session = try? TLSSession(client.request, in: client.context) else {
            preconditionFailure("no session")
        }
        let server = choice & 1 == 1 ? surroundings.server.accept() : nil
        for _ in 0..<64 where !draw.isOver {
            var sent: [UInt8] = []
            session.drain {
                sent = Array($0)
                return $0.count
            }
            var came: [UInt8]
            if let server {
                server.receive(sent)
                if draw.byte() < 32, server.isOpen, server.error == nil { server.send([1] + draw.bytes()) }
                came = server.takeOutput()
                for _ in 0..<draw.below(4) where !came.isEmpty {
                    let position = Int(draw.byte()) << 8 | Int(draw.byte())
                    came[position % came.count] ^= draw.byte()
                }
                if draw.byte() < 8 { came += draw.bytes() }
            } else {
                came = draw.bytes()
            }
            hand(came, to: session)
            if draw.byte() < 4 { session.receiveEnd() }
            var room = [UInt8](repeating: 0, count: 1 + draw.below(200))
            let seen = room.withUnsafeMutableBytes { session.peek(into: $0) }
            let read = room.withUnsafeMutableBytes { session.read(into: $0) }
            precondition(seen <= read, "what was seen is not there to be read")
            if room.count > 190 { _ = room.withUnsafeBytes { session.send($0) } }
        }
        session.close()
        _ = session.summary
    }

    /// A certificate that a server shows, as it is told of before anybody vouches for it.
    static let certificates = FuzzTarget(name: "certificates") { bytes in
        ForeignCertificate.read(bytes) { handle in
            guard let certificate = Certificate(handle) else { return }
            _ = (certificate.subject, certificate.issuer, certificate.names, certificate.pin)
            _ = (certificate.notBefore, certificate.notAfter, certificate.isExpired)
        }
    }

    private static func hand(_ bytes: [UInt8], to session: TLSSession) {
        var rest = bytes[...]
        while session.wantsInput, !rest.isEmpty {
            rest.prefix(TLSSession.inputLimit).withUnsafeBytes { session.receive($0) }
            rest = rest.dropFirst(TLSSession.inputLimit)
        }
    }
}

/// A server with a certificate, and clients that look at it or do not. Made once: its keys take longer than a thousand
/// runs.
private struct TLSSurroundings {
    let server: TestServer
    let trusting: (request: TLSRequest, context: TLSContext)
    let verifying: (request: TLSRequest, context: TLSContext)

    /// The one that there is; of one thread alone, libFuzzer's.
    nonisolated(unsafe) static let shared = try? TLSSurroundings()

    private init() throws {
        let name = "sip.example.com"
        server = TestServer(TestCertificate(.init(name, alternatives: "DNS:\(name)")))
        func client(_ policy: TLSPolicy) throws -> (TLSRequest, TLSContext) {
            (TLSRequest(to: .name(name), offering: ["sip"], under: policy), try TLSContext(policy))
        }
        var policy = TLSPolicy()
        verifying = try client(policy)
        policy.verifiesCertificate = false
        trusting = try client(policy)
    }
}
