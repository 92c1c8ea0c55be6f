// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// Where no name server answers, the address that answered last is dialled.
@Suite struct KnownAddressTests {
    private static let reached = Endpoint(address: .office, port: 5060)

    /// A flow to a name's address, which ends after so long.
    private func ended(after time: Duration = .seconds(100), _ policy: ConnectionPolicy = .named) -> Harness {
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: Self.reached))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now), after: time)
        harness.tell(.remoteClosed(epoch: 1))
        harness.tell(.timerFired(.retry), after: .seconds(60))
        return harness
    }

    private static func opened(_ actions: [ConnectionAction]) -> [Endpoint] {
        actions.compactMap { if case .openSocket(let request) = $0 { request.remote } else { nil } }
    }

    @Test func `it is tried beside questions that have no answer in 1.8 seconds`() {
        var harness = ended()
        #expect(harness.status.state == .resolving)
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .milliseconds(1799))) == [])
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .milliseconds(1))) == [Self.reached])
        #expect(harness.status.state == .connecting)
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: Self.reached))
        #expect(harness.status.state == .ready)
    }

    @Test func `it is tried at once where nobody can be asked`() {
        var harness = ended()
        let query = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: query - 1, .temporary))
        #expect(Self.opened(harness.tell(.resolutionFailed(query: query, .temporary))) == [Self.reached])
    }

    @Test func `the name server's word goes before it`() {
        var harness = ended()
        let query = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: query - 1, .noSuchName))
        #expect(Self.opened(harness.tell(.resolutionFailed(query: query, .noSuchName))) == [])
        #expect(harness.status.state == .failed)

        harness = ended()
        #expect(Self.opened(harness.answer([.second])) == [Endpoint(address: .second, port: 5060)])
    }

    @Test func `an answer that comes late is tried beside it`() {
        var harness = ended()
        harness.tell(.timerFired(.dial), after: .milliseconds(1800))
        harness.answer([.second], after: .milliseconds(100))
        let late = harness.tell(.timerFired(.dial), after: .milliseconds(150))
        #expect(Self.opened(late) == [Endpoint(address: .second, port: 5060)])
        harness.tell(.dialSucceeded(epoch: 3, local: .local, remote: Endpoint(address: .second, port: 5060)))
        #expect(harness.status.epoch == 3)
    }

    @Test func `that it does not answer either is the name server's fault`() {
        var harness = ended()
        let query = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: query - 1, .temporary))
        harness.tell(.resolutionFailed(query: query, .temporary))
        harness.tell(.dialFailed(epoch: 2, .timedOut), after: .seconds(2))
        #expect(harness.status.reason == .resolutionFailed(.temporary))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `it is known of a flow that lasted for longer than a day, and died in silence`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: Self.reached))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now), after: .seconds(90_000))
        harness.tell(.resumed, after: .seconds(60))
        harness.tell(.timerFired(.proof), after: .seconds(60))
        #expect(harness.status.state == .resolving)
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .milliseconds(1800))) == [Self.reached])
    }

    @Test func `one family's word that there is no such name is enough`() {
        var harness = ended()
        harness.tell(.resolutionFailed(query: harness.machine.numbers.query - 1, .noSuchName))
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .seconds(2))) == [])
    }

    @Test func `what it fails of counts only where a name server confirms it`() {
        let stranger = FlowFailure.tls(.certificate(.selfSigned(subject: "a stranger")))
        var harness = ended()
        harness.tell(.timerFired(.dial), after: .milliseconds(1800))
        harness.tell(.dialFailed(epoch: 2, stranger))
        harness.answer([.second], after: .milliseconds(100))
        harness.tell(.dialFailed(epoch: 3, .refused), after: .milliseconds(100))
        #expect(harness.status.reason == .dialFailed(.refused, Endpoint(address: .second, port: 5060)))
        #expect(harness.status.state == .backingOff)

        harness = ended()
        harness.tell(.timerFired(.dial), after: .milliseconds(1800))
        harness.tell(.dialFailed(epoch: 2, stranger))
        harness.answer([.office], after: .milliseconds(100))
        #expect(harness.status.reason == .dialFailed(stranger, Self.reached))
        #expect(harness.status.state == .failed)

        harness = ended()
        harness.tell(.timerFired(.dial), after: .milliseconds(1800))
        harness.tell(.dialFailed(epoch: 2, .refused))
        let query = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: query - 1, .noSuchName))
        harness.tell(.resolutionFailed(query: query, .noSuchName))
        #expect(harness.status.reason == .resolutionFailed(.noSuchName))
    }

    @Test func `its handshake holds up nobody`() {
        var harness = ended()
        harness.tell(.timerFired(.dial), after: .milliseconds(1800))
        harness.tell(.handshakeBegan(epoch: 2, local: .local), after: .milliseconds(10))
        #expect(Self.opened(harness.answer([.second], after: .milliseconds(300))).count == 1)
    }

    @Test func `a private address is not told a password in another network`() {
        let home = IPAddress(v4: 0xC0A8_0109)
        for (remote, isDialled) in [("mqtt://broker.home:1883", false), ("mqtts://broker.home:1883", true)] {
            var harness = Harness(ConnectionPolicy(remote: .of(remote)))
            harness.tell(all: .opened, .pathChanged(.wifi))
            harness.answer([home])
            let end = Endpoint(address: home, port: 1883)
            harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: end))
            #expect(harness.status.state == .ready)
            harness.tell(.remoteClosed(epoch: 1), after: .seconds(100))
            harness.tell(.pathChanged(.modem), after: .milliseconds(1))
            #expect(harness.status.state == .resolving)
            let opened = Self.opened(harness.tell(.timerFired(.dial), after: .milliseconds(1800)))
            #expect(opened == (isDialled ? [end] : []), "\(remote)")
        }
    }

    @Test func `the hosts of a service are asked for in their time beside it`() {
        var harness = Harness(ConnectionPolicy(remote: .of("sip://example.com")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 2, .noAddress))
        harness.tell(.timerFired(.dial), after: .seconds(1))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: Self.reached))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(100))
        harness.tell(.timerFired(.retry), after: .seconds(100))
        // The rules are swallowed, and the record comes a second after the question.
        let asked = harness.machine.numbers.query
        let record = ServiceRecord(priority: 0, weight: 0, port: 5299, target: "host.example.com")
        harness.tell(.resolved(query: asked, .services([record])), after: .seconds(1))
        harness.tell(.timerFired(.dial), after: .milliseconds(800))
        let actions = harness.tell(.timerFired(.dial), after: .milliseconds(200))
        #expect(actions.contains(.resolve(query: asked + 1, .addresses("host.example.com", .v6))))
    }

    @Test func `a name server's word goes before it also when it comes late`() {
        var harness = Harness(ConnectionPolicy(remote: .of("mqtt://example.com")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, .noAddress))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: Endpoint(address: .office, port: 1883)))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(100))
        harness.tell(.timerFired(.retry), after: .seconds(100))
        // No record, two seconds after the question: the address that is known stands behind those asked for now.
        let asked = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: asked, .noAddress), after: .seconds(2))
        harness.tell(.resolutionFailed(query: asked + 1, .noSuchName), after: .milliseconds(10))
        let actions = harness.tell(.resolutionFailed(query: asked + 2, .noSuchName), after: .milliseconds(10))
        #expect(Self.opened(actions) == [])
        #expect(harness.status.state == .failed)
    }

    @Test func `a day later it is forgotten`() {
        var harness = ended()
        harness.tell(.pathChanged(.none))
        harness.tell(.pathChanged(.wifi), after: .seconds(86_400))
        #expect(harness.status.state == .resolving)
        let query = harness.machine.numbers.query
        harness.tell(.resolutionFailed(query: query - 1, .temporary))
        #expect(Self.opened(harness.tell(.resolutionFailed(query: query, .temporary))) == [])
    }

    @Test func `another remote has another address`() {
        var harness = ended()
        harness.tell(.policyChanged(ConnectionPolicy(remote: .of("tcp://other.example.com:5060"))))
        harness.tell(.pathChanged(.wifi))
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .seconds(2))) == [])
    }

    @Test func `a service that cannot be asked for is dialled where it was`() {
        var harness = Harness(ConnectionPolicy(remote: .of("xmpp://example.com")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, .noAddress))
        harness.answer([.office])
        let remote = Endpoint(address: .office, port: 5222)
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: remote))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(100))
        harness.tell(.timerFired(.retry), after: .seconds(60))
        #expect(Self.opened(harness.tell(.timerFired(.dial), after: .milliseconds(1800))) == [remote])
        // The record comes after all, and its hosts are asked for beside it.
        let query = harness.machine.numbers.query
        let record = ServiceRecord(priority: 0, weight: 0, port: 5299, target: "host.example.com")
        harness.tell(.resolved(query: query, .services([record])))
        let late = harness.answer([.second], after: .milliseconds(300))
        #expect(Self.opened(late) == [Endpoint(address: .second, port: 5299)])
    }
}
