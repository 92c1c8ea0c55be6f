// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneRelayMessages
import DialtoneVarlink
import OrderedCollections
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

extension SavedEvent {
    /// An event of this connection, told apart by its reason.
    static func sample(
        _ name: String = "office", owner: UInt32 = 1000, epoch: Int = 1, _ reason: String = "connected"
    ) -> SavedEvent {
        SavedEvent(
            ConnectionsAPI.Event(
                sequence: 0, time: .init(milliseconds: 1_700_000_000_123), kind: .state,
                connection: .init(
                    name: name, remote: "tcp://192.0.2.7:5060", epoch: epoch, state: .ready, holder: .daemon,
                    session: .open, since: .init(milliseconds: 1_700_000_000_000), attempt: 1),
                reason: reason),
            owner: owner)
    }
}

extension SavedConnection {
    static func sample(_ name: String = "office", number: UInt64? = 7) -> SavedConnection {
        var kept = SavedConnection(name: name, owner: 1000, isConfigured: false, remote: "tcp://192.0.2.7:5060")
        kept.parameters = Array(#"{"remote":"tcp://192.0.2.7:5060"}"#.utf8)
        kept.flows = SavedFlows(
            epoch: 3,
            standing: .init(
                adoption: Adoption(
                    epoch: 3, local: .of("192.0.2.1", 40_000), remote: .of("192.0.2.7", 5060),
                    isBound: true, past: .init(connectedAt: .seconds(10), since: .seconds(11), isInDoubt: true)),
                number: number))
        return kept
    }
}

extension Endpoint {
    static func of(_ text: String, _ port: UInt16) -> Endpoint {
        guard let address = IPAddress(text) else { preconditionFailure("\(text) is an address") }
        return Endpoint(address: address, port: port)
    }
}

/// What the state is written in.
@Suite struct TaggedFieldsTests {
    @Test(arguments: [0, 1, 127, 128, 300, 1 << 32, UInt64.max])
    func `numbers are read as they were written`(number: UInt64) throws {
        var fields = FieldWriter()
        fields.put(1, number)
        fields.put(2, signed: Int64(bitPattern: number))
        var reader = FieldReader(fields.bytes[...])
        let first = try #require(try reader.next())
        #expect(try (first.field, first.value.unsigned()) == (1, number))
        let second = try #require(try reader.next())
        #expect(try (second.field, second.value.signed()) == (2, Int64(bitPattern: number)))
        #expect(try reader.next() == nil)
    }

    @Test func `it is the encoding of Protocol Buffers`() {
        // The examples of its documentation, "Encoding": {1: 150}, {2: "testing"}, {3: {1: 150}}, and -2 as a sint32.
        var fields = FieldWriter()
        fields.put(1, 150)
        fields.put(2, "testing")
        fields.put(3) { $0.put(1, 150) }
        fields.put(4, signed: -2)
        #expect(
            fields.bytes == [0x08, 0x96, 0x01, 0x12, 0x07] + Array("testing".utf8)
                + [0x1a, 0x03, 0x08, 0x96, 0x01, 0x20, 0x03])
    }

