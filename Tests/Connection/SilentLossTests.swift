// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// Who is to blame for a flow that fell silent.
@Suite struct SilentLossTests {
    private let home: NetworkIdentity
    private let beat: SilentLoss.Beat
    private var inquiry = SilentLoss()
    private var outcome: SilentLoss.Beat?

    init() throws {
        home = try #require(NetworkIdentity(.wifi, gatewayLinkAddress: [2, 0, 0, 0, 0, 1]))
        beat = SilentLoss.Beat(silence: .seconds(150), sentAt: .seconds(990), network: home)
    }

    private func event(
        _ state: ConnectionStatus.State, because reason: StatusReason, _ kind: ConnectionEvent.Kind = .stateChanged
    ) -> ConnectionEvent {
        ConnectionEvent(
            kind: kind, status: ConnectionStatus(state: state, reason: reason, since: .seconds(1000)),
            previousState: .ready, previousDuration: .zero, reason: reason)
    }

    /// What comes out when this is heard next.
    private mutating func hear(
        _ state: ConnectionStatus.State, because reason: StatusReason, on network: NetworkIdentity?, at seconds: Int
    ) -> SilentLoss.Beat? {
        inquiry.heard(event(state, because: reason), on: network, at: .seconds(seconds))
    }

    /// The inquiry into a flow that was lost at 1,000 s.
    private mutating func lose(because reason: StatusReason = .unanswered, into state: ConnectionStatus.State) {
        inquiry.suspect(beat, at: .seconds(1000))
        outcome = hear(state, because: reason, on: nil, at: 1000)
        #expect(outcome == nil)
    }

    @Test mutating func `a new flow at once on the same network blames the network`() {
        lose(into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1001)
        #expect(outcome == beat)
        // Once.
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == nil)
    }

    @Test mutating func `the kernels timeout is a silence too`() {
        lose(because: .flowFailed(.timedOut), into: .backingOff)
        outcome = hear(.connecting, because: .retryDue, on: nil, at: 1001)
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == beat)
    }

    @Test mutating func `another address of the remote may fail meanwhile`() {
        lose(into: .connecting)
        let miss = event(.connecting, because: .dialFailed(.hostUnreachable, .sixth), .addressFailed)
        outcome = inquiry.heard(miss, on: nil, at: .seconds(1001))
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == beat)
    }

    @Test(arguments: [
        StatusReason.flowFailed(.reset), .remoteClosed, .unverified, .pathMoved, .resumed, .redialRequested,
        .localAddressRemoved(.office), .closeRequested,
    ])
    mutating func `nothing is learned from another end`(reason: StatusReason) {
        lose(because: reason, into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1001)
        #expect(outcome == nil)
    }

    @Test mutating func `a server that is away is to blame itself`() {
        lose(into: .connecting)
        let failed = event(.backingOff, because: .dialFailed(.timedOut, .office))
        outcome = inquiry.heard(failed, on: nil, at: .seconds(1010))
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1011)
        #expect(outcome == nil)
    }

    @Test mutating func `a network that is away is not learned from`() {
        lose(into: .connecting)
        let lost = event(.waiting, because: .noPath(.noCarrier, destination: nil))
        outcome = inquiry.heard(lost, on: nil, at: .seconds(1001))
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == nil)
    }

    @Test mutating func `a new flow over another network says nothing`() throws {
        let other = try #require(NetworkIdentity(.wifi, gatewayLinkAddress: [2, 0, 0, 0, 0, 2]))
        lose(into: .connecting)
        outcome = hear(.ready, because: .replaced, on: other, at: 1001)
        #expect(outcome == nil)
    }

    @Test mutating func `a new flow that took long says nothing`() {
        lose(into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1016)
        #expect(outcome == nil)
    }
}

/// How long a server bears a silence.
@Suite struct ServerPatienceTests {
    private var patience = ServerPatience()

    @Test mutating func `a flow ended in a long silence is held against longer ones than usual`() {
        patience.ended(after: .seconds(130), usual: .seconds(120))
        #expect(patience.limit == .seconds(120))
    }

    @Test mutating func `the same silence twice is a server's timer`() {
        patience.ended(after: .seconds(100), usual: .seconds(120))
        #expect(patience.limit == nil)
        patience.ended(after: .seconds(103), usual: .seconds(120))
        #expect(patience.limit == .milliseconds(92_700))
    }

    @Test mutating func `restarts come at any time`() {
        for silence in [100, 62, 5, 80, 3, 4] { patience.ended(after: .seconds(silence), usual: .seconds(120)) }
        #expect(patience.limit == nil)
    }

    @Test mutating func `it is forgotten after a long while`() {
        patience.ended(after: .seconds(130), usual: .seconds(120))
        for _ in 0..<199 { patience.survived() }
        #expect(patience.limit != nil)
        patience.survived()
        #expect(patience.limit == nil)
    }
}
