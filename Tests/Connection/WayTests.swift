// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// A flow whose other end is not where the connection's path leads.
@Suite struct WayTests {
    private static let target = {
        var target = ConnectionPolicy.named.target
        (target.host, target.port) = (.address(.second), 5060)
        return target
    }()

    /// The path to the second address, over Wi-Fi or another link.
    private func way(like path: Path = .wifi) -> Path {
        var way = path
        way.destination = .second
        return way
    }

    /// A dial to the second address of a name whose path leads to the first.
    private func dialling() -> Harness {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.second])
        return harness
    }

    /// The same when its own path is known.
    private func known() -> Harness {
        var harness = dialling()
        harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .second))
        harness.tell(.flowPathChanged(epoch: 1, way()), after: .seconds(1))
        return harness
    }

    @Test func `its own path is watched as long as it stands`() {
        var harness = dialling()
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .second))
        #expect(actions.contains(.observeFlowPath(epoch: 1, Self.target)))
        #expect(harness.tell(.flowPathChanged(epoch: 1, way())) == [], "the first word is no news")
        #expect(harness.status.path?.destination == .second)
        let end = harness.tell(.remoteClosed(epoch: 1))
        #expect(
            end.prefix(2) == [.closeSocket(epoch: 1, .remoteClosed, .keptAsRefusal), .stopObservingFlowPath(epoch: 1)])
        #expect(harness.status.path?.destination == .office)
    }

    @Test func `a flow on the connection's own way takes no second look`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(!actions.contains { if case .observeFlowPath = $0 { true } else { false } })
        // Another address of the name is the better one now.
        let apart = harness.tell(.pathChanged(way()))
        #expect(apart.contains { if case .observeFlowPath(1, _) = $0 { true } else { false } })
        #expect(harness.status.state == .ready)
        // And back.
        #expect(harness.tell(.pathChanged(.wifi)).contains(.stopObservingFlowPath(epoch: 1)))
    }

    @Test func `it moves and proves itself where its own way moves`() {
        var harness = known()
        let actions = harness.tell(.flowPathChanged(epoch: 1, way(like: .modem)), after: .seconds(100))
        #expect(actions.contains(.probe(epoch: 1)))
        #expect(actions.contains(.resolve(query: 3, .addresses("sip.example.com", .v6))))
        #expect(harness.status.state == .verifying)
        #expect(harness.status.path?.interface?.name == "wwan0")
    }

    @Test func `the connection's path is none of its business`() {
        var harness = known()
        #expect(!harness.tell(.pathChanged(.modem)).contains(.probe(epoch: 1)))
        harness.tell(.pathChanged(.none))
        harness.tell(.pathChanged(Path(status: .unsatisfied, reason: .nameUnresolved, supportsDNS: false)))
        #expect(harness.status.state == .ready)
        #expect(harness.status.epoch == 1)
        // The next one's it is.
        harness.tell(.flowPathChanged(epoch: 1, Path(status: .unsatisfied, reason: .noRoute, destination: .second)))
        #expect(harness.status.state == .verifying)
        harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(harness.status.state == .waiting)
    }

    @Test func `without its own way it is closed and dialled anew`() {
        var harness = known()
        let actions = harness.tell(
            .flowPathChanged(epoch: 1, Path(status: .unsatisfied, reason: .noCarrier, destination: .second)))
        #expect(actions.contains(.resolve(query: 3, .addresses("sip.example.com", .v6))), "beside it")
        #expect(harness.status.reason == .noPath(.noCarrier, destination: .second))
        let end = harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(end.prefix(2) == [.closeSocket(epoch: 1, .pathLost, .dropped), .stopObservingFlowPath(epoch: 1)])
        // The name servers have had their time, and the address that answered last is tried.
        #expect(harness.status.state == .connecting, "\(harness.status)")
    }

    @Test func `a domain without an address of its own leaves its flows in peace`() {
        var harness = Harness(ConnectionPolicy(remote: .of("sip://example.com")))
        let unresolved = Path(status: .unsatisfied, reason: .nameUnresolved, supportsDNS: true)
        harness.tell(all: .opened, .pathChanged(unresolved))
        let record = ServiceRecord(priority: 1, weight: 1, port: 5060, target: "a.example.com")
        harness.tell(all: .resolutionFailed(query: 1, .noAddress), .resolved(query: 2, .services([record])))
        harness.answer([.second])
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .second))
        #expect(actions.contains { if case .observeFlowPath(1, _) = $0 { true } else { false } })
        harness.tell(.flowPathChanged(epoch: 1, way()))
        let moved = harness.tell(.flowPathChanged(epoch: 1, way(like: .modem)), after: .seconds(10))
        #expect(moved.contains(.probe(epoch: 1)))
        #expect(moved.contains { if case .resolve(_, .services) = $0 { true } else { false } })
    }
}

