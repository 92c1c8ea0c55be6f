// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct SecuredFlowTests {
    private func flow(to server: SecureServer, _ listener: Listener, _ policy: TLSPolicy? = nil) throws -> Flow {
        let policy = policy ?? server.policy
        let request = TLSRequest(to: .name(SecureServer.name), under: policy)
        return try Flow(
            .to(server.endpoint), owner: listener, securing: Securing(request, of: "office", by: .test))
    }

    @Test func `a certificate that is not trusted fails the dial and the server hears why`() async throws {
        let server = try SecureServer(.init())
        let listener = Listener()
        let flow = try flow(to: server, listener, TLSPolicy())
        guard case .securing = await listener.next() else {
            Issue.record("not told of the handshake")
            return
        }
        expect(await listener.next(), is: .connectFailed(.tls(.certificate(.unknownIssuer("Test Authority")))))
        flow.close(aborting: false)
        expect(await server.endings.next()?.error, is: "tlsv1 alert unknown ca")
    }

    @Test func `a refusal that is followed by a reset is told as the refusal`() async throws {
        let server = try SecureServer(.init(resets: true, asksForCertificate: true))
        let listener = Listener()
        let flow = try flow(to: server, listener)
        var outcome = await listener.next()
        if case .securing = outcome { outcome = await listener.next() }
        // With TLS 1.3 the server looks at the certificate when the client is done.
        if case .connected = outcome { outcome = await listener.next() }
        let refusal = FlowFailure.tls(.clientCertificateRequired)
        #expect(outcome == .failed(refusal) || outcome == .connectFailed(refusal))
        flow.close(aborting: false)
    }

    // MARK: - Connections

    private let surroundings = Surroundings(.loopback())

    private func connection(
        to server: SecureServer, _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) throws -> ConnectionDriver {
        try surroundings.connection(to: "tls://\(SecureServer.name):\(server.endpoint.port)") {
            $0.tls = server.policy
            $0.backoff = BackoffPolicy(
                base: .milliseconds(100), multiplier: 1, ceiling: .milliseconds(100), jitter: .half)
            adjust(&$0)
        }
    }

    @Test func `a connection goes through securing and says how`() async throws {
        let server = try SecureServer(.init())
        let connection = try connection(to: server)
        _ = await surroundings.entered(.securing)
        let ready = await surroundings.entered(.ready)
        #expect(ready?.previousState == .securing)
        #expect(ready?.status.security?.version == .v13)
        #expect(ready?.status.security?.assurance == .verified)
        #expect(connection.unreadBytes == 0)
        connection.close()
        expect(await server.endings.next()?.sawClose, is: true)
    }

    /// The server's is valid for a day.
    @Test func `a certificate that ends within a week is told once`() async throws {
        let server = try SecureServer(.init())
        let connection = try connection(to: server)
        _ = await surroundings.entered(.ready)
        let told = await surroundings.events.next { $0.kind == .certificateEnds }
        #expect(told?.reason.description == "the server's certificate ends soon")
        expect(told?.status.security?.certificateEnd?.isOwn, is: false)
        connection.redial()
        _ = await surroundings.events.next {
            $0.kind == .stateChanged && $0.status.epoch == 2 && $0.status.state == .ready
        }
        connection.close()
        let last = await surroundings.events.next { $0.kind == .certificateEnds || $0.status.state == .closed }
        #expect(last?.status.state == .closed)
    }

    @Test func `the next flow takes the session up`() async throws {
        // The first client is cut off, as by a server that crashed, when it has its tickets.
        let server = try SecureServer(.init(hangsUp: true), .init())
        let connection = try connection(to: server)
        expect(await surroundings.entered(.ready)?.status.security?.isResumed, is: false)
        expect(await surroundings.entered(.backingOff)?.reason, is: .flowFailed(.tls(.truncated)))
        expect(await surroundings.entered(.ready)?.status.security?.isResumed, is: true)
        connection.close()
        _ = await server.endings.next()
        expect(await server.endings.next()?.isResumed, is: true)
    }

    @Test func `a handshake that does not end is given up at the deadline`() async throws {
        let server = try SecureServer(.init(isSilent: true))
        // Time enough for the connection to stand, however busy the queue.
        let connection = try connection(to: server) { $0.connectTimeout = .seconds(5) }
        expect(await surroundings.entered(.backingOff)?.reason, is: .dialFailed(.tls(.timedOut), server.endpoint))
        connection.close()
    }

    @Test func `a file that is of no use fails before anything is sent`() async throws {
        let server = try SecureServer(.init())
        let connection = try connection(to: server) { $0.tls.identity = .init(certificate: "/nonexistent/client.pem") }
        let event = await surroundings.entered(.failed)
        #expect(
            event?.reason.description
                == "\(server.endpoint): /nonexistent/client.pem: cannot be read: No such file or directory")
        #expect(event?.reason.advice != nil)
        connection.close()
    }

    @Test func `a server that wants a certificate late ends in failure`() async throws {
        let server = try SecureServer(.init(asksForCertificate: true))
        let connection = try connection(to: server)
        expect(await surroundings.entered(.failed)?.reason, is: .flowFailed(.tls(.clientCertificateRequired)))
        connection.close()
    }
}
