// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct PathTests {
    @Test func `opening asks for the path and dials nothing`() {
        var harness = Harness()
        let actions = harness.tell(.opened)
        #expect(
            actions == [
                .observePath(Target(.address(.office), port: 5060, transport: .tcp)),
                harness.event(.opened, from: .waiting),
            ])
        #expect(harness.status == ConnectionStatus(state: .waiting, reason: .opened, since: harness.now))
    }

    @Test func `the first path is dialled at once and bound to`() {
        var harness = Harness()
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(.wifi), after: .seconds(2))
        #expect(
            actions == [
                .openSocket(.office(epoch: 1)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .waiting, after: .seconds(2)),
            ])
        var expected = ConnectionStatus(
            state: .connecting, reason: .pathAvailable, epoch: 1, since: harness.now, remoteAddress: .office,
            path: .wifi)
        expected.turnedAt = harness.now - .seconds(2)
        #expect(harness.status == expected)
    }

    @Test func `without a path there is no timer and no packet`() {
        var harness = Harness()
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(.none))
        #expect(actions == [harness.event(.pathChanged, from: .waiting)])
        #expect(harness.status.reason.description == "no route to 192.0.2.7")
        #expect(harness.tell(.redialRequested()) == [])
        #expect(harness.tell(.timerFired(.retry)) == [])
    }

    @Test func `the reason of the wait is kept up to date and told once`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.none))
        var noCarrier = Path.none
        noCarrier.reason = .noCarrier
        let actions = harness.tell(.pathChanged(noCarrier), after: .seconds(5))
        #expect(actions == [harness.event(.pathChanged, from: .waiting, after: .seconds(5))])
        noCarrier.generation += 1
        #expect(harness.tell(.pathChanged(noCarrier)) == [])
    }

    @Test func `a path that goes takes the flow with it where it has no grace`() {
        var harness = Harness.ready(.officeWithoutGrace)
        let actions = harness.tell(.pathChanged(.none), after: .seconds(7))
        #expect(
            actions == [.closeSocket(epoch: 1, .pathLost, .dropped), harness.event(from: .ready, after: .seconds(7))])
        #expect(harness.status.state == .waiting)
        #expect(harness.status.reason == .noPath(.noRoute, destination: .office))
        #expect(harness.status.epoch == 1)
    }

    @Test func `a path that goes ends every kind of dial`() {
        var connecting = Harness()
        connecting.tell(all: .opened, .pathChanged(.wifi))
        #expect(
            connecting.tell(.pathChanged(.none)) == [
                .cancelTimer(.dial), .closeSocket(epoch: 1, .pathLost, .dropped), connecting.event(from: .connecting),
            ])

        var resolving = Harness(.named)
        resolving.tell(all: .opened, .pathChanged(.wifi))
        #expect(
            resolving.tell(.pathChanged(.none)) == [
                .cancelTimer(.dial), .cancelResolution(query: 1), .cancelResolution(query: 2),
                resolving.event(from: .resolving),
            ])

        var backingOff = Harness.refused()
        #expect(
            backingOff.tell(.pathChanged(.none)) == [.cancelTimer(.retry), backingOff.event(from: .backingOff)])
    }

    @Test func `the path's return is dialled at once and starts the backoff over`() {
        var harness = Harness.refused()
        harness.tell(all: .timerFired(.retry), .pathChanged(.none))
        let actions = harness.tell(.pathChanged(.modem))
        #expect(
            actions.first
                == .openSocket(
                    .overModem(epoch: 2)))
        #expect(harness.status.attempt == 1)
    }

    @Test func `another way cuts the backoff short`() {
        var harness = Harness.refused()
        #expect(harness.status.attempt == 2)
        let actions = harness.tell(.pathChanged(.modem))
        #expect(actions.first == .cancelTimer(.retry))
        #expect(harness.status.state == .connecting)
        #expect(harness.status.reason == .pathMoved)
        #expect(harness.status.attempt == 1)
    }

    @Test func `news of the same way leave the backoff alone`() {
        var harness = Harness.refused()
        var same = Path.wifi
        same.generation = 9
        same.isExpensive = true
        #expect(harness.tell(.pathChanged(same)) == [])
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.path == same)
    }

    @Test func `a dial under way follows the path`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.pathChanged(.modem), after: .seconds(1))
        #expect(
            actions == [
                .cancelTimer(.dial), .closeSocket(epoch: 1, .pathMoved, .dropped),
                .openSocket(
                    .overModem(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .connecting, after: .seconds(1)),
            ])
    }

    @Test func `a query under way is asked anew when the path moves`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.pathChanged(.modem))
        #expect(
            actions.prefix(4) == [
                .cancelTimer(.dial), .cancelResolution(query: 1), .cancelResolution(query: 2),
                .resolve(query: 3, .addresses("sip.example.com", .v6)),
            ])
    }

    @Test func `a verdict that becomes known disturbs no dial`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.unknown))
        #expect(harness.tell(.pathChanged(.wifi)) == [])
        #expect(harness.status.state == .connecting)
    }

    @Test(arguments: [Path.Status.unknown, .requiresConnection])
    func `a path that may be there is dialled unbound and with backoff`(status: Path.Status) {
        var harness = Harness()
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(Path(status: status)))
        #expect(
            actions.first
                == .openSocket(
                    FlowRequest(epoch: 1, remote: .office, options: ConnectionPolicy.office.socketOptions)))
        harness.tell(.dialFailed(epoch: 1, .timedOut))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `an unknown path keeps a flow`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.unknown))
        #expect(harness.status.state == .verifying)
        #expect(harness.status.epoch == 1)
    }

    @Test func `an incoherent path closes nothing`() {
        var harness = Harness.ready(.officeWithoutGrace)
        #expect(harness.tell(.pathChanged(Path.none.incoherent)) == [])
        #expect(harness.status.state == .ready)
        #expect(harness.status.path == Path.wifi.incoherent)
        // The re-read then settles it.
        #expect(harness.tell(.pathChanged(.none)).first == .closeSocket(epoch: 1, .pathLost, .dropped))
    }

    @Test func `an incoherent path is dialled`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.none))
        harness.tell(.pathChanged(Path.wifi.incoherent))
        #expect(harness.status.state == .connecting)
    }

    @Test func `a name without an address is the dials own business where DNS can be reached`() {
        var unresolved = Path(status: .unsatisfied, reason: .nameUnresolved)
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(unresolved))
        #expect(harness.status.state == .waiting)
        unresolved.supportsDNS = true
        harness.tell(.pathChanged(unresolved))
        #expect(harness.status.state == .resolving)
    }

    @Test func `a name is not found where a name server says so alone`() {
        var unresolved = Path(status: .unsatisfied, reason: .nameUnresolved)
        var harness = Harness(.named)
        harness.tell(.opened)
        #expect(harness.status.reason.cause == .opened, "nobody has been asked yet")
        harness.tell(.pathChanged(unresolved))
        #expect(harness.status.reason.cause == .nameServerFailed)
        #expect(harness.status.reason.description == "no name server answers")
        unresolved.supportsDNS = true
        harness.tell(.pathChanged(unresolved))
        harness.tell(all: .resolutionFailed(query: 1, .temporary), .resolutionFailed(query: 2, .temporary))
        #expect(harness.status.reason.cause == .nameServerFailed)
        harness.tell(.redialRequested())
        harness.tell(all: .resolutionFailed(query: 3, .noSuchName), .resolutionFailed(query: 4, .noSuchName))
        #expect(harness.status.reason.cause == .nameNotFound)
        // The name server is gone again.
        unresolved.supportsDNS = false
        harness.tell(.pathChanged(unresolved))
        #expect(harness.status.state == .waiting)
        #expect(harness.status.reason.cause == .nameServerFailed)
    }

    @Test func `a name server that can be reached cuts the backoff short`() {
        var mute = Path.wifi
        mute.supportsDNS = false
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(mute))
        harness.tell(all: .resolutionFailed(query: 1, .temporary), .resolutionFailed(query: 2, .temporary))
        #expect(harness.status.state == .backingOff)
        harness.tell(.pathChanged(.wifi))
        #expect(harness.status.state == .resolving)
    }
}