/// The rule alone: which path it is, and whether that is watched apart.
@Suite struct WayRuleTests {
    private let ends = StandingFlow.overWifi().ends
    private let elsewhere = {
        var path = Path.wifi
        path.destination = .second
        return path
    }()

    @Test func `it is the connection's as long as that leads to the flow's other end`() {
        var way = Way()
        for path in [nil, Path.wifi, .modem, Path.none] {
            #expect(way.connectionsPath(is: path, of: ends, isNamed: true, after: nil) == .unchanged)
            #expect(!way.isApart && !way.isDetour && way.path(orConnections: path) == path)
        }
        #expect(way.connectionsPath(is: elsewhere, of: ends, isNamed: false, after: nil) == .unchanged)
        #expect(way.connectionsPath(is: elsewhere, of: ends, isNamed: true, after: .wifi) == .begins)
        #expect(way.isApart && !way.isAwaited && way.path(orConnections: elsewhere) == .wifi)
        #expect(way.connectionsPath(is: elsewhere, of: ends, isNamed: true, after: nil) == .unchanged)
        #expect(way.path(orConnections: nil) == .wifi, "what is known stays")
        way.ownPath(is: .modem)
        #expect(way.path(orConnections: elsewhere) == .modem)
        #expect(way.connectionsPath(is: .wifi, of: ends, isNamed: true, after: nil) == .ends)
        #expect(!way.isApart)
    }

    @Test func `one over another uplink is watched apart until the kernel chooses that`() {
        var way = Way(isBound: true)
        #expect(way.isDetour)
        #expect(way.connectionsPath(is: .modem, of: ends, isNamed: false, after: nil) == .begins)
        #expect(way.isDetour && way.isAwaited)
        #expect(way.connectionsPath(is: nil, of: ends, isNamed: false, after: nil) == .unchanged)
        var other = Path.wifi
        other.interface = Path.modem.interface
        #expect(way.connectionsPath(is: other, of: ends, isNamed: false, after: nil) == .unchanged)
        #expect(way.isDetour, "the same address on another interface")
        other = .wifi
        other.source = .modemSource
        #expect(way.connectionsPath(is: other, of: ends, isNamed: false, after: nil) == .unchanged)
        #expect(way.isDetour, "another address on the same interface")
        #expect(way.connectionsPath(is: elsewhere, of: ends, isNamed: true, after: nil) == .begins, "unbound")
        #expect(!way.isDetour && way.isApart)
        #expect(way.connectionsPath(is: .wifi, of: ends, isNamed: true, after: nil) == .ends)
        var lost = Path.modem
        lost.status = .unsatisfied
        var withoutSource = Path.modem
        withoutSource.source = nil
        for path in [nil, lost, withoutSource] {
            #expect(way.connectionsPath(is: path, of: ends, isNamed: true, after: nil) == .unchanged)
            #expect(!way.isDetour, "what does not say which uplink changes nothing: \(String(describing: path))")
        }
        #expect(way.connectionsPath(is: .modem, of: ends, isNamed: true, after: nil) == .begins)
        #expect(way.isDetour)
    }

    @Test func `a source that is gone is forgotten, and no other`() {
        var way = Way()
        #expect(way.forget(source: .wifiSource) == false, "the connection's is not its own")
        way.ownPath(is: .wifi)
        #expect(way.forget(source: .modemSource) == false)
        #expect(way.forget(source: .wifiSource) == true)
        #expect(way.path(orConnections: nil)?.source == nil && way.path(orConnections: nil)?.status == .satisfied)
        way.mustBeAsked()
        #expect(way.isAwaited && way.path(orConnections: .modem) == nil)
        #expect(way.forget(source: .wifiSource) == false)
    }
}
