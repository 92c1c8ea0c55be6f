// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// What is counted of a connection.
@Suite struct ConnectionTotalsTests {
    private typealias State = ConnectionStatus.State

    /// Events of one connection, a second apart unless a test says otherwise.
    private struct Life {
        private(set) var totals = ConnectionTotals()
        private(set) var now = Duration.seconds(100)
        private(set) var state = State.waiting
        private var turnedAt = Duration.seconds(100)
        /// Whether something was to be kept, event by event.
        private(set) var news: [Bool] = []

        mutating func pass(_ time: Duration) { now += time }

        mutating func enter(
            _ next: State, _ reason: StatusReason, after time: Duration = .seconds(1),
            as kind: ConnectionEvent.Kind = .stateChanged
        ) {
            now += time
            if next.hasFlow != state.hasFlow { turnedAt = now }
            var status = ConnectionStatus(state: next, reason: reason, since: now)
            status.turnedAt = turnedAt
            news.append(
                totals.heard(
                    ConnectionEvent(
                        kind: kind, status: status, previousState: state, previousDuration: .zero, reason: reason)))
            state = next
        }

        /// The next process of the agent goes on with the connection, and knows since when it has no socket only of
        /// itself.
        mutating func restart(_ next: State, after time: Duration) {
            now += time
            turnedAt = now
            let kept = totals
            totals = ConnectionTotals()
            (totals.outages, totals.failedDials, totals.connectedDials) = (
                kept.outages, kept.failedDials, kept.connectedDials
            )
            (totals.downBefore, totals.outageSince, totals.isUp) = (kept.downBefore, kept.outageSince, kept.isUp)
            state = next
            enter(next, .restarted(.kept), after: .zero, as: .continued)
        }

        var down: Duration { totals.down(at: now) }
    }

    private static let remote = Endpoint(address: IPAddress(v4: 0x7F00_0001), port: 1)
    private static let refused = StatusReason.dialFailed(.refused, remote)

    @Test func `a first dial that succeeds is no outage, and its time is counted from its beginning`() {
        var life = Life()
        life.enter(.waiting, .opened, as: .opened)
        life.enter(.resolving, .pathAvailable)
        life.enter(.connecting, .pathAvailable, after: .milliseconds(20))
        life.enter(.securing, .pathAvailable, after: .milliseconds(30))
        life.enter(.ready, .connected, after: .milliseconds(40))
        #expect(life.totals.outages == [:])
        #expect(life.down == .zero)
        #expect(life.totals.connectedDials == 1)
        #expect(life.totals.connectTime.sum == .milliseconds(90))
        // Over 50 ms, up to 100 ms.
        #expect(life.totals.connectTime.counts == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
        #expect(life.news == [false, false, false, false, true], "what is kept changes with the socket alone")
    }

    @Test func `an outage has the cause it began with, and lasts through all attempts`() {
        var life = Life()
        life.enter(.connecting, .pathAvailable)
        life.enter(.ready, .connected)
        life.enter(.waiting, .noPath(.noCarrier, destination: nil))
        life.enter(.connecting, .pathAvailable)
        life.enter(.backingOff, Self.refused)
        life.enter(.connecting, .retryDue)
        #expect(life.totals.outageSince == .seconds(103))
        #expect(life.down == .seconds(3), "as long as it has lasted")
        life.enter(.ready, .connected)
        life.pass(.seconds(50))
        #expect(life.down == .seconds(4), "\(life.totals)")
        #expect(life.totals.outages == [.noCarrier: 1])
        #expect(life.totals.failedDials == [.refused: 1])
        #expect(life.totals.connectedDials == 2)
    }

    @Test func `a first attempt that fails begins an outage, since the connection was opened`() {
        var life = Life()
        life.enter(.waiting, .opened, after: .zero, as: .opened)
        life.enter(.connecting, .pathAvailable)
        #expect(life.down == .zero, "nothing has failed")
        life.enter(.backingOff, Self.refused)
        #expect(life.totals.outages == [.refused: 1])
        #expect(life.down == .seconds(2))
        life.enter(.connecting, .retryDue)
        life.enter(.failed, .dialFailed(.tls(.notTLS), Self.remote))
        #expect(life.totals.outages == [.refused: 1], "the outage under way is one")
        #expect(life.totals.failedDials == [.refused: 1, .notTLS: 1])
    }

