// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnectionIO
internal import DialtonePlatform

/// What the agent knows and the next run of it needs: the connections and the newest events. It is told by records,
/// each of which holds entries that belong together.
package struct AgentState {
    /// What stands in a record.
    package enum Entry {
        /// Something happened to a connection.
        case event(NumberedEvent)
        /// A connection is this from now on.
        case connection(SavedConnection)
        /// What is counted of a connection, of which nothing else is new.
        case totals(ConnectionKey, SavedTotals)
        /// What is counted of the network.
        case network(SavedNetworkTotals)
        /// A connection is supervised no longer.
        case removed(ConnectionKey)
        /// A process of the agent began.
        case started
        /// It has run for long enough for whatever ends it now to have another cause than this state.
        case settled
        /// The number of the newest event, kept or not.
        case latest(UInt64)
        /// What is not kept of the events.
        case lost(EventJournal.Losses)
        /// The end of a compaction (``StateFile``): later records were appended.
        case compacted
    }

    /// The connections, in the order in which they were opened.
    package private(set) var connections = OrderedTable<ConnectionKey, SavedConnection>()
    /// The newest events, numbered without a hole but for those that ``losses`` explain.
    package private(set) var events: [NumberedEvent] = []
    /// What is not kept of the events; `nil` where an earlier version kept all of the newest.
    package private(set) var losses: EventJournal.Losses?
    /// The number of the newest event, kept or not.
    package private(set) var latest: UInt64 = 0
    /// How many processes in a row began with this state and did not last.
    private(set) var unsettledStarts = 0
    /// What is counted of the network; `nil` where nothing was.
    private(set) var network: SavedNetworkTotals?
    /// How many entries this version cannot read.
    private(set) var unreadable = 0

    private enum Field {
        static let (event, connection) = (1, 2)
        /// By name alone, as earlier versions wrote it, where a name was one user's.
        static let removedName = 3
        static let (started, settled, latest, removed, lost, totals, network, compacted) = (4, 5, 6, 7, 8, 9, 10, 11)
    }

    fileprivate enum LossField {
        static let (beginning, ofOthers, byOwner) = (1, 2, 3)
    }

    /// Nothing is known.
    package init() {}

    /// A record of these entries.
    package static func record(_ entries: [Entry]) -> [UInt8] {
        var fields = FieldWriter()
        for entry in entries {
            switch entry {
            case .event(let numbered):
                fields.put(Field.event) { inner in
                    inner.put(1, numbered.sequence)
                    inner.put(2, numbered.event.bytes)
                }
            case .connection(let connection): fields.put(Field.connection, connection.write)
            case .totals(let key, let totals):
                fields.put(Field.totals) { inner in
                    inner.put(1, key.write)
                    inner.put(2, totals.write)
                }
            case .network(let totals): fields.put(Field.network, totals.write)
            case .removed(let key): fields.put(Field.removed, key.write)
            case .started: fields.put(Field.started, 1)
            case .settled: fields.put(Field.settled, 1)
            case .latest(let sequence): fields.put(Field.latest, sequence)
            case .lost(let losses): fields.put(Field.lost, losses.write)
            case .compacted: fields.put(Field.compacted, 1)
            }
        }
        return fields.bytes
    }

    /// Takes note of a record. What this version cannot read of it is passed over and counted.
    package mutating func apply(_ record: ArraySlice<UInt8>) {
        var fields = FieldReader(record)
        do throws(DamagedState) {
            while let (field, value) = try fields.next() {
                do throws(DamagedState) { try apply(field, value) } catch { unreadable += 1 }
            }
        } catch {
            unreadable += 1
        }
    }

    /// Records are missing that told of no more than `count` events.
    mutating func skip(events count: Int) {
        latest += UInt64(count)
        forgetEvents(upTo: latest)
    }

    /// The journal goes on with these events.
    ///
    /// - Parameter latest: the number after which the next event comes.
    package func journal(upTo latest: UInt64, _ room: EventJournal.Room = .init()) -> EventJournal {
        var entries = events
        var losses = losses ?? .init(beginning: entries.first.map { $0.sequence - 1 } ?? latest)
        // Nobody knows what became of the newest.
        if max(entries.last?.sequence ?? 0, losses.seen(by: nil)) < latest {
            (entries, losses) = ([], .init(beginning: latest))
        }
        return EventJournal(
            entries, without: losses, upTo: latest,
            connections: connections.values.reduce(into: [:]) { $0[$1.owner, default: 0] += 1 }, room: room)
    }

    private mutating func forgetEvents(upTo sequence: UInt64) {
        events = []
        losses = .init(beginning: sequence)
    }

    private mutating func apply(_ field: Int, _ value: FieldReader.Value) throws(DamagedState) {
        switch field {
        case Field.event: try append(value.fields())
        case Field.connection:
            let connection = try SavedConnection(value.fields())
            connections[connection.key] = connection
        case Field.totals: try count(value.fields())
        case Field.network: network = try .init(value.fields())
        case Field.removed: connections[try ConnectionKey(value.fields())] = nil
        case Field.removedName:
            let name = try value.text()
            for key in connections.keys where key.name == name { connections[key] = nil }
        case Field.started: unsettledStarts += 1
        case Field.settled: unsettledStarts = 0
        case Field.latest: latest = max(latest, try value.count())
        case Field.lost: losses = try .init(value.fields())
        default: break
        }
    }

    private mutating func count(_ fields: FieldReader) throws(DamagedState) {
        var (fields, key, totals) = (fields, ConnectionKey?.none, SavedTotals?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case 1: key = try .init(value.fields())
            case 2: totals = try .init(value.fields())
            default: break
            }
        }
        guard let key, let totals else { throw DamagedState() }
        connections[key]?.totals = totals
    }

    private mutating func append(_ fields: FieldReader) throws(DamagedState) {
        var (fields, sequence, bytes) = (fields, UInt64?.none, [UInt8]())
        while let (field, value) = try fields.next() {
            switch field {
            case 1: sequence = try value.count()
            case 2: bytes = Array(try value.bytes())
            default: break
            }
        }
        guard let sequence, sequence > 0 else { throw DamagedState() }
        // Subscribers are told of a hole as a gap: what lies before one that nothing explains is of no use.
        if let last = events.last, last.sequence < sequence - 1, losses?.seen(by: nil) ?? 0 < sequence - 1 {
            forgetEvents(upTo: sequence - 1)
        }
        latest = max(latest, sequence)
        do throws(DamagedState) {
            let event = try SavedEvent(bytes: bytes)
            events.append(NumberedEvent(sequence: sequence, event: event))
            connections[ConnectionKey(event.name, of: event.owner)]?.flows.epoch.raise(to: event.epoch)
        } catch {
            forgetEvents(upTo: sequence)
            throw error
        }
    }
}

