// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

/// What a test says of sockets and processes.
struct TestFacts: ConnectionFacts {
    /// How many bytes wait on each socket.
    var unread: [UInt64: Int] = [:]
    /// What the reader of a socket has done on it; nothing, where nothing is said.
    var touches: [UInt64: Touch] = [:]
    var isWatched = false
    /// Whether processes live whose end nobody has told.
    var isAlive = true

    func unreadBytes(on epoch: UInt64) -> Int { unread[epoch] ?? 0 }
    func mayHaveUnread(_ epoch: UInt64) -> Bool { unreadBytes(on: epoch) > 0 }
    func touch(of epoch: UInt64) -> Touch { touches[epoch] ?? .untouched }
    func presence(of process: KnownProcess) -> ClientPresence { isAlive ? .alive : [] }
    func isWatched(by process: KnownProcess?) -> Bool { isWatched }
}

/// A connection to ``Endpoint/office`` with its clock, its sockets and its clients.
struct ConnectionHarness: ~Copyable {
    var connection: Connection
    var facts = TestFacts()
    var now: Duration = .seconds(1000)
    var random = FixedRandom()
    /// What was to be done when it went on after a restart of the agent.
    var effects: [ConnectionEffect] = []
    /// The launch that a test began with.
    var attempt = WakeAttempt.ID(wake: 0, attempt: 0)

    init(_ policy: ConnectionPolicy = .office, launching: Bool = false) {
        var wakes = Wakes.Settings(policy: WakePolicy(), reasons: [], isTended: launching, budget: .seconds(30))
        wakes.reasons = Set(WakeReason.allCases).subtracting([.lost])
        if launching { wakes.policy.means = [.exec] }
        connection = Connection(policy: policy, wakes: wakes, now: now)
        tell(.opened)
        tell(.pathChanged(.wifi))
    }

    /// The same, with a flow that stands.
    static func ready(_ policy: ConnectionPolicy = .office, launching: Bool = false) -> ConnectionHarness {
        var harness = ConnectionHarness(policy, launching: launching)
        harness.connect(1)
        return harness
    }

    @discardableResult
    mutating func tell(_ input: ConnectionInput, after delay: Duration = .zero) -> [ConnectionEffect] {
        now += delay
        return connection.process(input, now: now, facts: facts, using: &random)
    }

    @discardableResult
    mutating func tell(_ input: ClientInput, after delay: Duration = .zero) -> [ConnectionEffect] {
        now += delay
        return connection.process(input, now: now, facts: facts, using: &random)
    }

    /// Lets time pass up to the next deadline.
    @discardableResult
    mutating func ring() -> [ConnectionEffect] {
        now = connection.nextDeadline ?? now
        return connection.deadlinePassed(now: now, facts: facts, using: &random)
    }

    mutating func connect(_ epoch: UInt64) {
        tell(.dialSucceeded(epoch: epoch, local: .local, remote: .office))
    }

    /// Bytes come from the server.
    mutating func arrive(_ count: Int, on epoch: UInt64) {
        facts.unread[epoch, default: 0] += count
        tell(.arrived(epoch: epoch))
    }

    /// A client comes, and is given what there is for it.
    @discardableResult
    mutating func take(by process: KnownProcess? = nil) throws(TakeRefusal) -> Connection.Offer {
        var effects: [ConnectionEffect] = []
        let offer = try connection.offer(to: process, facts: facts, &effects)
        tell(.took(epoch: offer.epoch, by: offer.reader))
        return offer
    }

    /// A client logs in on the flow and sleeps.
    mutating func park(_ epoch: UInt64, by process: KnownProcess? = nil) {
        _ = try? take(by: process)
        tell(.parked(epoch: epoch, leaving: nil))
    }

    /// The parked flow ends with bytes on it, and another one stands.
    mutating func lose(_ epoch: UInt64, with bytes: Int, andConnect next: UInt64) {
        arrive(bytes, on: epoch)
        tell(.redialRequested())
        connect(next)
    }
}

extension KnownProcess {
    static let first = KnownProcess(1)
    static let second = KnownProcess(2)
}

extension [ConnectionEffect] {
    /// What is launched, and with which flow.
    var launches: [(attempt: WakeAttempt.ID, epoch: UInt64?)] {
        compactMap { if case .launch(let attempt, let offer) = $0 { (attempt.id, offer?.epoch) } else { nil } }
    }

    /// What happened to the wakes.
    var reports: [WakeReport.Kind] {
        compactMap { if case .tell(_, _, let report?) = $0 { report.kind } else { nil } }
    }
}
