// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

/// Who may read which socket.
@Suite struct OwnershipTests {
    /// A connection whose parked flow, the first, ended with three bytes on it.
    static func ended(_ change: (inout ConnectionPolicy) -> Void = { _ in }) -> ConnectionHarness {
        var policy = ConnectionPolicy.office
        change(&policy)
        var harness = ConnectionHarness.ready(policy)
        harness.park(1)
        harness.lose(1, with: 3, andConnect: 2)
        return harness
    }

    @Test func `who takes everything first and then reads gets everything`() throws {
        var harness = Self.ended()
        // Of one that cannot be watched nobody knows whether it has the descriptor: once more, and then the next.
        let epochs = [try harness.take().epoch, try harness.take().epoch, try harness.take().epoch]
        #expect(epochs == [1, 1, 2])
    }

    @Test func `a socket is not given to two at once`() throws {
        var harness = Self.ended()
        #expect(try harness.take(by: .first).epoch == 1)
        #expect(try harness.take(by: .second) == .init(epoch: 2, isOver: false, reader: .client(.second)))
        #expect(throws: TakeRefusal.heldByClient(.second)) { try harness.connection.offer(to: .first, harness.facts) }
        #expect(throws: TakeRefusal.heldByClient(.second)) { try harness.connection.offer(to: nil, harness.facts) }
    }

    @Test func `who cannot be watched has it until it parks`() throws {
        var harness = ConnectionHarness.ready()
        try harness.take()
        #expect(throws: TakeRefusal.heldByClient(nil)) { try harness.connection.offer(to: .first, harness.facts) }
        harness.tell(.parked(epoch: 1, leaving: nil))
        #expect(try harness.take(by: .first).epoch == 1)
    }

    @Test func `whoever comes after a reader that is gone gets what it did not read`() throws {
        var harness = Self.ended()
        try harness.take(by: .first)
        #expect(harness.connection.ownership.reader(of: 1) == .client(.first))
        harness.tell(.processEnded(.first, .unseen))
        #expect(harness.connection.ownership.isWaiting)
        #expect(try harness.take(by: .second).epoch == 1)
    }

    @Test(arguments: [true, false])
    func `the rest of what one began to read is of use where the policy says so`(isKept: Bool) throws {
        var harness = Self.ended { $0.keepsAbandonedFlow = isKept }
        try harness.take(by: .first)
        harness.facts.touches[1] = .touched
        let effects = harness.tell(.processEnded(.first, .unseen))
        #expect(effects.contains(.rest(epoch: 1)) == isKept)
        #expect(effects.contains(.letGo(epoch: 1, aborting: false)) == !isKept)
        #expect(try harness.take(by: .second).isOver == isKept)
    }

    @Test func `who parks it had it though nothing is left on it`() throws {
        var harness = Self.ended()
        try harness.take()
        #expect(harness.connection.parkRefusal(of: 1) == .staleEpoch(current: 2))
        #expect(harness.tell(.parked(epoch: 1, leaving: nil)).contains(.letGo(epoch: 1, aborting: false)))
        #expect(try harness.take().epoch == 2)
    }