@Suite struct LocalAddressTests {
    @Test func `without grace a flow is closed at once and dialled anew when its address goes`() {
        var policy = ConnectionPolicy.officeWithoutGrace
        policy.movesToBetterPath = false
        var harness = Harness.ready(policy)
        harness.tell(all: .pathChanged(.modem), .acknowledged(epoch: 1, begun: harness.now))
        let actions = harness.tell(.localAddressRemoved(.wifiSource), after: .seconds(3))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .localAddressRemoved, .dropped),
                .openSocket(.overModem(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .ready, after: .seconds(3)),
            ])
        #expect(harness.status.reason.description == "source 192.168.1.23 is gone")
    }

    @Test func `an address that is gone is not bound to again`() throws {
        var harness = Harness.ready(.officeWithoutGrace)
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        var unbound = FlowRequest.office(epoch: 2)
        unbound.source = nil
        #expect(actions.dropFirst().first == .openSocket(unbound))
        // The path that follows names another source; the dial that is under way was made without the old one.
        var moved = Path.wifi
        moved.source = .modemSource
        #expect(harness.tell(.pathChanged(moved)) == [])
    }

    @Test func `a dial that is bound to the address is made anew`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.localAddressRemoved(.wifiSource))
        #expect(actions.prefix(2) == [.cancelTimer(.dial), .closeSocket(epoch: 1, .localAddressRemoved, .dropped)])
        #expect(harness.status.epoch == 2)
    }

    @Test func `another address is nobody's business`() {
        var ready = Harness.ready()
        #expect(ready.tell(.localAddressRemoved(.modemSource)) == [])
        var backingOff = Harness.refused()
        #expect(backingOff.tell(.localAddressRemoved(.wifiSource)) == [])
    }
}
