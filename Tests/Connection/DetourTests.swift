// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// A Wi-Fi behind whose gateway nothing gets through, beside a modem that works.
@Suite struct DetourTests {
    private static let modem = Detour(.modem)

    private static func request(_ epoch: UInt64) -> FlowRequest {
        var request = FlowRequest.overModem(epoch: epoch)
        request.isBoundToInterface = true
        return request
    }

    /// A connection that dials over Wi-Fi.
    private static func dialling(_ policy: ConnectionPolicy = .office, over path: Path = .wifi) -> Harness {
        var harness = Harness(policy, triesOtherUplinks: true)
        harness.tell(all: .opened, .pathChanged(path))
        return harness
    }

    /// A connection whose flow, epoch 2, goes by the modem.
    private static func detoured(_ policy: ConnectionPolicy = .office) -> Harness {
        var harness = dialling(policy)
        harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        harness.tell(.detourFound(.office, modem))
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office), after: .milliseconds(40))
        return harness
    }

    /// When the first uplink is tried again.
    private static func trial(_ harness: borrowing Harness) -> Duration? {
        harness.machine.flow?.move?.deadline
    }

    private static func looks(_ actions: [ConnectionAction]) -> Bool {
        actions.contains { if case .findDetour = $0 { true } else { false } }
    }

    // MARK: - When another uplink is tried

    @Test func `after a while of silence the next uplink is tried beside the first`() {
        var harness = Self.dialling()
        let due = harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        #expect(due.contains(.findDetour(.office, around: 3)))
        #expect(harness.tell(.detourFound(.office, Self.modem)).contains(.openSocket(Self.request(2))))
        #expect(harness.status.state == .connecting)
        let actions = harness.tell(
            .dialSucceeded(epoch: 2, local: .overModem, remote: .office), after: .milliseconds(40))
        #expect(actions.contains(.closeSocket(epoch: 1, .outrun, .dropped)))
        var way = ConnectionPolicy.office.target
        (way.interface, way.source) = ("wwan0", .modemSource)
        #expect(actions.contains(.observeFlowPath(epoch: 2, way)))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 2))
        #expect((harness.status.interface, harness.status.avoidedInterface) == ("wwan0", "wlan0"))
        #expect(harness.status.reason == .detoured(around: "wlan0"))
    }

    @Test func `the first one wins where it answers all the same`() {
        var harness = Self.dialling()
        harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        harness.tell(.detourFound(.office, Self.modem))
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(actions.contains(.closeSocket(epoch: 2, .outrun, .dropped)))
        #expect(harness.status.avoidedInterface == nil)
        #expect(harness.status.reason == .connected)
    }

    @Test func `where the last dial was silent it is tried at once, after the first's quarter of a second`() {
        var harness = Self.dialling()
        harness.tell(.dialFailed(epoch: 1, .timedOut), after: .seconds(3))
        let again = harness.tell(.timerFired(.retry), after: .seconds(60))
        #expect(again.contains(.findDetour(.office, around: 3)))
        #expect(!harness.tell(.detourFound(.office, Self.modem)).contains(.openSocket(Self.request(3))))
        #expect(harness.tell(.timerFired(.dial), after: .milliseconds(250)).contains(.openSocket(Self.request(3))))
    }

    @Test(arguments: [FlowFailure.hostUnreachable, .networkUnreachable])
    func `a router that says that nothing is behind it is as good as silence`(failure: FlowFailure) {
        var harness = Self.dialling()
        harness.tell(.dialFailed(epoch: 1, failure))
        let again = harness.tell(.timerFired(.retry), after: .seconds(2))
        #expect(again.contains(.findDetour(.office, around: 3)))
        harness.tell(.detourFound(.office, Self.modem))
        // The first fails before its quarter of a second is over.
        #expect(harness.tell(.dialFailed(epoch: 2, failure)).contains(.openSocket(Self.request(3))))
    }

    @Test func `a refusal is no silence`() {
        var harness = Self.dialling()
        harness.tell(.dialFailed(epoch: 1, .refused))
        #expect(!Self.looks(harness.tell(.timerFired(.retry), after: .seconds(60))))
    }

    @Test func `no other uplink is tried outside of a tunnel, for a mark, or against the policy`() {
        var tunnel = Path.wifi
        tunnel.interface?.kind = .tunnel
        var harness = Self.dialling(over: tunnel)
        #expect(!Self.looks(harness.tell(.timerFired(.dial), after: .seconds(9))))

        var marked = Self.dialling(ConnectionPolicy(remote: .of("tcp://192.0.2.7:5060"), mark: 7))
        #expect(!Self.looks(marked.tell(.timerFired(.dial), after: .seconds(9))))

        var unwilling = Harness(.office, triesOtherUplinks: false)
        unwilling.tell(all: .opened, .pathChanged(.wifi))
        #expect(!Self.looks(unwilling.tell(.timerFired(.dial), after: .seconds(9))))
    }

    @Test func `a handshake that stays silent has the next uplink tried beside it`() {
        var harness = Self.dialling(ConnectionPolicy(remote: .of("tls://192.0.2.7:5060")))
        harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(20))
        #expect(Self.looks(harness.tell(.timerFired(.dial), after: .milliseconds(3500))))
        let actions = harness.tell(.detourFound(.office, Self.modem))
        #expect(
            actions.contains { if case .openSocket(let request) = $0 { request.isBoundToInterface } else { false } })
    }

    @Test func `a handshake has half of its time, where that is little`() {
        var policy = ConnectionPolicy(remote: .of("tls://192.0.2.7:5060"))
        policy.connectTimeout = .seconds(3)
        var harness = Self.dialling(policy)
        harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(20))
        #expect(Self.looks(harness.tell(.timerFired(.dial), after: .milliseconds(1500))))
    }

    @Test func `what was found for a connect is not tried beside its handshake`() {
        var harness = Self.dialling(ConnectionPolicy(remote: .of("tls://192.0.2.7:5060")))
        harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(20))
        #expect(harness.tell(.detourFound(.office, Self.modem)) == [])
    }

    @Test func `what answers on the next uplink in the server's name is not what the dial failed of`() {
        var harness = Self.dialling()
        harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        harness.tell(.detourFound(.office, Self.modem))
        harness.tell(.dialFailed(epoch: 2, .tls(.notTLS)))
        harness.tell(.timerFired(.dial), after: .milliseconds(6500))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.reason == .dialFailed(.timedOut, .office))
    }

    @Test func `a trial that becomes the dial for the next flow tries the other uplink`() {
        var harness = Self.detoured()
        harness.tell(.timerFired(.retry), after: .seconds(45))
        let ended = harness.tell(.remoteClosed(epoch: 2))
        #expect(harness.status.state == .connecting)
        #expect(ended.contains(.findDetour(.office, around: 3)))
    }

    @Test func `the pause before a trial counts that way's silences alone`() throws {
        var harness = Self.detoured()
        for epoch in UInt64(3)...6 {
            let due = Self.trial(harness)
            harness.tell(.timerFired(.retry), after: try #require(due) - harness.now)
            harness.tell(.dialFailed(epoch: epoch, .timedOut), after: .seconds(9))
        }
        harness.tell(.pathChanged(.gatewayMoved), after: .seconds(3))
        harness.tell(.dialFailed(epoch: 7, .timedOut), after: .seconds(9))
        let due = Self.trial(harness)
        #expect(try #require(due) - harness.now == .seconds(90))
    }

    @Test func `a private address is dialled elsewhere where the server shows who it is`() throws {
        var policy = ConnectionPolicy(remote: .of("tls://192.168.1.5:5060"))
        let address = try #require(IPAddress("192.168.1.5"))
        #expect(policy.mayBeDialledElsewhere(address))
        policy.tls.verifiesCertificate = false
        #expect(!policy.mayBeDialledElsewhere(address))
    }

    @Test func `where there is none the dial goes on as it was`() {
        var harness = Self.dialling()
        harness.tell(.timerFired(.dial), after: .milliseconds(3500))
        #expect(harness.tell(.detourFound(.office, nil)) == [])
        harness.tell(.timerFired(.dial), after: .milliseconds(6500))
        #expect(harness.status.reason == .dialFailed(.timedOut, .office))
    }

    // MARK: - The way back

    @Test func `the first uplink is tried again after a while, and taken when it works`() throws {
        var harness = Self.detoured()
        // A half of the range of thirty to sixty seconds.
        let due = Self.trial(harness)
        let trial = try #require(due)
        #expect(trial == harness.now + .seconds(45))
        let actions = harness.tell(.timerFired(.retry), after: trial - harness.now)
        #expect(actions.contains(.openSocket(.office(epoch: 3))))
        #expect(!Self.looks(harness.tell(.timerFired(.dial), after: .seconds(9))), "it is a trial of the first")
        harness.tell(.dialSucceeded(epoch: 3, local: .local, remote: .office))
        #expect((harness.status.epoch, harness.status.avoidedInterface) == (3, nil))
        #expect(harness.status.reason == .replaced)
    }

    @Test func `each time that nothing gets through there the pause is twice as long`() throws {
        var harness = Self.detoured()
        var pauses: [Duration] = []
        for epoch in UInt64(3)...9 {
            let due = Self.trial(harness)
            let trial = try #require(due)
            pauses.append(trial - harness.now)
            harness.tell(.timerFired(.retry), after: trial - harness.now)
            harness.tell(.dialFailed(epoch: epoch, .timedOut), after: .seconds(9))
            #expect((harness.status.state, harness.status.epoch) == (.ready, 2))
        }
        #expect(pauses == [45, 90, 180, 360, 720, 1350, 1350].map { .seconds($0) })
    }

    @Test func `a way that falls silent again is tried later the next time`() throws {
        var harness = Self.detoured()
        harness.tell(.timerFired(.retry), after: .seconds(45))
        harness.tell(.dialSucceeded(epoch: 3, local: .local, remote: .office))
        harness.tell(.flowFailed(epoch: 3, .timedOut), after: .seconds(300))
        let dial = harness.tell(.timerFired(.retry), after: .seconds(60))
        #expect(dial.contains(.findDetour(.office, around: 3)))
        harness.tell(.detourFound(.office, Self.modem))
        harness.tell(.timerFired(.dial), after: .milliseconds(250))
        harness.tell(.dialSucceeded(epoch: 5, local: .overModem, remote: .office))
        let due = Self.trial(harness)
        let trial = try #require(due)
        #expect(trial - harness.now == .seconds(90))
    }

    @Test func `one that is only slow is tried no later for that`() throws {
        var harness = Self.detoured()
        harness.tell(.remoteClosed(epoch: 2))
        let dial = harness.tell(.timerFired(.retry), after: .seconds(60))
        #expect(Self.looks(dial))
        harness.tell(.detourFound(.office, Self.modem))
        harness.tell(.timerFired(.dial), after: .milliseconds(250))
        harness.tell(.dialSucceeded(epoch: 4, local: .overModem, remote: .office))
        let due = Self.trial(harness)
        let trial = try #require(due)
        #expect(trial - harness.now == .seconds(45))
    }

    @Test func `its socket stays on its interface when the kernel comes to choose another`() {
        var harness = Self.detoured()
        harness.tell(all: .pathChanged(.none), .pathChanged(.modem))
        #expect(harness.status.avoidedInterface == nil)
        let back = harness.tell(.pathChanged(.wifi))
        #expect(back.contains(.openSocket(.office(epoch: 3))))
        #expect(!Self.looks(back), "its packets leave by the modem all the same")
        #expect((harness.status.epoch, harness.status.avoidedInterface) == (2, "wlan0"))
    }

    @Test func `what came for the client goes first`() {
        var harness = Self.detoured()
        #expect(harness.tell(.arrived(epoch: 2)).contains(.cancelTimer(.retry)))
        #expect(Self.trial(harness) == nil)
        harness.tell(.taken(epoch: 2, by: .unknown))
        #expect(Self.trial(harness) != nil)
    }

    @Test func `another Wi-Fi is tried at once`() {
        var harness = Self.detoured()
        let actions = harness.tell(.pathChanged(.gatewayMoved), after: .seconds(3))
        #expect(actions.contains(.openSocket(.office(epoch: 3))))
    }

    @Test func `where the kernel goes by the modem itself, the flow is one like any other`() {
        var harness = Self.detoured()
        let actions = harness.tell(.pathChanged(.modem), after: .seconds(3))
        #expect(actions.contains(.cancelTimer(.retry)))
        #expect(actions.contains(.stopObservingFlowPath(epoch: 2)))
        #expect((harness.status.epoch, harness.status.avoidedInterface) == (2, nil))
        #expect(harness.status.state == .ready)
        #expect(Self.trial(harness) == nil)
    }

    @Test func `and what was to show that the first way works is given up`() {
        var harness = Self.detoured()
        harness.tell(.flowPathChanged(epoch: 2, .modem))
        harness.tell(.timerFired(.retry), after: .seconds(45))
        let actions = harness.tell(.pathChanged(.modem), after: .seconds(1))
        #expect(actions.contains(.closeSocket(epoch: 3, .pathMoved, .dropped)))
        #expect((harness.status.epoch, harness.status.avoidedInterface) == (2, nil))
    }

    @Test func `one whose user wants no moves stays`() {
        var policy = ConnectionPolicy.office
        policy.movesToBetterPath = false
        let harness = Self.detoured(policy)
        #expect(harness.status.avoidedInterface == "wlan0")
        #expect(Self.trial(harness) == nil)
    }

    @Test func `the next process knows of it`() throws {
        let before = Self.detoured()
        let left = before.machine.adoption
        let adoption = try #require(left)
        var after = Harness(.office, triesOtherUplinks: true)
        after.now = before.now
        after.tell(.adopted(adoption))
        after.tell(.pathChanged(.wifi))
        #expect((after.status.state, after.status.epoch) == (.ready, 2))
        #expect(after.status.avoidedInterface == "wlan0")
        #expect(Self.trial(after) != nil, "the first is tried again")
    }
}
