// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct ServiceDialTests {
    private static let records = [
        ServiceRecord(priority: 20, weight: 0, port: 5070, target: "b.example.com"),
        ServiceRecord(priority: 10, weight: 0, port: 5060, target: "a.example.com"),
    ]

    /// A dial whose path has just come.
    private func dialling(_ remote: String) -> Harness {
        var harness = Harness(remote)
        harness.tell(all: .opened, .pathChanged(.wifi))
        return harness
    }

    /// What a dial asks first.
    private func firstQuestions(_ remote: String) -> [ConnectionAction] {
        var harness = Harness(remote)
        harness.tell(.opened)
        return harness.tell(.pathChanged(.wifi)).filter(\.isQuestion)
    }

    @Test func `a name without a port is looked up as a service`() {
        #expect(firstQuestions("mqtt://example.com") == [.resolve(query: 1, .services("_mqtt._tcp.example.com"))])
        #expect(
            firstQuestions("sips://example.com") == [
                .resolve(query: 1, .pointers("example.com")), .resolve(query: 2, .services("_sips._tcp.example.com")),
            ])
        #expect(
            firstQuestions("mqtt://example.com:1883") == [
                .resolve(query: 1, .addresses("example.com", .v6)), .resolve(query: 2, .addresses("example.com", .v4)),
            ])
    }

    @Test func `the hosts of the service are asked for in their order`() {
        var harness = dialling("mqtt://example.com")
        let actions = harness.tell(.resolved(query: 1, .services(Self.records)))
        #expect(
            actions.filter(\.isQuestion) == [
                .resolve(query: 2, .addresses("a.example.com", .v6)),
                .resolve(query: 3, .addresses("a.example.com", .v4)),
                .resolve(query: 4, .addresses("b.example.com", .v6)),
                .resolve(query: 5, .addresses("b.example.com", .v4)),
            ])
    }

    @Test func `a dead first host costs no more than a moment`() {
        var harness = dialling("mqtt://example.com")
        harness.tell(.resolved(query: 1, .services(Self.records)))
        for (query, address) in [(UInt64(3), IPAddress.office), (5, .second)] {
            harness.tell(.resolutionFailed(query: query - 1, .noAddress))
            harness.tell(.resolved(query: query, .addresses([.init(overWifi: address)])))
        }
        #expect(harness.status.remoteAddress == Endpoint(address: .office, port: 5060))
        harness.tell(.timerFired(.dial), after: .milliseconds(250))
        #expect(harness.status.remoteAddress == Endpoint(address: .second, port: 5070))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: harness.status.remoteAddress!))
        #expect(harness.status.state == .ready)
    }

    @Test(arguments: [ResolutionFailure.noSuchName, .noAddress, .temporary])
    func `without a record the host itself is dialled`(failure: ResolutionFailure) {
        var harness = dialling("mqtt://example.com")
        let actions = harness.tell(.resolutionFailed(query: 1, failure))
        #expect(actions.first == .resolve(query: 2, .addresses("example.com", .v6)))
        harness.tell(.resolutionFailed(query: 2, .noAddress))
        harness.tell(.resolved(query: 3, .addresses([.init(overWifi: .office)])))
        #expect(harness.status.remoteAddress == Endpoint(address: .office, port: 1883))
    }

    @Test func `a service that is not offered is a permanent failure`() {
        var harness = dialling("xmpp://example.com")
        let root = ServiceRecord(priority: 0, weight: 0, port: 0, target: "")
        harness.tell(.resolved(query: 1, .services([root])))
        #expect(harness.status.state == .failed)
        #expect(harness.status.reason == .resolutionFailed(.notOffered))
        #expect(harness.status.reason.advice != nil)
    }

    @Test func `a domain's rules lead elsewhere`() {
        var harness = dialling("sip://example.com")
        let rule = NamingAuthorityPointer(
            order: 1, preference: 1, flags: "s", service: "SIP+D2T", replacement: "_sip._tcp.carrier.example")
        let actions = harness.tell(.resolved(query: 1, .pointers([rule])))
        #expect(
            actions.prefix(2) == [
                .cancelResolution(query: 2), .resolve(query: 3, .services("_sip._tcp.carrier.example")),
            ])
        let hosts = harness.tell(.resolved(query: 3, .services(Self.records)))
        #expect(hosts.contains(.resolve(query: 4, .addresses("a.example.com", .v6))))
    }

    @Test func `a refusal waits for the domain's rules`() {
        let rule = NamingAuthorityPointer(
            order: 1, preference: 1, flags: "s", service: "SIP+D2T", replacement: "_sip._tcp.carrier.example")
        var harness = dialling("sip://example.com")
        let root = ServiceRecord(priority: 0, weight: 0, port: 0, target: "")
        harness.tell(.resolved(query: 2, .services([root])))
        #expect(harness.status.state == .resolving)
        let actions = harness.tell(.resolved(query: 1, .pointers([rule])), after: .milliseconds(150))
        #expect(actions.first == .resolve(query: 3, .services("_sip._tcp.carrier.example")))
    }

    @Test func `rules that do not come are not waited for long`() {
        var harness = dialling("sip://example.com")
        let known = harness.tell(.resolved(query: 2, .services(Self.records)))
        #expect(known == [.scheduleTimer(.dial, deadline: harness.now + .seconds(1))])
        let actions = harness.tell(.timerFired(.dial), after: .seconds(1))
        #expect(
            actions.prefix(2) == [.cancelResolution(query: 1), .resolve(query: 3, .addresses("a.example.com", .v6))])
    }

    @Test func `no more than four hosts are asked for`() {
        var harness = dialling("mqtt://example.com")
        let many = (0..<1000).map {
            ServiceRecord(priority: UInt16($0), weight: 0, port: 1883, target: "h\($0).example.com")
        }
        let actions = harness.tell(.resolved(query: 1, .services(many)))
        #expect(actions.filter(\.isQuestion).count == 8)
    }
}

extension ConnectionAction {
    fileprivate var isQuestion: Bool { if case .resolve = self { true } else { false } }
}
