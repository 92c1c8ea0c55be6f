// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import OrderedCollections
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// No state that an earlier process left, or that was damaged since, ends this one. Each case runs in a process of its
/// own, as with ``ExtremeSettingsTests``.
@Suite struct ExtremeStateTests {
    @Test func `numbers from which nothing can be counted on are damage`() async {
        await #expect(processExitsWith: .success) {
            let numbers: [UInt64] = [.max, .max - 1, 1 << 63, (1 << 53) + 1]
            for number in numbers {
                var state = AgentState()
                state.apply(Record.latest(number))
                state.apply(Record.event(number))
                state.apply(Record.event(number &+ 1))
                state.apply(Record.connection { $0.put(8, number) })
                state.apply(Record.connection { $0.put(12) { $0.put(1, number) } })
                #expect(state.unreadable >= 4, "\(number)")
                state.skip(events: 1 << 20)
                _ = Record.journal(of: state)
                #expect(DescriptorStore.number(of: "f\(number)") == nil)
            }
        }
    }

    @Test func `events without a number, or of another number than the newest, are no journal`() async {
        await #expect(processExitsWith: .success) {
            var zero = AgentState()
            for number in UInt64(0)...2 { zero.apply(Record.event(number)) }
            #expect((zero.events.map(\.sequence), zero.latest) == ([1, 2], 2))
            #expect(Record.journal(of: zero).latest == 2)
            var behind = AgentState()
            behind.apply(Record.event(5))
            behind.apply(Record.latest(9))
            #expect(behind.latest == 9)
            #expect(Record.journal(of: behind).latest == 9)
        }
    }

    @Test(arguments: seeds(2))
    func `whatever can be read of random extremes can be gone on with`(seed: UInt64) async {
        await #expect(processExitsWith: .success) { [seed] in
            var random = SplitMix64(seed: seed)
            for _ in 0..<3000 {
                var state = AgentState()
                for _ in 0...random.below(6) { state.apply(Record.random(&random)[...]) }
                if random.chance(20) { state.skip(events: random.below(1 << 30)) }
                var journal = Record.journal(of: state)
                journal.append(.sample())
                _ = journal.continuation(after: Record.pick(&random), for: random.chance(50) ? 1000 : nil)
                for event in state.events { _ = event.event.wire(sequence: event.sequence).time.description }
                for kept in state.connections.values { Record.goOn(with: kept, &random) }
            }
        }
    }
}

/// Records as a process with anything in its memory might have left them.
private enum Record {
    static func latest(_ number: UInt64) -> ArraySlice<UInt8> { record { $0.put(6, number) } }

    static func event(_ number: UInt64) -> ArraySlice<UInt8> {
        record {
            $0.put(1) {
                $0.put(1, number)
                $0.put(2, SavedEvent.sample().bytes)
            }
        }
    }

    static func connection(_ more: (inout FieldWriter) -> Void) -> ArraySlice<UInt8> {
        record {
            $0.put(2) {
                SavedConnection.sample().write(&$0)
                more(&$0)
            }
        }
    }

    private static func record(_ body: (inout FieldWriter) -> Void) -> ArraySlice<UInt8> {
        var fields = FieldWriter()
        body(&fields)
        return fields.bytes[...]
    }

    private static let numbers: [UInt64] = [
        0, 1, 2, 3, 127, 128, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, 1 << 62, 1 << 63, .max - 1, .max,
    ]

    static func pick(_ random: inout SplitMix64) -> UInt64 { numbers[random.below(numbers.count)] }

    /// Entries, connections and events whose numbers are extremes and whose fields may be missing or twice there.
    static func random(_ random: inout SplitMix64) -> [UInt8] {
        var fields = FieldWriter()
        switch random.below(5) {
        case 0: fields.put(6, pick(&random))
        case 4:
            fields.put(8) {
                $0.put(1, pick(&random))
                $0.put(2, pick(&random))
            }
        case 1:
            fields.put(1) {
                $0.put(1, pick(&random))
                var event = FieldWriter()
                event.put(1, pick(&random))
                event.put(2, "office")
                event.put(5, "state")
                for _ in 0..<random.below(12) { putAny(into: &event, &random) }
                $0.put(2, random.chance(30) ? SavedEvent.sample().bytes : event.bytes)
            }
        default:
            fields.put(2) { connection in
                if random.chance(90) { SavedConnection.sample().write(&connection) }
                for _ in 0..<random.below(6) {
                    let field = [9, 10, 12][random.below(3)]
                    if random.chance(50) {
                        putAny(into: &connection, &random)
                    } else {
                        connection.put(field) { inner in
                            for _ in 0..<random.below(8) { putAny(into: &inner, &random) }
                        }
                    }
                }
            }
        }
        if random.chance(10) { return Array(fields.bytes.dropLast(random.below(5))) }
        return fields.bytes
    }

    private static func putAny(into fields: inout FieldWriter, _ random: inout SplitMix64) {
        let field = 1 + random.below(26)
        switch random.below(4) {
        case 0: fields.put(field, ["", "data", "lost", "client", "open", "event", "closed"][random.below(7)])
        case 1: fields.put(field) { $0.put(1, pick(&random)) }
        default: fields.put(field, pick(&random))
        }
    }

    static func journal(of state: AgentState) -> EventJournal {
        state.journal(upTo: state.latest)
    }

    /// What the next process does with a connection: its policy, its flow, its wake.
    static func goOn(with kept: SavedConnection, _ random: inout SplitMix64) {
        _ = LeftOpening(given: kept.opening)
        _ = LeftAnswers(given: kept.answers)
        let now = Duration.seconds(1000)
        let policy = ConnectionPolicy(remote: .office)
        var machine = ConnectionStateMachine(policy: policy, now: now)
        if let standing = kept.flows.standing {
            _ = machine.process(.adopted(standing.adoption), now: now, using: &random)
            _ = machine.process(.redialRequested(), now: now, using: &random)
        } else {
            _ = machine.process(.reopened(epoch: kept.flows.epoch, .flowLost), now: now, using: &random)
        }
        _ = machine.process(.pathChanged(.init(status: .satisfied)), now: now, using: &random)
        _ = machine.process(.redialRequested(), now: now + .seconds(100), using: &random)
        _ = ConnectionsAPI.Connection(
            kept.name, owner: kept.owner, remote: kept.remote, machine.status, unreadBytes: nil, keepaliveInterval: nil,
            wake: kept.clients.wake, endsWithAgent: false, at: .now())
        var wakes = WakeMachine(policy: WakePolicy(), now: now)
        if let wake = kept.clients.wake { _ = wakes.process(.restored(wake), now: now, using: &random) }
        _ = wakes.process(.taken, now: now, using: &random)
        _ = wakes.process(.needed(.data, .subscribed), now: now, using: &random)
        var again = FieldWriter()
        kept.write(&again)
    }
}

extension Remote {
    fileprivate static var office: Remote {
        do {
            return try Remote("mqtt://192.0.2.7:1883")
        } catch {
            preconditionFailure("it is a remote: \(error)")
        }
    }
}
