// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// A flow whose local address or whose way is gone, for as long as it is kept.
@Suite struct GraceTests {
    private static func closes(_ actions: [ConnectionAction]) -> [ConnectionAction] {
        actions.filter { if case .closeSocket = $0 { true } else { false } }
    }

    // MARK: - What it lost comes back

    @Test func `a cable that is put back ends no flow`() {
        var harness = Harness.ready()
        let actions = harness.tell(.pathChanged(.none), after: .seconds(7))
        #expect(
            actions == [
                .scheduleTimer(.proof, deadline: harness.now + .seconds(5)),
                harness.event(from: .ready, after: .seconds(7)),
            ])
        #expect(harness.status.state == .verifying)
        #expect(harness.status.reason == .noPath(.noRoute, destination: .office))
        let back = harness.tell(.pathChanged(.wifi), after: .seconds(4))
        #expect(
            back == [
                .probe(epoch: 1), .scheduleTimer(.proof, deadline: harness.now + .seconds(3)),
                harness.event(.pathChanged, from: .verifying, after: .seconds(4), because: .pathAvailable),
            ])
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect(harness.status.state == .ready)
        #expect(harness.status.epoch == 1)
    }

    @Test func `an address that is put back ends no flow, however late the path is told`() {
        var harness = Harness.ready()
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        #expect(
            actions == [
                .scheduleTimer(.proof, deadline: harness.now + .seconds(5)),
                .observeFlowPath(epoch: 1, ConnectionPolicy.office.target), harness.event(from: .ready),
            ], "nothing is dialled over a path that may be of before")
        // It was back before the kernel was asked.
        #expect(harness.tell(.flowPathChanged(epoch: 1, .wifi)).contains(.probe(epoch: 1)))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 1))
    }

    @Test func `one that does not prove itself then is dialled anew`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.none), after: .seconds(7))
        harness.tell(.pathChanged(.wifi), after: .seconds(4))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(3))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .unanswered, .dropped)])
        #expect(harness.status.state == .connecting)
    }

    @Test func `a network that flaps keeps a dead flow no longer than one that is gone`() {
        var harness = Harness.ready()
        let start = harness.now
        for _ in 1...3 {
            harness.tell(.pathChanged(.none))
            #expect((harness.status.state, harness.status.epoch) == (.verifying, 1))
            harness.tell(.pathChanged(.wifi), after: .seconds(1))
            harness.now += .seconds(1)
        }
        harness.tell(.pathChanged(.none))
        #expect(harness.now - start == .seconds(6))
        #expect(harness.status.state == .waiting)
    }

    @Test func `a grace that is shortened meanwhile is that of later losses`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.none))
        var policy = ConnectionPolicy.office
        policy.grace = .seconds(1)
        harness.tell(.policyChanged(policy), after: .seconds(2))
        harness.tell(.localAddressRemoved(.wifiSource), after: .seconds(1))
        #expect((harness.status.state, harness.status.epoch) == (.verifying, 1))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(2))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .localAddressRemoved, .dropped)])
    }

    @Test func `what was asked before the loss owes no answer after it`() {
        var policy = ConnectionPolicy.office
        policy.heartbeat = Heartbeat(.mqtt)
        var harness = Harness.ready(policy)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .probeSent(epoch: 1))
        harness.tell(.pathChanged(.none), after: .seconds(8))
        #expect(harness.tell(.resumed) == [])
        harness.tell(.pathChanged(.wifi), after: .seconds(3))
        harness.tell(.answered(epoch: 1, count: 1))
        #expect(harness.status.state == .verifying, "it may have been under way since before")
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect(harness.status.state == .ready)
    }

    @Test func `what was dialled beside it is given up`() {
        var harness = Harness.ready()
        harness.tell(all: .pathChanged(.none), .pathChanged(.modem))
        let actions = harness.tell(.pathChanged(.wifi), after: .seconds(1))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 2, .pathMoved, .dropped)])
        #expect(actions.contains(.cancelTimer(.dial)))
    }

    @Test func `but not a dial over a path that was the better one, and may still be`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.none))
        harness.tell(.pathChanged(.wifi), after: .seconds(1))
        harness.tell(all: .pathChanged(.modem), .pathChanged(.unknown))
        let actions = harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect(Self.closes(actions) == [])
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 2))
    }

    // MARK: - It does not

    @Test func `a proof that it owed before is not awaited any more when its time is over`() {
        var harness = Harness.ready()
        harness.tell(all: .pathChanged(.gatewayMoved), .pathChanged(.none))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .pathLost, .dropped)])
        #expect(!actions.contains(.cancelTimer(.proof)), "that has rung")
    }

    @Test func `a dial whose path moves is begun again`() {
        var harness = Harness.ready()
        harness.tell(all: .pathChanged(.none), .pathChanged(.modem))
        var moved = Path.modem
        moved.gateway = IPAddress("10.64.0.254")
        let actions = harness.tell(.pathChanged(moved))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 2, .pathMoved, .dropped)])
        #expect(actions.contains(.openSocket(.overModem(epoch: 3))))
    }

    @Test func `a dial that waits for its turn does so no longer than the turn, also when its time is over`() {
        var harness = Harness.ready()
        let turn = harness.now + .seconds(60)
        harness.dialsFrom = turn
        harness.tell(.pathChanged(.none))
        #expect(harness.tell(.pathChanged(.modem)).contains(.scheduleTimer(.retry, deadline: turn)))
        harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(harness.status.state == .backingOff)
        #expect((harness.status.reason, harness.machine.awaitedTurn) == (.awaitsTurn, turn))
    }

    @Test func `without its way it is closed in the end`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.none))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .pathLost, .dropped), harness.event(from: .verifying, after: .seconds(5)),
            ])
        #expect(harness.status.state == .waiting)
        #expect(harness.status.reason == .noPath(.noRoute, destination: .office))
    }

    @Test func `where there is another way it is dialled at once, and the old flow goes when the new one stands`() {
        var harness = Harness.ready()
        harness.tell(.taken(epoch: 1, by: .unknown))
        harness.tell(all: .pathChanged(.none), .localAddressRemoved(.wifiSource))
        let dial = harness.tell(.pathChanged(.modem), after: .seconds(1))
        #expect(dial.first == .openSocket(.overModem(epoch: 2)))
        #expect((harness.status.state, harness.status.epoch) == (.verifying, 1))
        let actions = harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .localAddressRemoved, .delivered)])
        #expect(actions.contains(.cancelTimer(.proof)))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 2))
        #expect(harness.status.reason == .connected)
    }

    @Test func `also where it would not move to a better one, and with bytes on it`() {
        var policy = ConnectionPolicy.office
        policy.movesToBetterPath = false
        var harness = Harness.ready(policy)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .arrived(epoch: 1), .pathChanged(.modem))
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        #expect(actions.contains(.openSocket(.overModem(epoch: 2))))
        let connected = harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(Self.closes(connected) == [.closeSocket(epoch: 1, .localAddressRemoved, .kept)])
    }

    @Test(arguments: [false, true])
    func `what was dialled for it alone is given up when it has proved itself`(hasArrivals: Bool) {
        var policy = ConnectionPolicy.office
        // Either is a reason to stay.
        policy.movesToBetterPath = hasArrivals
        var harness = Harness.ready(policy)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .pathChanged(.none))
        if hasArrivals { harness.tell(.arrived(epoch: 1)) }
        // Its way is back for a moment.
        harness.tell(.pathChanged(.wifi), after: .seconds(1))
        #expect(harness.tell(.pathChanged(.modem)).contains(.openSocket(.overModem(epoch: 2))))
        let actions = harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 2, .superseded, .dropped)])
        #expect((harness.status.state, harness.status.epoch) == (.ready, 1))
    }

    @Test func `the dial goes on when its time is over, and so does a wait for the next one`() {
        var dialling = Harness.ready()
        dialling.tell(all: .pathChanged(.none), .pathChanged(.modem))
        dialling.tell(.timerFired(.proof), after: .seconds(5))
        #expect((dialling.status.state, dialling.status.epoch) == (.connecting, 2))
        var waiting = Harness.ready()
        waiting.tell(all: .pathChanged(.none), .pathChanged(.modem), .dialFailed(epoch: 2, .refused))
        waiting.tell(.timerFired(.retry), after: .seconds(2))
        waiting.tell(.dialFailed(epoch: 3, .refused))
        waiting.tell(.timerFired(.proof), after: .seconds(3))
        #expect(waiting.status.state == .backingOff)
        #expect(waiting.status.reason == .noPath(.noRoute, destination: .office))
    }

    @Test func `a dial that has no way any more ends`() {
        var harness = Harness.ready()
        harness.tell(all: .pathChanged(.none), .pathChanged(.modem))
        let actions = harness.tell(.pathChanged(.none))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 2, .pathLost, .dropped)])
        #expect((harness.status.state, harness.status.epoch) == (.verifying, 1))
    }

    @Test func `its end is an end like any other`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.none))
        let actions = harness.tell(.remoteClosed(epoch: 1))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .remoteClosed, .keptAsRefusal)])
        #expect(harness.status.state == .waiting)
    }

    @Test func `a login that was cut is begun anew at once`() {
        var policy = ConnectionPolicy.office
        policy.opening = Opening([.init(send: [1], answer: ExpectedAnswer(BytePattern([2])))])
        var harness = Harness.ready(policy)
        let actions = harness.tell(.pathChanged(.none))
        #expect(Self.closes(actions) == [.closeSocket(epoch: 1, .pathLost, .dropped)])
    }

    // MARK: - A login over another way

    private static let login = Opening([.init(send: [1], answer: ExpectedAnswer(BytePattern([2])))])

    @Test func `when it is back, a login that would lead over it too is ended`() {
        var policy = ConnectionPolicy.office
        policy.opening = Self.login
        var harness = Harness.ready(policy)
        harness.tell(all: .sessionOpened(epoch: 1), .pathChanged(.none), .pathChanged(.modem))
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        let back = harness.tell(.pathChanged(.wifi), after: .seconds(1))
        #expect(Self.closes(back) == [.closeSocket(epoch: 2, .pathMoved, .dropped)])
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 1))
    }

    /// A flow to a name whose address is gone, and a login over the modem beside it, before the connection's path
    /// became unknown.
    private func loggingIn(to remote: Endpoint) -> Harness {
        var policy = ConnectionPolicy.named
        policy.opening = Self.login
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        harness.tell(all: .sessionOpened(epoch: 1), .localAddressRemoved(.wifiSource), .pathChanged(.modem))
        harness.answer([remote.address])
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: remote))
        let unknown = harness.tell(.pathChanged(.unknown), after: .seconds(1))
        #expect(Self.closes(unknown) == [])
        return harness
    }

    @Test func `also where its own way alone shows that`() {
        var harness = loggingIn(to: .office)
        let back = harness.tell(.flowPathChanged(epoch: 1, .wifi))
        #expect(Self.closes(back) == [.closeSocket(epoch: 2, .pathMoved, .dropped)])
    }

    @Test func `a login over a way of which nothing was heard goes on`() {
        var harness = loggingIn(to: .second)
        let back = harness.tell(.flowPathChanged(epoch: 1, .wifi))
        #expect(back.contains(.probe(epoch: 1)))
        #expect(Self.closes(back) == [], "the server has heard of it")
    }

    @Test func `and when the old flow proves itself meanwhile`() {
        var policy = ConnectionPolicy.office
        (policy.opening, policy.movesToBetterPath) = (Self.login, false)
        var harness = Harness.ready(policy)
        harness.tell(all: .sessionOpened(epoch: 1), .pathChanged(.none))
        harness.tell(.pathChanged(.wifi), after: .seconds(1))
        harness.tell(all: .pathChanged(.modem), .dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        let actions = harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        #expect(Self.closes(actions) == [])
        harness.tell(.sessionOpened(epoch: 2))
        #expect((harness.status.state, harness.status.epoch) == (.ready, 2))
    }
}

