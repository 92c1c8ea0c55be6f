// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct MoveTests {
    /// A flow over Wi-Fi while the path leads over the modem, whose flow is on its way as epoch 2.
    private func moving(_ policy: ConnectionPolicy = .office) -> Harness {
        var harness = Harness.ready(policy)
        harness.tell(.pathChanged(.modem), after: .seconds(100))
        return harness
    }

    @Test func `a better path is dialled while the flow stands and is verified`() {
        var harness = Harness.ready()
        let actions = harness.tell(.pathChanged(.modem), after: .seconds(7))
        #expect(
            actions == [
                .openSocket(.overModem(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                .probe(epoch: 1),
                .scheduleTimer(.proof, deadline: harness.now + .seconds(3)),
                harness.event(from: .ready, after: .seconds(7)),
            ])
        #expect(harness.status.state == .verifying)
        #expect(harness.status.epoch == 1)
        #expect(harness.status.localAddress == .local)
    }

    @Test func `the new flow takes the old one's place before that is closed`() {
        var harness = moving()
        let actions = harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(
            actions == [
                .cancelTimer(.dial), .cancelTimer(.proof), .closeSocket(epoch: 1, .replaced, .dropped),
                .watchInput(epoch: 2, true), harness.event(from: .verifying),
            ])
        #expect(harness.status.state == .ready)
        #expect(harness.status.reason == .replaced)
        #expect(harness.status.epoch == 2)
        #expect(harness.status.interface == "wwan0")
    }

    @Test func `where the user wants none the flow stays and proves itself`() {
        var policy = ConnectionPolicy.office
        policy.movesToBetterPath = false
        var harness = Harness.ready(policy)
        let actions = harness.tell(.pathChanged(.modem))
        #expect(actions.contains(.probe(epoch: 1)))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now), after: .milliseconds(40))
        #expect(harness.status.state == .ready)
        #expect(harness.status.epoch == 1)
    }

    @Test func `the path to another of the name's addresses is no better one`() {
        var harness = Harness.ready()
        var other = Path.modem
        other.destination = .second
        let actions = harness.tell(.pathChanged(other))
        #expect(!actions.contains { if case .openSocket = $0 { true } else { false } })
    }

    @Test func `a flow that stands needs the name no more`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        var unresolved = Path(status: .unsatisfied, reason: .nameUnresolved, supportsDNS: true)
        harness.tell(.pathChanged(unresolved))
        unresolved.supportsDNS = false
        harness.tell(.pathChanged(unresolved))
        #expect(harness.status.state == .verifying || harness.status.state == .ready)
        #expect(harness.status.epoch == 1)
        // The next one does.
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.status.state == .waiting)
    }

    @Test func `a gateway that changes under the same address needs no other flow`() {
        var harness = Harness.ready()
        let actions = harness.tell(.pathChanged(.gatewayMoved))
        #expect(actions.contains(.probe(epoch: 1)))
        #expect(!actions.contains { if case .openSocket = $0 { true } else { false } })
    }

    @Test func `a move that fails keeps the flow and is tried again`() {
        var harness = moving()
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        let actions = harness.tell(.dialFailed(epoch: 2, .refused), after: .milliseconds(10))
        #expect(
            actions == [
                .closeSocket(epoch: 2, .dialFailed, .dropped), .cancelTimer(.dial),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(800)),
                harness.event(
                    .moveFailed, from: .ready, after: .milliseconds(10), because: .dialFailed(.refused, .office)),
            ])
        #expect(harness.status.state == .ready)
        #expect(harness.status.attempt == 1)
        let again = harness.tell(.timerFired(.retry), after: .milliseconds(800))
        #expect(again.first == .openSocket(.overModem(epoch: 3)))
    }

    @Test func `a move that fails of a network that is settling is tried again in seconds`() {
        var harness = moving(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        let brief = harness.tell(.dialFailed(epoch: 2, .addressNotAvailable), after: .milliseconds(10))
        #expect(brief.contains(.scheduleTimer(.retry, deadline: harness.now + .milliseconds(1500))))
        harness.tell(.timerFired(.retry), after: .seconds(40))
        let long = harness.tell(.dialFailed(epoch: 3, .addressNotAvailable))
        #expect(long.contains(.scheduleTimer(.retry, deadline: harness.now + .seconds(45))))
    }

    @Test func `a path that leads back ends the move`() {
        var harness = moving()
        let actions = harness.tell(.pathChanged(.wifi))
        #expect(actions.prefix(2) == [.cancelTimer(.dial), .closeSocket(epoch: 2, .pathMoved, .dropped)])
        #expect(harness.status.epoch == 1)
    }

    @Test func `news of the better path that moves no packet leaves the dial alone`() {
        var harness = Harness.ready()
        var withoutDNS = Path.modem
        withoutDNS.supportsDNS = false
        harness.tell(.pathChanged(withoutDNS))
        let actions = harness.tell(.pathChanged(.modem))
        #expect(!actions.contains { if case .closeSocket = $0 { true } else { false } }, "\(actions)")
    }

    @Test func `a login that is under way outlives a change of the better path`() {
        var policy = ConnectionPolicy.office
        policy.opening = Opening([.init(send: [1], answer: ExpectedAnswer(BytePattern([2])))])
        var harness = Harness.ready(policy)
        harness.tell(all: .sessionOpened(epoch: 1), .pathChanged(.modem))
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        var moved = Path.modem
        moved.gateway = IPAddress("10.64.0.254")
        let actions = harness.tell(.pathChanged(moved))
        #expect(!actions.contains { if case .closeSocket = $0 { true } else { false } }, "\(actions)")
    }

    @Test func `what waits for the next try waits for nothing where no better path is known any more`() {
        var harness = moving()
        harness.tell(all: .acknowledged(epoch: 1, begun: harness.now), .dialFailed(epoch: 2, .refused))
        #expect(harness.tell(.pathChanged(.unknown)).contains(.cancelTimer(.retry)))
    }

    @Test func `a path that flaps is dialled as often as the connection may dial`() {
        var harness = Harness.ready()
        for _ in 2...DialBudget.burst { harness.tell(all: .pathChanged(.modem), .pathChanged(.wifi)) }
        let actions = harness.tell(.pathChanged(.modem))
        #expect(!actions.contains { if case .openSocket = $0 { true } else { false } })
        #expect(actions.contains(.scheduleTimer(.retry, deadline: harness.now + DialBudget.interval)))
    }

    @Test func `when the old flow ends the move is the dial`() {
        var harness = moving()
        let actions = harness.tell(.remoteClosed(epoch: 1))
        #expect(
            actions == [
                .cancelTimer(.proof), .closeSocket(epoch: 1, .remoteClosed, .keptAsRefusal),
                harness.event(from: .verifying),
            ])
        #expect(harness.status.state == .connecting)
        #expect(harness.status.epoch == 2)
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(harness.status.reason == .connected)
    }

    @Test func `when the old address goes the move is the dial`() {
        var harness = moving(.officeWithoutGrace)
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        #expect(actions.contains(.closeSocket(epoch: 1, .localAddressRemoved, .dropped)))
        #expect(harness.status.state == .connecting)
        #expect(harness.status.epoch == 2)
    }

    @Test func `when the new address goes the move ends and the flow stays`() {
        var harness = moving()
        let actions = harness.tell(.localAddressRemoved(.modemSource))
        #expect(actions == [.cancelTimer(.dial), .closeSocket(epoch: 2, .localAddressRemoved, .dropped)])
        #expect(harness.status.epoch == 1)
    }

    @Test func `a flow that does not prove itself leaves its place to the move`() {
        var harness = moving()
        let actions = harness.tell(.timerFired(.proof), after: .seconds(3))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .unanswered, .dropped), harness.event(from: .verifying, after: .seconds(3)),
            ])
        #expect(harness.status.reason == .unverified)
        #expect(harness.status.epoch == 2)
    }

    @Test func `without a path both are closed`() {
        var harness = moving(.officeWithoutGrace)
        let actions = harness.tell(.pathChanged(.none))
        #expect(
            actions.prefix(4) == [
                .cancelTimer(.dial), .closeSocket(epoch: 2, .pathLost, .dropped), .cancelTimer(.proof),
                .closeSocket(epoch: 1, .pathLost, .dropped),
            ])
    }
}