extension ConnectionKey {
    private enum Field {
        static let (owner, name) = (1, 2)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.owner, UInt64(owner))
        fields.put(Field.name, name)
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, owner, name) = (fields, UInt32?.none, String?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.owner: owner = try value.unsigned(as: UInt32.self)
            case Field.name: name = try value.text()
            default: break
            }
        }
        guard let owner, let name else { throw DamagedState() }
        self.init(name, of: owner)
    }
}

extension EventJournal.Losses {
    private typealias Field = AgentState.LossField

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.beginning, beginning)
        fields.put(Field.ofOthers, ofOthers)
        for (owner, sequence) in byOwner {
            fields.put(Field.byOwner) { inner in
                inner.put(1, UInt64(owner))
                inner.put(2, sequence)
            }
        }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        self.init(beginning: 0)
        var fields = fields
        while let (field, value) = try fields.next() {
            switch field {
            case Field.beginning: beginning = try value.count()
            case Field.ofOthers: ofOthers = try value.count()
            case Field.byOwner:
                var (inner, owner, sequence) = (try value.fields(), UInt32?.none, UInt64(0))
                while let (field, value) = try inner.next() {
                    if field == 1 { owner = try value.unsigned(as: UInt32.self) }
                    if field == 2 { sequence = try value.count() }
                }
                if let owner { byOwner[owner] = sequence }
            default: break
            }
        }
    }
}

extension UInt64 {
    fileprivate mutating func raise(to other: UInt64) { self = Swift.max(self, other) }
}
