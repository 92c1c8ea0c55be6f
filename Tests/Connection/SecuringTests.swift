// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct SecuringTests {
    private static let policy = ConnectionPolicy(remote: .of("tls://192.0.2.7:5060"))
    private static let summary = TLSSummary(
        version: .v13, cipher: "TLS_AES_256_GCM_SHA384", assurance: .verified, isResumed: false)

    /// A machine whose socket is connected and being secured, 20 ms after the dial.
    private func securing(_ policy: ConnectionPolicy = Self.policy) -> Harness {
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(20))
        return harness
    }

    @Test func `the socket is asked to be secured`() throws {
        var policy = ConnectionPolicy(remote: .of("sips://sip.example.com:5061"))
        policy.tls.serverName = "edge.example.com"
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(.wifi))
        guard case .openSocket(let request) = harness.answer([.office]).first else {
            Issue.record("no socket")
            return
        }
        let tls = try #require(request.tls)
        #expect(tls.host == .name("edge.example.com"))
        #expect(tls.applicationProtocols == ["sip/2"])
        #expect(
            ConnectionPolicy(remote: .of("sips://sip.example.com:5061")).tlsRequest?.host == .name("sip.example.com"))
        #expect(ConnectionPolicy.office.tlsRequest == nil)
        policy.tls.applicationProtocols = []
        #expect(policy.tlsRequest?.applicationProtocols == [])
    }

    @Test func `the handshake is a state with a deadline of its own`() {
        var harness = Harness(Self.policy)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(20))
        #expect(
            actions == [
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .connecting, after: .milliseconds(20)),
            ])
        #expect(harness.status.state == .securing)
        #expect(harness.status.localAddress == .local)
        #expect(harness.status.remoteAddress == .office)
        // Told twice, it is no news.
        #expect(harness.tell(.handshakeBegan(epoch: 1, local: .local)) == [])
    }

    @Test func `the flow is ready once it is secured`() {
        var harness = securing()
        let actions = harness.tell(
            .dialSucceeded(epoch: 1, local: .local, remote: .office, security: Self.summary), after: .milliseconds(40))
        #expect(
            actions == [
                .cancelTimer(.dial), .watchInput(epoch: 1, true),
                harness.event(from: .securing, after: .milliseconds(40)),
            ])
        #expect(harness.status.security == Self.summary)
    }

    @Test func `a handshake that does not end is given up`() {
        var harness = securing()
        #expect(harness.tell(.timerFired(.dial), after: .seconds(9)).count == 1)
        let actions = harness.tell(.timerFired(.dial), after: .seconds(1))
        #expect(actions.first == .closeSocket(epoch: 1, .timedOut, .dropped))
        #expect(harness.status.reason == .dialFailed(.tls(.timedOut), .office))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `a bad certificate is permanent and told with advice`() {
        var harness = securing()
        let problem = TLSFailure.certificate(.expired(subject: "sip.example.com", since: "2026-01-01T00:00:00Z"))
        harness.tell(.dialFailed(epoch: 1, .tls(problem)))
        #expect(harness.status.state == .failed)
        #expect(
            harness.status.reason.description
                == "192.0.2.7:5060: the certificate of sip.example.com expired on 2026-01-01T00:00:00Z")
        #expect(harness.status.reason.advice != nil)
        // A change of the network is a new chance: another resolver, another proxy, a clock that was set.
        harness.tell(.pathChanged(.modem))
        #expect(harness.status.state == .connecting)
    }

    @Test func `what may pass is retried soon`() {
        var harness = securing()
        harness.tell(.dialFailed(epoch: 1, .tls(.endedInHandshake)))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `a certificate that is refused after the handshake is permanent too`() {
        var harness = securing()
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office, security: Self.summary))
        harness.tell(.flowFailed(epoch: 1, .tls(.clientCertificateRequired)), after: .milliseconds(5))
        #expect(harness.status.state == .failed)
        #expect(harness.status.attempt == 2)
    }

    @Test func `the next address is connected to after a handshake that failed`() {
        var harness = Harness(ConnectionPolicy(remote: .of("tls://sip.example.com:5060")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .second])
        harness.tell(.handshakeBegan(epoch: 1, local: .local))
        let actions = harness.tell(.dialFailed(epoch: 1, .tls(.notTLS)), after: .seconds(1))
        #expect(actions.last == harness.event(from: .securing, after: .seconds(1)))
        #expect(harness.status.state == .connecting)
        #expect(harness.status.localAddress == nil)
        #expect(harness.status.reason == .dialFailed(.tls(.notTLS), .office))
        #expect(harness.status.remoteAddress == .second)
    }

    @Test func `the loss of the local address ends the handshake`() {
        var harness = securing()
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        #expect(actions.dropFirst().first == .closeSocket(epoch: 1, .localAddressRemoved, .dropped))
        #expect(harness.status.state == .connecting)
    }

    @Test func `another trust wants another flow`() {
        var harness = Harness(Self.policy)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialSucceeded(epoch: 1, local: .local, remote: .office))
        var policy = Self.policy
        policy.tls.minimumVersion = .v13
        #expect(harness.tell(.policyChanged(policy)).first == .closeSocket(epoch: 1, .superseded, .dropped))
    }
}