/// The rule alone: over which path there is a better flow, and what there is of one.
@Suite struct MoveRuleTests {
    private func leaves(
        over path: Path?, _ change: (inout StandingFlow) -> Void = { _ in }, isBound: Bool = false,
        under policy: ConnectionPolicy = .office
    ) -> Bool {
        var flow = StandingFlow.overWifi(isBound: isBound)
        change(&flow)
        return Move.betterPath(than: flow, over: path, under: policy) != nil
    }

    private static func lose(_ flow: inout StandingFlow) {
        _ = flow.grace.lost(.pathLost, because: .pathMoved, for: .seconds(5), at: .seconds(20))
    }

    private static let staying = {
        var policy = ConnectionPolicy.office
        policy.movesToBetterPath = false
        return policy
    }()
    private static let single = {
        var policy = ConnectionPolicy.office
        policy.redials = false
        return policy
    }()

    @Test func `from a flow that lacks nothing, a path from another address to the same end`() {
        #expect(leaves(over: .modem))
        #expect(!leaves(over: .wifi) && !leaves(over: .gatewayMoved) && !leaves(over: nil))
        #expect(!leaves(over: .unknown) && !leaves(over: Path.none))
        var other = Path.modem
        other.destination = .second
        #expect(!leaves(over: other))
        var onDemand = Path.modem
        onDemand.status = .requiresConnection
        #expect(!leaves(over: onDemand))
        #expect(!leaves(over: .modem, { _ = $0.ownership.arrived() }))
        #expect(!leaves(over: .modem, under: Self.staying) && !leaves(over: .modem, under: Self.single))
    }

