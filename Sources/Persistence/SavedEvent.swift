// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import Platform

/// An event as the journal and the state have it: the bytes that say what subscribers are told. An event of an earlier
/// run of the agent is therefore told as it was then.
package struct SavedEvent: Hashable {
    /// Whose connection it is about.
    package let owner: UInt32
    /// The connection's name.
    package let name: String
    /// The number of the flow that it speaks of.
    package let epoch: UInt64
    /// All of it, in numbered fields.
    package let bytes: [UInt8]

    fileprivate enum Field {
        static let owner = 1
        static let name = 2
        static let remote = 3
        static let time = 4
        static let kind = 5
        static let reason = 6
        static let previousState = 7
        static let previousDuration = 8
        static let epoch = 9
        static let state = 10
        static let stateReason = 11
        static let holder = 12
        static let session = 13
        static let since = 14
        static let localAddress = 15
        static let remoteAddress = 16
        static let interface = 17
        static let attempt = 18
        static let nextAttempt = 19
        static let lastProof = 20
        static let security = 21
        static let unreadBytes = 22
        static let wake = 23
        static let wakeReport = 24
        static let wakeFailed = 25
        static let endsWithAgent = 26
        static let lastFailure = 27
        static let avoidedInterface = 28
    }

    /// An event as subscribers are told of it, whatever its number.
    package init(_ event: ConnectionsAPI.Event, owner: UInt32) {
        let connection = event.connection
        var fields = FieldWriter()
        fields.put(Field.owner, UInt64(owner))
        fields.put(Field.name, connection.name)
        fields.put(Field.remote, connection.remote)
        fields.put(Field.time, signed: event.time.milliseconds)
        fields.put(Field.kind, event.kind.rawValue)
        fields.put(Field.reason, event.reason)
        fields.put(Field.previousState, event.previousState?.rawValue)
        if let duration = event.previousDurationMilliseconds {
            fields.put(Field.previousDuration, signed: Int64(duration))
        }
        fields.put(Field.epoch, UInt64(connection.epoch))
        fields.put(Field.state, connection.state.rawValue)
        fields.put(Field.stateReason, connection.reason)
        fields.put(Field.holder, connection.holder.rawValue)
        fields.put(Field.session, connection.session.rawValue)
        fields.put(Field.since, signed: connection.since.milliseconds)
        fields.put(Field.localAddress, connection.localAddress)
        fields.put(Field.remoteAddress, connection.remoteAddress)
        fields.put(Field.interface, connection.interface)
        fields.put(Field.avoidedInterface, connection.avoidedInterface)
        fields.put(Field.attempt, UInt64(connection.attempt))
        if let next = connection.nextAttemptAt { fields.put(Field.nextAttempt, signed: next.milliseconds) }
        if let proof = connection.lastProof { fields.put(Field.lastProof, signed: proof.milliseconds) }
        fields.put(Field.lastFailure, connection.lastFailure)
        if let security = connection.security { fields.put(Field.security, security.write) }
        if let unread = connection.unreadBytes { fields.put(Field.unreadBytes, UInt64(unread)) }
        if let wake = connection.wake { fields.put(Field.wake, UInt64(wake)) }
        if let wakeFailed = connection.wakeFailed { fields.put(Field.wakeFailed, wakeFailed ? 1 : 0) }
        if let endsWithAgent = connection.endsWithAgent { fields.put(Field.endsWithAgent, endsWithAgent ? 1 : 0) }
        if let report = event.wake { fields.put(Field.wakeReport, report.write) }
        self.owner = owner
        name = connection.name
        epoch = UInt64(connection.epoch)
        bytes = fields.bytes
    }

    /// An event that was kept.
    ///
    /// - Throws: where this version cannot tell it to anybody.
    package init(bytes: [UInt8]) throws(DamagedState) {
        let (owner, event) = try Self.read(bytes[...])
        self.owner = owner
        self.bytes = bytes
        name = event.connection.name
        epoch = UInt64(event.connection.epoch)
    }

    /// As subscribers are told of it.
    package func wire(sequence: UInt64) -> ConnectionsAPI.Event {
        guard var (_, event) = try? Self.read(bytes[...]) else {
            // Read once when it was kept, or written by this process.
            preconditionFailure("an event was kept that cannot be read")
        }
        event.sequence = Int(clamping: sequence)
        return event
    }

    private static func read(_ bytes: ArraySlice<UInt8>) throws(DamagedState) -> (UInt32, ConnectionsAPI.Event) {
        var owner: UInt32?
        var connection = ConnectionsAPI.Connection(
            name: "", remote: "", epoch: 0, state: .waiting, holder: .daemon, session: .none,
            since: .init(milliseconds: 0), attempt: 0)
        var event = ConnectionsAPI.Event(
            sequence: 0, time: .init(milliseconds: 0), kind: .init(rawValue: ""), connection: connection)
        var fields = FieldReader(bytes)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.owner: owner = try value.unsigned(as: UInt32.self)
            case Field.time: event.time = .init(milliseconds: try value.signed())
            case Field.kind: event.kind = .init(rawValue: try value.text())
            case Field.reason: event.reason = try value.text()
            case Field.previousState: event.previousState = try value.choice()
            case Field.previousDuration: event.previousDurationMilliseconds = Int(try value.signed())
            case Field.wakeReport: event.wake = try .init(value.fields())
            default: try connection.read(field, value)
            }
        }
        guard let owner, !connection.name.isEmpty, !event.kind.rawValue.isEmpty else { throw DamagedState() }
        connection.owner = Int(owner)
        event.connection = connection
        return (owner, event)
    }
}

