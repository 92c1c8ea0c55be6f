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

    @Test mutating func aNewFlowAtOnceOnTheSameNetworkBlamesTheNetwork() {
        lose(into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1001)
        #expect(outcome == beat)
        // Once.
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == nil)
    }

    @Test mutating func theKernelsTimeoutIsASilenceToo() {
        lose(because: .flowFailed(.timedOut), into: .backingOff)
        outcome = hear(.connecting, because: .retryDue, on: nil, at: 1001)
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == beat)
    }

    @Test mutating func anotherAddressOfTheRemoteMayFailMeanwhile() {
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
    mutating func nothingIsLearnedFromAnotherEnd(reason: StatusReason) {
        lose(because: reason, into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1001)
        #expect(outcome == nil)
    }

    @Test mutating func aServerThatIsAwayIsToBlameItself() {
        lose(into: .connecting)
        let failed = event(.backingOff, because: .dialFailed(.timedOut, .office))
        outcome = inquiry.heard(failed, on: nil, at: .seconds(1010))
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1011)
        #expect(outcome == nil)
    }

    @Test mutating func aNetworkThatIsAwayIsNotLearnedFrom() {
        lose(into: .connecting)
        let lost = event(.waiting, because: .noPath(.noCarrier, destination: nil))
        outcome = inquiry.heard(lost, on: nil, at: .seconds(1001))
        #expect(outcome == nil)
        outcome = hear(.ready, because: .connected, on: home, at: 1002)
        #expect(outcome == nil)
    }

    @Test mutating func aNewFlowOverAnotherNetworkSaysNothing() throws {
        let other = try #require(NetworkIdentity(.wifi, gatewayLinkAddress: [2, 0, 0, 0, 0, 2]))
        lose(into: .connecting)
        outcome = hear(.ready, because: .replaced, on: other, at: 1001)
        #expect(outcome == nil)
    }

    @Test mutating func aNewFlowThatTookLongSaysNothing() {
        lose(into: .connecting)
        outcome = hear(.ready, because: .connected, on: home, at: 1016)
        #expect(outcome == nil)
    }
}

/// How long a server bears a silence.
@Suite struct ServerPatienceTests {
    private var patience = ServerPatience()

    @Test mutating func aFlowEndedInALongSilenceIsHeldAgainstLongerOnesThanUsual() {
        patience.ended(after: .seconds(130), usual: .seconds(120))
        #expect(patience.limit == .seconds(120))
    }

    @Test mutating func theSameSilenceTwiceIsAServersTimer() {
        patience.ended(after: .seconds(100), usual: .seconds(120))
        #expect(patience.limit == nil)
        patience.ended(after: .seconds(103), usual: .seconds(120))
        #expect(patience.limit == .milliseconds(92_700))
    }

    @Test mutating func restartsComeAtAnyTime() {
        for silence in [100, 62, 5, 80, 3, 4] { patience.ended(after: .seconds(silence), usual: .seconds(120)) }
        #expect(patience.limit == nil)
    }

    @Test mutating func itIsForgottenAfterALongWhile() {
        patience.ended(after: .seconds(130), usual: .seconds(120))
        for _ in 0..<199 { patience.survived() }
        #expect(patience.limit != nil)
        patience.survived()
        #expect(patience.limit == nil)
    }
}
