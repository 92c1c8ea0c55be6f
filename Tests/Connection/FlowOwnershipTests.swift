// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

/// Who has a flow, and what follows from it.
@Suite struct FlowOwnershipTests {
    private static let session = ConnectionPolicy(remote: .of("mqtt://192.0.2.7"))

    private static func isOpening(_ action: ConnectionAction) -> Bool {
        if case .openSocket = action { true } else { false }
    }

    @Test func `a parked flow is kept alive and a taken one is not`() {
        var harness = Harness.ready(Self.session)
        let heartbeat = Self.session.heartbeat
        #expect(heartbeat?.kind == .mqtt)
        #expect(
            harness.tell(.taken(epoch: 1, by: .unknown)).prefix(2) == [
                .watchInput(epoch: 1, false), .keepAlive(epoch: 1, nil),
            ])
        #expect(harness.status.ownership == FlowOwnership(reader: .unknown, session: .unknown))
        #expect(
            harness.tell(.parked(epoch: 1)).prefix(2) == [
                .watchInput(epoch: 1, true), .keepAlive(epoch: 1, heartbeat),
            ])
        #expect(harness.status.ownership == .parked)
        // A session that stands is one that still stands when its client reads.
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(harness.status.ownership == FlowOwnership(reader: .unknown, session: .open))
    }

    @Test(arguments: FlowOwnership.Holder.allCases, FlowOwnership.Session.allCases)
    func `a keepalive is sent in the agent's hands and some on a session alone`(
        holder: FlowOwnership.Holder, session: FlowOwnership.Session
    ) {
        let ownership = FlowOwnership(reader: holder == .client ? .unknown : nil, session: session)
        let isTheAgents = holder == .daemon && session != .opening
        #expect(ownership.permits(.crlf) == isTheAgents)
        #expect(ownership.permits(.mqtt) == (isTheAgents && session == .open))
    }

    private static let ofServer = [CloseReason.remoteClosed: UnreadRest.keptAsRefusal, .timedOut: .keptAsRefusal]

    /// What becomes of bytes that nobody has read, and after which ends of their flow it is something else.
    private static let rests: [(FlowOwnership.Holder, FlowOwnership.Session, UnreadRest, [CloseReason: UnreadRest])] = [
        (.daemon, .none, .dropped, ofServer), (.daemon, .opening, .dropped, ofServer),
        (.daemon, .open, .kept, [:]), (.daemon, .unknown, .kept, [:]),
        (.client, .none, .delivered, [.replaced: .lingering]), (.client, .opening, .delivered, [.replaced: .lingering]),
        (.client, .open, .delivered, [.replaced: .lingering]), (.client, .unknown, .delivered, [.replaced: .lingering]),
    ]

    @Test(arguments: rests)
    func `what becomes of unread bytes goes by the hands they are in and by the end`(
        holder: FlowOwnership.Holder, session: FlowOwnership.Session, rest: UnreadRest,
        others: [CloseReason: UnreadRest]
    ) {
        let ownership = FlowOwnership(reader: holder == .client ? .unknown : nil, session: session)
        for reason in CloseReason.allCases {
            // Of what the user ends nothing is left.
            let expected = reason == .closeRequested ? .dropped : others[reason] ?? rest
            #expect(ownership.rest(after: reason) == expected, "\(reason)")
        }
    }

    @Test func `who never came to read leaves no session`() {
        var harness = Harness.ready(Self.session)
        harness.tell(.taken(epoch: 1, by: .unknown))
        let actions = harness.tell(.returned(epoch: 1))
        #expect(actions.first == .watchInput(epoch: 1, true))
        #expect(harness.status.ownership == FlowOwnership(reader: nil, session: .unknown))
        #expect(harness.tell(.returned(epoch: 1)) == [])
        // One that stood still stands.
        harness.tell(
            all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .taken(epoch: 1, by: .unknown), .returned(epoch: 1))
        #expect(harness.status.ownership == .parked)
    }

    @Test func `an answer that the client may read is not awaited`() {
        var harness = Harness.ready(Self.session)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .probeSent(epoch: 1))
        #expect(harness.tell(.taken(epoch: 1, by: .unknown)).contains(.cancelTimer(.proof)))
    }

    @Test(arguments: [
        ConnectionInput.taken(epoch: 2, by: .unknown), .parked(epoch: 2),
        .abandoned(epoch: 2, isUntouched: false, isAlone: true),
        .arrived(epoch: 2),
    ])
    func `another epoch is no news`(input: ConnectionInput) {
        var harness = Harness.ready()
        #expect(harness.tell(input) == [])
    }

    @Test func `bytes are told once`() {
        var harness = Harness.ready()
        #expect(harness.tell(.arrived(epoch: 1)) == [harness.event(.arrived, from: .ready, because: .arrived)])
        #expect(harness.tell(.arrived(epoch: 1)) == [])
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1))
        #expect(harness.tell(.arrived(epoch: 1)).count == 1)
    }

    @Test func `what came is not left behind for a better path`() {
        var harness = Harness.ready()
        harness.tell(.arrived(epoch: 1))
        #expect(!harness.tell(.pathChanged(.modem)).contains(where: Self.isOpening))
        // As soon as the client reads, it may move.
        #expect(harness.tell(.taken(epoch: 1, by: .unknown)).contains(where: Self.isOpening))
    }

    @Test func `what comes in the middle of a move ends it`() {
        var harness = Harness.ready()
        harness.tell(.pathChanged(.modem))
        #expect(harness.tell(.arrived(epoch: 1)).contains(.closeSocket(epoch: 2, .superseded, .dropped)))
        #expect(harness.status.epoch == 1)
    }

    @Test func `a flow whose client is gone is made anew and no failure is counted`() {
        var harness = Harness.ready()
        harness.tell(.taken(epoch: 1, by: .unknown))
        let actions = harness.tell(.abandoned(epoch: 1, isUntouched: false, isAlone: true))
        #expect(actions.first == .closeSocket(epoch: 1, .abandoned, .delivered))
        #expect(actions.contains(where: Self.isOpening))
        #expect(harness.status.attempt == 1)
        #expect(harness.status.reason == .clientGone)
        // It parked, and may go.
        harness.tell(all: .dialSucceeded(epoch: 2, local: .local, remote: .office), .taken(epoch: 2, by: .unknown))
        harness.tell(.parked(epoch: 2))
        #expect(harness.tell(.abandoned(epoch: 2, isUntouched: false, isAlone: true)) == [])
    }

    @Test func `an adopted flow is supervised as if it had been dialled`() {
        var harness = Harness()
        let actions = harness.tell(.adopted(Adoption(epoch: 7, local: .local, remote: .office)))
        #expect(actions.first == .observePath(harness.machine.policy.target))
        #expect(harness.status.epoch == 7)
        #expect(harness.status.ownership == .parked)
        harness.tell(.pathChanged(.wifi))
        #expect(harness.status.epoch == 7)
        harness.tell(all: .remoteClosed(epoch: 7), .redialRequested())
        // No number comes twice.
        #expect(harness.status.epoch == 8)
    }

    /// Over a restart of the agent, since its keys are elsewhere.
    @Test func `what the agent secured is kept alive in its protocol and keeps its summary`() {
        var harness = Harness(ConnectionPolicy(remote: .of("mqtts://192.0.2.7")))
        let end = TLSSummary.CertificateEnd(seconds: 2_000_000_000, isOwn: false)
        let security = TLSSummary(
            version: .v13, cipher: "any", assurance: .verified, isResumed: false, certificateEnd: end)
        let adoption = Adoption(
            local: .local, remote: .office, ownership: FlowOwnership(reader: nil, session: .open),
            security: security, past: .init(connectedAt: harness.now, since: harness.now))
        let adopted = harness.tell(.adopted(adoption))
        let heartbeats = adopted.compactMap { if case .keepAlive(1, let heartbeat) = $0 { heartbeat } else { nil } }
        #expect(heartbeats.map(\.kind) == [.mqtt], "\(adopted)")
        #expect(harness.status.security == security)
        #expect(harness.machine.adoption?.security == security)
        let told = harness.tell(.certificateEnds(epoch: 1)).compactMap {
            if case .emit(let event) = $0 { event.reason } else { nil }
        }
        #expect(told == [.certificateEnds(end)])
        #expect(harness.tell(.certificateEnds(epoch: 2)) == [])
    }

    @Test func `what its client secured itself is kept alive by the kernel alone`() {
        var policy = ConnectionPolicy(remote: .of("mqtts://192.0.2.7"))
        var harness = Harness(policy)
        func heartbeats(_ actions: [ConnectionAction]) -> [Heartbeat?] {
            actions.compactMap { action -> Heartbeat?? in
                if case .keepAlive(_, let heartbeat) = action { .some(heartbeat) } else { nil }
            }
        }
        let adopted = harness.tell(.adopted(Adoption(local: .local, remote: .office)))
        #expect(harness.status.ownership == .parked)
        #expect(heartbeats(adopted).allSatisfy { $0 == nil })
        #expect(adopted.contains(.configureSocket(epoch: 1, policy.socketOptions)))
        #expect(policy.socketOptions.keepalive != nil)
        for input in [ConnectionInput.taken(epoch: 1, by: .unknown), .parked(epoch: 1)] {
            #expect(heartbeats(harness.tell(input)).allSatisfy { $0 == nil })
        }
        policy.heartbeat = Heartbeat(.mqtt, interval: .seconds(30))
        #expect(heartbeats(harness.tell(.policyChanged(policy))) == [nil])
        // What the agent dials, it secures, and has something to say on.
        harness.tell(all: .remoteClosed(epoch: 1), .redialRequested(), .pathChanged(.wifi))
        harness.tell(.dialSucceeded(epoch: harness.status.epoch, local: .local, remote: .office))
        harness.tell(.taken(epoch: harness.status.epoch, by: .unknown))
        #expect(heartbeats(harness.tell(.parked(epoch: harness.status.epoch))) == [policy.heartbeat])
    }
}
