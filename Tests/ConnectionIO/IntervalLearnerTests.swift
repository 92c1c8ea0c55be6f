// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What heartbeats teach of a network, and who learns it.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct IntervalLearnerTests {
    private let learner = IntervalLearner()
    private let heartbeat = Heartbeat(.crlf)
    private let home: NetworkIdentity

    init() throws {
        home = try #require(NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]))
    }

    private func id(_ epoch: UInt64) -> IntervalLearner.FlowID {
        .init(keepaliveSender: ObjectIdentifier(learner), epoch: epoch)
    }

    private func interval(_ epoch: UInt64, atMost limit: Duration? = nil) -> Duration {
        learner.cadence(of: heartbeat, on: home, atMost: limit, for: id(epoch)).interval
    }

    private func beat(_ silence: Duration) {
        for _ in 0..<3 { learner.survived(silence, on: home, heartbeat.kind.figures) }
    }

    @Test func `one flow of a network tries a longer interval for all`() {
        #expect(interval(1) == .seconds(120))
        beat(.seconds(120))
        #expect(
            learner.cadence(of: heartbeat, on: home, atMost: nil, for: id(1))
                == Cadence(interval: .seconds(150), tolerance: .zero))
        #expect(learner.cadence(of: heartbeat, on: home, atMost: nil, for: id(2)) == heartbeat.cadence)
        beat(.seconds(150))
        #expect(interval(2) == .seconds(150))
        #expect(interval(1) > .seconds(150))
    }

    @Test func `another flow tries where the first is gone`() {
        let keepaliveSender = KeepaliveSender(CoalescedTimers(), learner, owner: Nobody())
        learner.join(id(1), keepaliveSender)
        beat(.seconds(120))
        #expect(interval(1) == .seconds(150))
        #expect(interval(2) == .seconds(120))
        learner.leave(id(1))
        #expect(interval(2) == .seconds(150))
    }

    @Test func `a server's and a user's word hold on every network`() {
        beat(.seconds(900))
        #expect(interval(1, atMost: .seconds(54)) == .seconds(54))
        #expect(interval(1, atMost: nil) > .seconds(120))
        let fixed = Heartbeat(.crlf, interval: .seconds(90))
        #expect(learner.cadence(of: fixed, on: home, atMost: nil, for: id(2)) == fixed.cadence)
        let bounded = Heartbeat(.crlf, interval: .seconds(140), isAdaptive: true)
        #expect(learner.cadence(of: bounded, on: home, atMost: nil, for: id(3)).interval == .seconds(140))
        #expect(learner.cadence(of: bounded, on: nil, atMost: nil, for: id(4)).interval == .seconds(120))
    }

    @Test func `what was learned is told once and kept`() {
        var lessons = 0
        learner.onLesson = { lessons += 1 }
        learner.survived(.seconds(120), on: home, heartbeat.kind.figures)
        #expect(lessons == 1)
        learner.survived(.seconds(120), on: home, heartbeat.kind.figures)
        #expect(lessons == 1)
        learner.died(.init(silence: .seconds(150), sentAt: .seconds(1000), network: home), heartbeat.kind.figures)
        #expect(lessons == 2)
        let again = IntervalLearner(learner.learned)
        #expect(again.cadence(of: heartbeat, on: home, atMost: nil, for: id(1)).interval == .seconds(108))
    }

    @Test func `a heartbeat that arrived teaches how long the silence was`() async throws {
        let server = try LoopbackServer()
        let surroundings = Surroundings(.loopback())
        surroundings.network = home
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)") {
            $0.heartbeat = Heartbeat(.custom(send: Array("ping".utf8), expect: Array("pong".utf8)))
        }
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        #expect(!surroundings.intervals.text.contains("wifi"))
        // A heartbeat that follows another shows by the kernel's word that the first arrived.
        connection.keepaliveSender.beat(1)
        #expect(try peer.receive() == .bytes(4))
        connection.keepaliveSender.beat(1)
        #expect(surroundings.intervals.text.contains("0 wifi 020000000001"))
        connection.close()
    }

    @Test(arguments: [false, true])
    func `a flow that the network forgot is learned from when the next one stands`(isOfADomain: Bool) async throws {
        let server = try LoopbackServer()
        let surroundings = Surroundings(isOfADomain ? .ofADomain : .loopback())
        surroundings.pathOfAddresses = .loopback()
        surroundings.network = home
        var heartbeat = Heartbeat(.custom(send: Array("ping".utf8), expect: Array("pong".utf8)))
        heartbeat.answerDeadline = .seconds(3)
        let remote = "tcp://\(isOfADomain ? "sip.example.com:\(server.endpoint.port)" : "\(server.endpoint)")"
        let connection = try surroundings.connection(to: remote, heartbeat: heartbeat) {
            $0.stableAfter = .seconds(10)
        }
        _ = await surroundings.entered(.ready)
        let peer = try server.accept()
        connection.keepaliveSender.beat(1)
        await peer.answer(messageOf: 4, with: "pong")
        while !surroundings.intervals.text.contains("wifi"), !Task.isCancelled { await Task.yield() }
        // A silence longer than the one that was survived, and than the shortest interval there is.
        await withCheckedContinuation { done in
            _ = Timers.shared.schedule(after: .milliseconds(10_200)) { done.resume() }
        }
        try peer.loseEverything()
        connection.keepaliveSender.beat(1)
        let next = await surroundings.events.next { $0.reason == .unanswered }
        #expect(next?.status.state == (isOfADomain ? .resolving : .connecting))
        _ = await surroundings.entered(.ready)
        let line = try #require(surroundings.intervals.text.split(separator: "\n").last)
        #expect(line.hasPrefix("0 wifi 020000000001"))
        #expect(line.hasSuffix(" 0 1"), "one death")
        connection.close()
    }

    /// A server that swallows every second keepalive must not cost anybody but its own user.
    @Test func `what one user's server teaches is not another's lesson`() {
        let learners = IntervalLearners()
        let figures = heartbeat.kind.figures
        let (mallory, alice) = (learners.learner(of: 1000), learners.learner(of: 1001))
        for round in 1...4 {
            mallory.died(
                .init(silence: .seconds(60), sentAt: .seconds(1000 * round), network: home), figures)
        }
        let spoilt = mallory.cadence(of: heartbeat, on: home, atMost: nil, for: id(1)).interval
        #expect(spoilt < .seconds(120))
        #expect(alice.cadence(of: heartbeat, on: home, atMost: nil, for: id(2)).interval == .seconds(120))
        alice.survived(.seconds(130), on: home, figures)
        let again = IntervalLearners(text: learners.text)
        #expect(again.text == learners.text)
        for (user, expected) in [(UInt32(1000), spoilt), (1001, .seconds(120)), (1002, .seconds(120))] {
            let kept = again.learner(of: user).cadence(of: heartbeat, on: home, atMost: nil, for: id(3)).interval
            #expect(kept == expected, "user \(user)")
        }
    }

    @Test func `the users who learned last are remembered`() {
        let learners = IntervalLearners()
        for user in 0..<UInt32(2 * AdaptiveInterval.mostUsers) {
            learners.learner(of: user).survived(.seconds(120), on: home, heartbeat.kind.figures)
        }
        learners.learner(of: 40).died(
            .init(silence: .seconds(130), sentAt: .seconds(1000), network: home), heartbeat.kind.figures)
        let users = learners.text.split(separator: "\n").dropFirst().map { $0.prefix { $0 != " " } }
        #expect(users.count == AdaptiveInterval.mostUsers)
        #expect(users.prefix(3) == ["40", "63", "62"], "\(users)")
        // Beside the heading, a line takes fewer than a hundred bytes.
        #expect(learners.text.utf8.count < 100 * (AdaptiveInterval.mostUsers + 1))
    }
}

@AgentQueue
private final class Nobody: KeepaliveSenderOwner {
    nonisolated init() {}
    func keepaliveSender(heard word: ConnectionInput) {}
    func keepaliveSenderAnswered(on epoch: UInt64) {}
}