/// The rule alone: how long, and as what a flow is closed then.
@Suite struct GraceRuleTests {
    private func lost(_ closing: CloseReason = .pathLost, for grace: Duration = .seconds(5)) -> Grace? {
        var value = Grace()
        return value.lost(closing, because: .resumed, for: grace, at: .seconds(10)) ? value : nil
    }

    @Test func `a network that flaps keeps a flow no longer than one that is gone`() throws {
        var grace = try #require(lost())
        #expect(grace.isSilent && grace.isRunning)
        #expect(grace.ending?.at == .seconds(15))
        grace.returned()
        #expect(!grace.isSilent && grace.isRunning && grace.ending == nil)
        #expect(grace.lost(.pathLost, because: .pathMoved, for: .seconds(5), at: .seconds(14)) == true)
        #expect(grace.ending?.at == .seconds(15) && grace.ending?.cause == .pathMoved)
        grace.returned()
        #expect(grace.lost(.pathLost, because: .pathMoved, for: .seconds(5), at: .seconds(15)) == false)
        #expect(!grace.isSilent, "nothing was done")
    }

    @Test func `a flow that has proved itself is kept anew`() throws {
        var grace = try #require(lost())
        grace.end()
        #expect(!grace.isSilent && !grace.isRunning)
        #expect(grace.lost(.pathLost, because: .pathMoved, for: .seconds(5), at: .seconds(20)) == true)
        #expect(grace.ending?.at == .seconds(25))
    }

    @Test func `without its address no FIN is answered, and what came first is the cause`() throws {
        var grace = try #require(lost())
        #expect(grace.lost(.localAddressRemoved, because: .pathMoved, for: .seconds(9), at: .seconds(11)) == true)
        #expect(grace.ending?.closing == .localAddressRemoved)
        #expect(grace.ending?.cause == .resumed)
        #expect(grace.ending?.at == .seconds(15))
        #expect(grace.lost(.pathLost, because: .pathMoved, for: .seconds(5), at: .seconds(11)) == true)
        #expect(grace.ending?.closing == .localAddressRemoved)
    }

    @Test func `without grace nothing is kept`() { #expect(lost(for: .zero) == nil) }
}