    @Test func `one that is opened without a path is down until it has a socket`() {
        var life = Life()
        life.enter(.waiting, .opened, after: .zero, as: .opened)
        // The path is looked up, and there is none; then there is none for another reason.
        life.enter(.waiting, .noPath(.noCarrier, destination: nil), after: .zero, as: .pathChanged)
        life.enter(.waiting, .noPath(.noRoute, destination: nil), as: .pathChanged)
        #expect(life.totals.outages == [.noCarrier: 1])
        #expect(life.down == .seconds(1))
        life.enter(.connecting, .pathAvailable)
        life.enter(.ready, .connected)
        life.enter(.ready, .pathMoved, as: .pathChanged)
        life.pass(.seconds(9))
        #expect(life.totals.outages == [.noCarrier: 1])
        #expect(life.down == .seconds(3))
    }

    @Test func `the loss of a socket that a client brought is an outage, however soon the next one stands`() {
        var life = Life()
        life.enter(.ready, .adopted, as: .opened)
        life.enter(.connecting, .remoteClosed)
        life.enter(.ready, .connected)
        #expect(life.totals.outages == [.closedByRemote: 1])
        #expect(life.down == .seconds(1))
    }

    @Test func `a dial that is given up for another one is part of that`() {
        var life = Life()
        life.enter(.connecting, .pathAvailable)
        life.enter(.resolving, .pathMoved)
        life.enter(.connecting, .pathMoved)
        life.enter(.ready, .connected)
        #expect(life.totals.connectedDials == 1)
        #expect(life.totals.connectTime.sum == .seconds(3))
        #expect(life.totals.failedDials == [:])
    }

    @Test func `a dial without an address to try fails, and a wait for its turn does not`() {
        var life = Life()
        life.enter(.backingOff, .awaitsTurn)
        #expect(life.totals.failedDials == [:])
        life.enter(.backingOff, .resolutionFailed(.noSuchName))
        #expect(life.totals.failedDials == [.nameNotFound: 1])
    }

    @Test func `a move to a better path is a dial and no outage`() {
        var life = Life()
        life.enter(.connecting, .pathAvailable)
        life.enter(.ready, .connected)
        life.enter(.ready, .replaced)
        life.enter(.ready, Self.refused, as: .moveFailed)
        life.enter(.verifying, .pathMoved)
        life.enter(.ready, .verified)
        #expect(life.totals.connectedDials == 2, "a socket that was verified is no other one")
        #expect(life.totals.failedDials == [.refused: 1])
        #expect(life.totals.outages == [:])
        #expect(life.totals.connectTime.counts.reduce(0, +) == 1, "nobody waited for the move")
    }

    @Test func `an outage goes on through a restart, and one that the restart made is told of`() {
        var life = Life()
        life.enter(.connecting, .pathAvailable)
        life.enter(.ready, .connected)
        life.restart(.ready, after: .seconds(1))
        #expect(life.totals.outages == [:])
        life.enter(.waiting, .noPath(nil, destination: nil))
        life.restart(.waiting, after: .seconds(5))
        #expect(life.totals.outages == [.noPath: 1], "the same one")
        #expect(life.down == .seconds(5))
        life.enter(.connecting, .pathAvailable)
        life.enter(.ready, .connected)
        #expect(life.down == .seconds(7))
        // Its socket did not outlive the process.
        life.restart(.connecting, after: .seconds(5))
        #expect(life.totals.outages == [.noPath: 1, .restarted: 1])
        #expect(life.down == .seconds(7), "while no agent ran, nobody knows")
    }

    @Test func `an outage ends with the connection`() {
        var life = Life()
        life.enter(.backingOff, Self.refused)
        life.enter(.closed, .closeRequested)
        life.pass(.seconds(9))
        #expect(life.totals.outageSince == nil)
        #expect(life.down == .seconds(2), "since it was opened")
    }

    @Test func `wakes are counted by the last means, and how long the client took`() {
        var totals = ConnectionTotals()
        var wake = StandingWake(number: 1, reasons: [.data], since: .zero)
        var news = [WakeReport(.began, wake), WakeReport(.failed(after: .seconds(60)), wake)].map { totals.heard($0) }
        wake.means = .signal
        let reports = [
            WakeReport(.attempted(.signal), wake), WakeReport(.acknowledged(after: .milliseconds(1)), wake),
            WakeReport(.acknowledged(after: .seconds(31)), wake),
        ]
        news += reports.map { totals.heard($0) }
        #expect(news == [false, true, false, true, true])
        #expect(totals.wakes[nil]?.failed == 1)
        #expect(totals.wakes[.signal]?.failed == 0)
        #expect(totals.wakes[.signal]?.acknowledged.counts == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    }
}