    @Test func `from one with a way of its own that way, while the connection is dialled at all`() {
        var elsewhere = Path.wifi
        elsewhere.destination = .second
        var flow = StandingFlow.overWifi()
        flow.way.ownPath(is: .modem)
        #expect(Move.betterPath(than: flow, over: elsewhere, under: .office) == .modem)
        #expect(Move.betterPath(than: flow, over: Path.none, under: .office) == nil)
        flow.way.ownPath(is: .wifi)
        #expect(Move.betterPath(than: flow, over: .modem, under: .office) == nil)
    }

    @Test func `from a silent one any path, once its own way is known`() {
        for path in [Path.modem, .wifi, .unknown] {
            #expect(leaves(over: path, Self.lose, under: Self.staying), "\(path)")
        }
        #expect(!leaves(over: Path.none, Self.lose) && !leaves(over: .modem, Self.lose, under: Self.single))
        #expect(
            !leaves(over: .modem) { flow in
                Self.lose(&flow)
                flow.way.mustBeAsked()
            })
    }

    @Test func `from one that owes the proof a better path, whatever holds it otherwise`() {
        func back(_ flow: inout StandingFlow) {
            Self.lose(&flow)
            flow.grace.returned()
            _ = flow.ownership.arrived()
        }
        #expect(leaves(over: .modem, back, under: Self.staying) && !leaves(over: .wifi, back, under: Self.staying))
    }

    @Test func `from one over another uplink the kernel's, unless something holds it`() {
        #expect(leaves(over: .modem, isBound: true))
        #expect(!leaves(over: .wifi, isBound: true) && !leaves(over: .unknown, isBound: true))
        #expect(!leaves(over: .modem, isBound: true, under: Self.staying))
        #expect(!leaves(over: .modem, { _ = $0.ownership.arrived() }, isBound: true))
        #expect(
            !leaves(over: .modem, { $0.opening = OpeningProgress(of: Opening([]), at: .seconds(10)) }, isBound: true))
    }

    @Test func `it has a dial`() {
        var numbers = Dial.Numbers()
        var turn = Turn(now: .seconds(10), dialsFrom: .zero, random: FixedRandom())
        let policy = ConnectionPolicy.office
        var dial = Dial(
            Dial.Setting(policy: policy, options: policy.socketOptions, path: .modem, known: nil, patience: nil),
            &numbers, &turn)
        _ = dial.goOn(&numbers, &turn)
        let move = Move(by: dial, afterFailures: 3)
        #expect(move.dial != nil && move.next == nil && move.deadline == nil && move.failures == 3)
        #expect(move.epochs == [1] && move.uses(.modemSource) && !move.uses(.wifiSource))
    }

    @Test func `it has a wait, or a flow that logs in`() {
        let waiting = Move(at: .seconds(30), afterFailures: 2)
        #expect(waiting.deadline == .seconds(30) && waiting.failures == 2 && waiting.epochs == [])
        #expect(waiting.dial == nil && waiting.next == nil && !waiting.uses(.wifiSource))
        var next = Move(to: .overWifi(), afterFailures: 1)
        #expect(next.deadline == nil && next.dial == nil && next.epochs == [1])
        #expect(next.uses(.wifiSource) && !next.uses(.modemSource))
        next.changeNext { $0.settledAt = nil }
        #expect(next.next?.settledAt == nil && next.failures == 1)
    }
}