    /// An expired token: the client looks at the refusal, and leaves the next token with it.
    @Test func `who took a refusal that has ended leaves another opening with it`() throws {
        func opening(_ word: UInt8) -> Opening {
            Opening([.init(send: [word], answer: ExpectedAnswer(BytePattern([2])))])
        }
        var policy = ConnectionPolicy.office
        policy.opening = opening(1)
        var harness = ConnectionHarness.ready(policy)
        harness.facts.unread[1] = 3
        harness.tell(.openingFailed(epoch: 1, .init(step: 1, cause: .mismatch)))
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.connection.status.state == .failed)
        #expect(harness.connection.parkRefusal(of: 1, leavesOpening: true) != nil, "nobody has taken it")
        #expect(try harness.take(by: .first).isOver)
        #expect(harness.connection.parkRefusal(of: 1) != nil)
        #expect(harness.connection.parkRefusal(of: 1, leavesOpening: true) == nil)
        harness.tell(.parked(epoch: 1, leaving: opening(9)))
        #expect(harness.connection.status.state == .connecting)
        harness.connect(2)
        #expect(harness.connection.line.opening == opening(9))
    }

    @Test(arguments: [Touch.untouched, .touched])
    func `what ends before its reader shows that it has it is given again`(touch: Touch) throws {
        var harness = ConnectionHarness.ready()
        try harness.take(by: .first)
        (harness.facts.touches[1], harness.facts.unread[1]) = (touch, 3)
        harness.tell(.remoteClosed(epoch: 1))
        harness.tell(.redialRequested())
        harness.connect(2)
        #expect(try harness.take(by: .first).epoch == (touch == .untouched ? 1 : 2))
        #expect(try harness.take(by: .first).epoch == 2, "not for ever")
    }

    /// A client has a flow with unread bytes, and another flow took its place.
    private static func replaced() throws -> ConnectionHarness {
        var harness = ConnectionHarness.ready()
        try harness.take(by: .first)
        harness.facts.unread[1] = 3
        harness.tell(.pathChanged(.modem))
        harness.connect(2)
        #expect(harness.connection.ownership.reader(of: 1) == .client(.first))
        return harness
    }

    @Test func `what another flow took the place of comes before that one`() throws {
        var harness = try Self.replaced()
        #expect(try harness.take(by: .first).epoch == 1)
        #expect(try harness.take(by: .first).epoch == 2, "not for ever")
    }

    @Test func `what somebody unknown took is the next one's as if nobody had it`() throws {
        var harness = Self.ended()
        try harness.take()
        for _ in 0..<2 { #expect(try harness.take(by: .first).epoch == 1) }
        #expect(try harness.take(by: .first).epoch == 2)
    }

    @Test func `who acknowledges has what it took, and nobody else`() throws {
        var harness = Self.ended()
        let wake = try #require(harness.connection.wakes.standing?.number)
        try harness.take(by: .first)
        var other = Self.ended()
        try other.take(by: .first)
        #expect(!other.tell(.acknowledged(wake: wake, by: .second)).contains(.letGo(epoch: 1, aborting: false)))
        #expect(harness.tell(.acknowledged(wake: wake, by: .first)).contains(.letGo(epoch: 1, aborting: false)))
        #expect(try harness.take(by: .first).epoch == 2)
    }

    @Test(arguments: [KnownProcess.first, .second])
    func `a program that is only begun has nothing yet, whoever acknowledges`(process: KnownProcess) throws {
        var harness = try Self.launching()
        let wake = try #require(harness.connection.wakes.standing?.number)
        harness.tell(.launchBegan(harness.attempt, .second))
        harness.tell(.remoteClosed(epoch: 1))
        let effects = harness.tell(.acknowledged(wake: wake, by: process))
        #expect(!effects.contains(.letGo(epoch: 1, aborting: false)), "\(effects)")
        harness.tell(.launchFailed(harness.attempt, .second))
        #expect(try harness.take(by: .first).epoch == 1)
    }

    @Test func `of refusals the last is kept until a flow stands`() throws {
        var harness = ConnectionHarness()
        for epoch: UInt64 in 1...2 {
            harness.connect(epoch)
            harness.arrive(3, on: epoch)
            harness.tell(.remoteClosed(epoch: epoch))
            if epoch == 1 { harness.tell(.redialRequested()) }
        }
        #expect(harness.connection.ownership.endedEpochs == [2])
        harness.tell(.redialRequested())
        harness.connect(3)
        #expect(harness.connection.ownership.endedEpochs == [])
    }

    @Test func `who has taken a refusal reads on where a flow stands again`() throws {
        var harness = ConnectionHarness.ready()
        harness.arrive(3, on: 1)
        harness.tell(.remoteClosed(epoch: 1))
        #expect(try harness.take(by: .first).epoch == 1)
        harness.tell(.redialRequested())
        harness.connect(2)
        #expect(harness.connection.ownership.reader(of: 1) == .client(.first))
    }

    @Test func `eight are kept and what somebody has makes room first`() throws {
        var harness = ConnectionHarness.ready()
        for epoch: UInt64 in 1...8 {
            harness.tell(.took(epoch: epoch, by: .client(.first)))
            harness.tell(.parked(epoch: epoch, leaving: nil))
            harness.lose(epoch, with: 1, andConnect: epoch + 1)
            if epoch == 1 { try harness.take(by: .second) }
        }
        #expect(harness.connection.ownership.endedEpochs == Array(1...8))
        harness.tell(.remoteClosed(epoch: 9))
        #expect(harness.connection.ownership.endedEpochs == Array(1...8), "a new flow has nothing to be read")
        harness.tell(.redialRequested())
        harness.connect(10)
        harness.tell(.took(epoch: 10, by: .client(.first)))
        harness.tell(.parked(epoch: 10, leaving: nil))
        harness.arrive(1, on: 10)
        let effects = harness.tell(.remoteClosed(epoch: 10))
        #expect(effects.contains(.letGo(epoch: 1, aborting: false)))
        #expect(harness.connection.ownership.endedEpochs == Array(2...8) + [10])
    }

    /// A wake was given up with three bytes there.
    @Test(arguments: [(3, 1), (10, 2)] as [(Int, UInt64)])
    func `what comes right before the end begins another wake after one that was given up`(unread: Int, wake: UInt64) {
        var harness = ConnectionHarness.ready()
        harness.connection.wakes.settings.reasons = [.data]
        harness.park(1, by: .first)
        harness.arrive(3, on: 1)
        while harness.connection.wakes.standing?.hasFailed == false { harness.ring() }
        #expect(harness.connection.wakes.standing?.number == 1)
        harness.facts.unread[1] = unread
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.connection.ownership.isWaiting)
        #expect(harness.connection.wakes.standing?.number == wake)
    }

    @Test func `what comes on a flow is not compared with what the one before had`() {
        var policy = ConnectionPolicy.office
        policy.opening = Opening([.init(send: [1], answer: ExpectedAnswer(.delimiter([10])))])
        var harness = ConnectionHarness.ready(policy)
        harness.tell(.sessionOpened(epoch: 1))
        harness.connection.wakes.settings.reasons = [.data]
        harness.park(1, by: .first)
        harness.arrive(10, on: 1)
        while harness.connection.wakes.standing?.hasFailed == false { harness.ring() }
        harness.tell(.redialRequested())
        harness.connect(2)
        harness.tell(.sessionOpened(epoch: 2))
        #expect(harness.connection.wakes.standing?.number == 1)
        harness.facts.unread[2] = 5
        harness.tell(.remoteClosed(epoch: 2))
        #expect(harness.connection.ownership.endedEpochs == [1, 2])
        #expect(harness.connection.wakes.standing?.number == 2)
    }

    /// Another wake for them was to begin later.
    @Test func `bytes that are kept are heard of after a restart too`() {
        var harness = ConnectionHarness.ready()
        harness.connection.wakes.settings.reasons = [.data]
        harness.park(1, by: .first)
        harness.arrive(3, on: 1)
        while harness.connection.wakes.standing?.hasFailed == false { harness.ring() }
        harness.facts.unread[1] = 5
        harness.tell(.bytesCame)
        while harness.connection.wakes.standing?.hasFailed == false { harness.ring() }
        harness.facts.unread[1] = 10
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.connection.wakes.standing?.number == 2)
        var next = Self.restarted(harness)
        let number = next.connection.wakes.standing?.number ?? 0
        #expect(next.connection.wakes.standing?.hasFailed == true)
        next.now += harness.connection.wakes.settings.policy.pauses.ceiling
        next.ring()
        #expect(next.connection.wakes.standing?.number == number + 1)
    }

    /// Else its end is told to nobody, and what it left is its own for ever.
    @Test func `who has a flow that another one took the place of is watched`() throws {
        var harness = try Self.replaced()
        harness.arrive(3, on: 2)
        harness.tell(.remoteClosed(epoch: 2))
        #expect(try harness.take(by: .second).epoch == 2)
        #expect(harness.connection.processes == [.first, .second])
    }

    // MARK: - Programs

    /// A connection whose program is being launched with the flow.
    static func launching() throws -> ConnectionHarness {
        var harness = ConnectionHarness.ready(launching: true)
        harness.facts.unread[1] = 5
        let launches = harness.tell(.arrived(epoch: 1)).launches
        #expect(launches.map(\.epoch) == [1])
        harness.attempt = try #require(launches.first).attempt
        return harness
    }

    @Test func `a program that never ran leaves it for the next`() throws {
        var harness = try Self.launching()
        #expect(harness.connection.reader == .launch(harness.attempt))
        #expect(throws: TakeRefusal.heldByClient(nil)) { try harness.connection.offer(to: .first, harness.facts) }
        harness.tell(.launchFailed(harness.attempt, nil))
        #expect(harness.connection.reader == nil)
        #expect(harness.connection.status.ownership == FlowOwnership(reader: nil, session: .unknown))
        #expect(try harness.take(by: .first).epoch == 1)
    }

    @Test(arguments: [true, false])
    func `a flow that ends while a program is being launched with it is there whether it runs or not`(runs: Bool) throws
    {
        var harness = try Self.launching()
        let effects = harness.tell(.remoteClosed(epoch: 1))
        #expect(effects.contains(.retire(epoch: 1, survivesAgent: true, isHeld: true)))
        #expect(throws: TakeRefusal.self) { try harness.connection.offer(to: .second, harness.facts) }
        if runs {
            harness.tell(.launched(harness.attempt, .first))
            #expect(harness.connection.ownership.reader(of: 1) == .program(.first))
        } else {
            #expect(harness.tell(.launchFailed(harness.attempt, nil)).contains(.rest(epoch: 1)))
            #expect(try harness.take(by: .second).epoch == 1)
        }
    }

    @Test func `a client that died in the moment in which its flow ended leaves what it did not read`() throws {
        var harness = ConnectionHarness.ready()
        try harness.take(by: .first)
        harness.facts.unread[1] = 5
        harness.facts.isAlive = false
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.connection.ownership.reader(of: 1) == .client(.first))
        #expect(harness.tell(.processEnded(.first, .unseen)).contains(.rest(epoch: 1)))
        #expect(harness.connection.wakes.standing?.reasons == [.clientDied])
        #expect(try harness.take(by: .second).epoch == 1)
    }

    @Test func `nobody is reminded of a refusal`() throws {
        var harness = ConnectionHarness.ready()
        try harness.take(by: .first)
        harness.tell(.processEnded(.first, .unseen))
        harness.connect(2)
        harness.arrive(3, on: 2)
        harness.tell(.remoteClosed(epoch: 2))
        #expect(harness.connection.ownership.endedEpochs == [2])
        let wake = try #require(harness.connection.wakes.standing?.number)
        harness.tell(.acknowledged(wake: wake))
        #expect(harness.connection.wakes.review == nil)
    }

    @Test func `the program that has it takes it again and nobody else`() throws {
        var harness = try Self.launching()
        harness.tell(.launched(harness.attempt, .first))
        #expect(harness.connection.wakes.standing == nil, "who has the flow sees to it")
        #expect(throws: TakeRefusal.heldByClient(.first)) { try harness.connection.offer(to: .second, harness.facts) }
        #expect(try harness.take(by: .first).reader == .program(.first))
    }

    @Test(arguments: [
        (ProgramEnd.exited(status: 0), Touch.touched, FlowOwnership?.some(.parked)),
        (.exited(status: 1), .touched, nil), (.unseen, .touched, nil),
        (.killed(signal: 9), .untouched, FlowOwnership(reader: nil, session: .unknown)),
    ])
    func `how a program ends says what becomes of its flow`(end: ProgramEnd, touch: Touch, ownership: FlowOwnership?)
        throws
    {
        var harness = try Self.launching()
        harness.tell(.launched(harness.attempt, .first))
        harness.facts.touches[1] = touch
        harness.facts.unread[1] = 0
        harness.tell(.processEnded(.first, end))
        #expect(harness.connection.status.ownership == ownership)
        #expect(harness.connection.reader == nil)
    }

    @Test func `no program is launched beside one that is on its way`() throws {
        var harness = try Self.launching()
        let next = harness.untilLaunched()
        #expect(next?.attempt == nil, "the wake is given up before")
        harness.tell(.launched(harness.attempt, .first))
        #expect(harness.connection.reader == .program(.first))
        harness.tell(.processEnded(.first, .exited(status: 0)))
        #expect(harness.connection.status.ownership == .parked)
    }

    @Test func `a launch that fails late is followed by another`() throws {
        var harness = try Self.launching()
        // The time in which it was to begin is over, and the pause until the next one would be launched.
        for _ in 0..<2 {
            let deadline = harness.connection.wakes.machineDeadline
            while harness.connection.wakes.machineDeadline == deadline { #expect(harness.ring().launches.isEmpty) }
        }
        harness.tell(.launchFailed(harness.attempt, nil))
        let launches = harness.tell(.attempted(harness.attempt, .failed("it took too long"))).launches
        #expect(launches.map(\.epoch) == [1])
    }

    @Test func `a launch that fails after the end of a connection wakes for what it left`() throws {
        var harness = try Self.launching()
        var policy = harness.connection.policy
        policy.redials = false
        harness.tell(.policyChanged(policy))
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.connection.status.state == .closed)
        harness.tell(.launchFailed(harness.attempt, nil))
        harness.tell(.attempted(harness.attempt, .failed("no memory")))
        let next = harness.untilLaunched()
        #expect(next?.epoch == 1)
    }
}

extension ConnectionHarness {
    /// Lets time pass until a program is launched; `nil` when the wake is given up before.
    mutating func untilLaunched() -> (attempt: WakeAttempt.ID, epoch: UInt64?)? {
        while connection.wakes.standing?.hasFailed == false, connection.nextDeadline != nil {
            if let launch = ring().launches.first { return launch }
        }
        return nil
    }
}

extension Connection {
    /// What a client would be given, with nothing else done.
    fileprivate mutating func offer(to process: KnownProcess?, _ facts: TestFacts) throws(TakeRefusal) -> Offer {
        var effects: [ConnectionEffect] = []
        return try offer(to: process, facts: facts, &effects)
    }
}