    @Test(arguments: [
        [0x08], [0x08, 0x80], [0x12, 0x05, 0x61], [0x0d, 0, 0, 0, 0],
        [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ])
    func `what nobody can have written is an error`(bytes: [UInt8]) {
        var reader = FieldReader(bytes[...])
        #expect(throws: DamagedState.self) { while try reader.next() != nil {} }
    }

    @Test func `a checksum is CRC-32`() {
        // The check value that every description of it gives.
        #expect(Checksum.crc32("123456789".utf8) == 0xcbf4_3926)
    }
}

/// What the state says.
@Suite struct AgentStateTests {
    @Test func `an event is told as it was, whichever run of the agent tells it`() throws {
        let connection = ConnectionsAPI.Connection(
            name: "office", owner: 1000, remote: "wss://192.0.2.7/?token=x", epoch: 7, state: .verifying,
            reason: "a reason", cause: .verified,
            holder: .client, session: .unknown, since: .init(milliseconds: -1), localAddress: "192.0.2.1:5",
            remoteAddress: "[2001:db8::7]:5060", interface: "wlan0", avoidedInterface: "eth0",
            security: .init(
                version: "TLS 1.3", cipher: "X", assurance: .pinned, isResumed: true, applicationProtocol: "mqtt",
                certificateEndsAt: .init(milliseconds: 4), isOwnCertificate: true),
            attempt: 3, nextAttemptAt: .init(milliseconds: 5), lastProof: .init(milliseconds: 6),
            lastFailure: "refused", lastFailureCause: .refused,
            unreadBytes: 12, keepaliveInterval: .seconds(57), wake: 13, wakeFailed: true,
            endsWithAgent: true, lacksLogin: true, upSince: .init(milliseconds: 9), downSince: .init(milliseconds: 10))
        let event = ConnectionsAPI.Event(
            sequence: 99, time: .init(milliseconds: 1_700_000_000_123), kind: .taken, connection: connection,
            reason: "taken by a client", cause: .taken, previousState: .ready, previousDuration: .milliseconds(8),
            wake: .init(
                number: 13, stage: .failed, reasons: [.data, .lost], means: .thaw, attempts: 4, detail: "why",
                after: .milliseconds(5)))
        // Every field that there is says something, or the comparison below says nothing of it.
        let objects: [Any] = [connection, event, try #require(connection.security), try #require(event.wake)]
        for child in objects.flatMap({ Mirror(reflecting: $0).children }) {
            #expect("\(child.value)" != "nil", "\(child.label ?? "a field") is not written")
        }
        let kept = try SavedEvent(bytes: SavedEvent(event, owner: 1000).bytes)
        let told = kept.wire(sequence: 99)
        #expect(told == event)
        #expect(told.connection.security == connection.security)
        #expect(told.wake == event.wake)
        #expect((kept.owner, kept.name, kept.epoch) == (1000, "office", 7))
    }

    @Test func `a connection is what was written of it`() throws {
        var kept = SavedConnection.sample()
        kept.mark = 7
        kept.user = 65534
        kept.isConfigured = true
        kept.redials = false
        kept.opening = Array("[]".utf8)
        kept.answers = Array("[{}]".utf8)
        kept.processes = [
            SavedProcess(process: KnownProcess(1), stored: 12, launchedAs: nil),
            SavedProcess(process: KnownProcess(2), stored: 13, launchedAs: 4711),
        ]
        kept.clients.ended = [
            .init(epoch: 3, reader: .program(KnownProcess(2)), left: .untouched),
            .init(epoch: 4, reader: .client(KnownProcess(1)), left: .unknown),
            .init(epoch: 5, reader: .unknown, left: nil),
        ]
        (kept.clients.client, kept.clients.program) = (KnownProcess(1), KnownProcess(2))
        kept.clients.hasHadClient = true
        kept.clients.wake = StandingWake(
            number: 99, reasons: [.data, .reconnected], since: .seconds(5), attempts: 2, means: .signal,
            hasFailed: true)
        kept.flows.standing?.adoption.ownership = FlowOwnership(
            reader: .launch(.init(wake: 3, attempt: 4)), session: .unknown)
        kept.flows.standing?.adoption.lastProof = .milliseconds(1234)
        kept.flows.standing?.adoption.interface = "wlan0"
        kept.flows.standing?.adoption.handled = .max
        kept.flows.standing?.adoption.security = TLSSummary(
            version: .v13, cipher: "any", assurance: .pinned, isResumed: true, applicationProtocol: "sip/2",
            certificateEnd: .init(seconds: 2_000_000_000, isOwn: true))
        kept.flows.standing?.adoption.past = .init(
            connectedAt: .seconds(3), since: .seconds(4), upSince: .seconds(2))
        kept.flows.standing?.place = StreamCounts.Place(number: 3, mark: 9)
        kept.flows.ended = [
            .init(epoch: 2, remote: .of("2001:db8::7", 5060), number: 6, place: StreamCounts.Place(number: 4, mark: 1))
        ]
        var fields = FieldWriter()
        kept.write(&fields)
        #expect(try SavedConnection(FieldReader(fields.bytes[...])) == kept)
    }

    @Test func `what is shown of it has no byte of its settings, its opening and its answers`() {
        var kept = SavedConnection(name: "office", owner: 7, isConfigured: false, remote: "tcp://h:1")
        (kept.parameters, kept.opening) = (Array("swordfish".utf8), Array("swordfish".utf8))
        kept.answers = Array("swordfish".utf8)
        var dumped = ""
        dump(kept, to: &dumped)
        // As text, and as numbers of bytes.
        for secret in ["swordfish", "119"] {
            #expect(!dumped.contains(secret) && !"\(kept)".contains(secret), "\(dumped)")
        }
        #expect(dumped.contains("office"))
    }

    @Test func `a connection without an owner is nobody's, and not root's`() {
        var fields = FieldWriter()
        fields.put(1, "office")
        fields.put(4, "tcp://192.0.2.7:5060")
        #expect(throws: DamagedState.self) { try SavedConnection(FieldReader(fields.bytes[...])) }
    }

    private func state(_ records: [AgentState.Entry]...) -> AgentState {
        var state = AgentState()
        for record in records { state.apply(AgentState.record(record)[...]) }
        return state
    }

    @Test func `the last word on a connection holds`() {
        let state = state(
            [.connection(.sample("a")), .connection(.sample("b", number: 1))], [.connection(.sample("b", number: 2))],
            [.connection(.sample("c")), .removed(ConnectionKey("a", of: 1000))])
        #expect(state.connections.keys.map(\.name) == ["b", "c"])
        #expect(state.connections[ConnectionKey("b", of: 1000)]?.storeNumbers == [2])
    }

    @Test func `namesakes of several owners are kept apart`() {
        var others = SavedConnection.sample("office", number: 8)
        others.owner = 1001
        let both = state([.connection(.sample("office", number: 7)), .connection(others)])
        #expect(both.connections.values.map(\.storeNumbers) == [[7], [8]])
        let left = state(
            [.connection(.sample("office")), .connection(others)], [.removed(ConnectionKey("office", of: 1000))],
            [.event(.init(sequence: 5, event: .sample(epoch: 9)))])
        #expect(left.connections.keys.map(\.owner) == [1001])
        #expect(left.connections.values.map(\.flows.epoch) == [3], "another's events are not its own")
    }

    @Test func `an earlier version's word on a connection that ended holds, whoever owned it`() {
        var state = state([.connection(.sample("a")), .connection(.sample("b"))])
        var fields = FieldWriter()
        fields.put(3, "a")
        state.apply(fields.bytes[...])
        #expect(state.connections.keys.map(\.name) == ["b"])
        #expect(state.unreadable == 0)
    }

    @Test func `a flow that was spoken of is never numbered again`() {
        let state = state([.connection(.sample())], [.event(.init(sequence: 5, event: .sample(epoch: 9)))])
        #expect(state.connections[ConnectionKey("office", of: 1000)]?.flows.epoch == 9)
        #expect(state.connections[ConnectionKey("office", of: 1000)]?.flows.standing?.adoption.epoch == 3)
    }

    @Test func `events before a hole that nothing explains are of no use to anybody`() {
        let numbers: [UInt64] = [5, 6, 9, 10]
        let state = state(numbers.map { .event(.init(sequence: $0, event: .sample())) })
        #expect(state.events.map(\.sequence) == [9, 10])
        #expect(state.latest == 10)
    }

    @Test func `a hole that another user's events left costs nothing`() {
        let losses = EventJournal.Losses(beginning: 3, byOwner: [1000: 8], ofOthers: 2)
        let numbers: [UInt64] = [5, 9, 10]
        let events = numbers.map { AgentState.Entry.event(.init(sequence: $0, event: .sample())) }
        let known = state([.latest(10), .lost(losses)], events)
        #expect(known.events.map(\.sequence) == [5, 9, 10])
        #expect(known.losses == losses)
        #expect(known.journal(upTo: 10).losses == losses)
        let damaged = state([.latest(10), .lost(losses)], events, [.event(.init(sequence: 12, event: .sample()))])
        #expect(damaged.events.map(\.sequence) == [12])
        #expect(damaged.losses == .init(beginning: 11), "what nothing explains is a loss for all")
    }

    @Test func `starts count until one of them lasted`() {
        #expect(state([.started], [.started]).unsettledStarts == 2)
        #expect(state([.started], [.settled], [.started]).unsettledStarts == 1)
    }

    @Test func `what a newer version wrote is passed over, and what cannot be read costs nothing else`() {
        var fields = FieldWriter()
        fields.put(99, "of a later version")
        fields.put(2) { $0.put(1, "no owner") }
        fields.put(6, 77)
        var state = AgentState()
        state.apply(fields.bytes[...])
        #expect((state.unreadable, state.latest, state.connections.count) == (1, 77, 0))
    }
}

/// The state's file.
@Suite struct StateLogTests {
    private static let records: [[UInt8]] = [
        AgentState.record([.latest(100), .connection(.sample())]),
        AgentState.record([.event(.init(sequence: 101, event: .sample()))]),
        AgentState.record([.event(.init(sequence: 102, event: .sample())), .removed(ConnectionKey("office", of: 1000))]
        ),
    ]

