// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// Gateways that the kernel asks for: what is known of them, and until when nothing is.
struct AwaitedNeighbourTests {
    private static let gateway = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: Sample.gateway4)

    private static let awaiting: NetworkSnapshot = {
        var snapshot = Sample.network
        _ = snapshot.apply(.neighbourAwaited(gateway))
        return snapshot
    }()

    @Test func `a verdict over a gateway that is asked for is open`() {
        let snapshot = Self.awaiting
        #expect(snapshot.generation == Sample.network.generation, "nothing changed")
        #expect(snapshot.awaitsGateway(of: Path(to: Sample.remote4, by: .route(Sample.route4), in: snapshot)))
        #expect(!snapshot.awaitsGateway(of: Path(status: .satisfied)))
        #expect(snapshot.openNeighbours == [Self.gateway])
    }

    /// Also where the kernel forgets it meanwhile: then there is nothing to wait for.
    @Test(arguments: [
        KernelEvent.neighbourChanged(gateway, isFailed: false), .neighbourChanged(gateway, isFailed: true),
        .neighbourForgotten(gateway),
    ])
    func `its outcome is a change`(outcome: KernelEvent) {
        var snapshot = Self.awaiting
        let change = snapshot.apply(outcome)
        #expect(change.subjects == .neighbours && change.neighbours == [Self.gateway], "\(change)")
        #expect(snapshot.awaitedNeighbours == [])
        #expect(
            snapshot.failedNeighbours
                == (outcome == .neighbourChanged(Self.gateway, isFailed: true) ? [Self.gateway] : []))
    }

    @Test(arguments: [false, true])
    func `a wait without an outcome leaves what is known`(hasFailed: Bool) {
        var snapshot = Sample.network
        if hasFailed { _ = snapshot.apply(.neighbourChanged(Self.gateway, isFailed: true)) }
        snapshot.doubt(Self.gateway)
        let generation = snapshot.generation
        #expect(snapshot.stopAwaiting(Self.gateway).neighbours == [Self.gateway])
        #expect(snapshot.failedNeighbours == (hasFailed ? [Self.gateway] : []))
        #expect(snapshot.awaitedNeighbours == [] && snapshot.generation == generation + 1)
        #expect(snapshot.stopAwaiting(Self.gateway) == KernelChange(), "it is over")
    }

    /// It is asked for because it failed, again and again on a machine that goes on sending.
    @Test func `one that failed is not awaited`() {
        var snapshot = Sample.network
        _ = snapshot.apply(.neighbourChanged(Self.gateway, isFailed: true))
        _ = snapshot.apply(.neighbourAwaited(Self.gateway))
        #expect(snapshot.awaitedNeighbours == [])
    }

    @Test func `with its link a wait ends`() {
        var snapshot = Self.awaiting
        var link = Sample.wired
        link.hasCarrier = false
        _ = snapshot.apply(.interfacePresent(link))
        #expect(snapshot.awaitedNeighbours == [])
    }
}