extension ConnectionsAPI.Connection {
    private typealias Field = SavedEvent.Field

    fileprivate mutating func read(_ field: Int, _ value: FieldReader.Value) throws(DamagedState) {
        switch field {
        case Field.name: name = try value.text()
        case Field.remote: remote = try value.text()
        case Field.epoch: epoch = Int(clamping: try value.count())
        case Field.state: state = try value.choice()
        case Field.stateReason: reason = try value.text()
        case Field.holder: holder = try value.choice()
        case Field.session: session = try value.choice()
        case Field.since: since = .init(milliseconds: try value.signed())
        case Field.localAddress: localAddress = try value.text()
        case Field.remoteAddress: remoteAddress = try value.text()
        case Field.interface: interface = try value.text()
        case Field.avoidedInterface: avoidedInterface = try value.text()
        case Field.attempt: attempt = Int(clamping: try value.unsigned())
        case Field.nextAttempt: nextAttemptAt = .init(milliseconds: try value.signed())
        case Field.lastProof: lastProof = .init(milliseconds: try value.signed())
        case Field.lastFailure: lastFailure = try value.text()
        case Field.security: security = try .init(value.fields())
        case Field.unreadBytes: unreadBytes = Int(clamping: try value.unsigned())
        case Field.wake: wake = Int(clamping: try value.unsigned())
        case Field.wakeFailed: wakeFailed = try value.unsigned() != 0
        case Field.endsWithAgent: endsWithAgent = try value.unsigned() != 0
        default: break
        }
    }
}

extension ConnectionsAPI.Security {
    private enum Field {
        static let version = 1
        static let cipher = 2
        static let assurance = 3
        static let isResumed = 4
        static let applicationProtocol = 5
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.version, version)
        fields.put(Field.cipher, cipher)
        fields.put(Field.assurance, assurance.rawValue)
        fields.put(Field.isResumed, isResumed ? 1 : 0)
        fields.put(Field.applicationProtocol, applicationProtocol)
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        self.init(version: "", cipher: "", assurance: .unverified, isResumed: false)
        var fields = fields
        while let (field, value) = try fields.next() {
            switch field {
            case Field.version: version = try value.text()
            case Field.cipher: cipher = try value.text()
            case Field.assurance: assurance = try value.choice()
            case Field.isResumed: isResumed = try value.unsigned() != 0
            case Field.applicationProtocol: applicationProtocol = try value.text()
            default: break
            }
        }
    }
}

extension ConnectionsAPI.Wake {
    private enum Field {
        static let number = 1
        static let stage = 2
        static let reason = 3
        static let means = 4
        static let attempts = 5
        static let detail = 6
        static let after = 7
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.number, UInt64(number))
        fields.put(Field.stage, stage.rawValue)
        for reason in reasons { fields.put(Field.reason, reason.rawValue) }
        fields.put(Field.means, means?.rawValue)
        fields.put(Field.attempts, UInt64(attempts))
        fields.put(Field.detail, detail)
        if let afterMilliseconds { fields.put(Field.after, signed: Int64(afterMilliseconds)) }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        self.init(number: 0, stage: .began, reasons: [], attempts: 0)
        var fields = fields
        while let (field, value) = try fields.next() {
            switch field {
            case Field.number: number = Int(clamping: try value.unsigned())
            case Field.stage: stage = try value.choice()
            case Field.reason: reasons.append(.init(rawValue: try value.text()))
            case Field.means: means = .init(rawValue: try value.text())
            case Field.attempts: attempts = Int(clamping: try value.unsigned())
            case Field.detail: detail = try value.text()
            case Field.after: afterMilliseconds = Int(try value.signed())
            default: break
            }
        }
    }
}