    private static let file = StateLog.header(generation: 3) + records.flatMap(StateLog.frame)

    @Test func `what was written is read`() throws {
        let reading = try StateLog.read(Self.file)
        #expect(
            (reading.generation, reading.end, reading.isTorn, reading.isDamaged) == (3, Self.file.count, false, false))
        #expect(reading.state.latest == 102)
        #expect(reading.state.connections.isEmpty)
    }

    /// The process may be killed after any byte. Nobody was told of what stands in a record that is not whole.
    @Test func `cut after any byte, it says what the whole records say`() throws {
        var ends = [StateLog.headerSize]
        for record in Self.records { ends.append((ends.last ?? 0) + StateLog.frame(record).count) }
        for length in StateLog.headerSize...Self.file.count {
            let reading = try StateLog.read(Array(Self.file.prefix(length)))
            let whole = ends.last { $0 <= length } ?? 0
            #expect((reading.end, reading.isTorn, reading.isDamaged) == (whole, whole < length, false), "\(length)")
        }
        for length in 0..<StateLog.headerSize {
            #expect(throws: DamagedState.self, "\(length)") { try StateLog.read(Array(Self.file.prefix(length))) }
        }
    }

    @Test func `a record that was written in part and left its room is dropped`() throws {
        var file = Self.file
        for index in (file.count - 20)..<file.count { file[index] = 0 }
        let reading = try StateLog.read(file)
        #expect((reading.state.latest, reading.isTorn, reading.isDamaged) == (101, true, false))
    }

    @Test func `damage in the middle leaves a hole in the numbers, and no number is given out twice`() throws {
        var file = Self.file
        file[StateLog.headerSize + StateLog.frame(Self.records[0]).count + 20] ^= 1
        let reading = try StateLog.read(file)
        #expect(reading.isDamaged && reading.state.latest > 102)
        #expect(reading.state.events.isEmpty)
        #expect(reading.state.connections.count == 1)
    }

    @Test func `another version's file, or none at all, is not read`() {
        var file = Self.file
        file[8] = 2
        #expect(throws: DamagedState.self) { try StateLog.read(file) }
        #expect(throws: DamagedState.self) { try StateLog.read(Array(repeating: 0, count: 4096)) }
        #expect(throws: DamagedState.self) { try StateLog.read([]) }
    }
}
