// SPDX-License-Identifier: Apache-2.0

internal import Platform
internal import Supervisor

/// An event of a connection, as the journal keeps it: without the path, which is most of an event and is not told.
struct RecordedEvent {
    /// Which connection's: all of its events share one.
    final class Subject: Sendable {
        let name: String
        let owner: UInt32
        let remote: Remote
        let remoteText: String

        init(name: String, owner: UInt32, remote: Remote) {
            self.name = name
            self.owner = owner
            self.remote = remote
            remoteText = remote.description
        }
    }

    let clocks: ClockReading
    let subject: Subject
    let event: ConnectionEvent
    /// The wake that stands, or that something happened to; out of line, since most events have none.
    let wake: RecordedWake?
    /// Whether the service manager's store has no place for the flow that stands.
    let endsWithAgent: Bool

    init(
        clocks: ClockReading, subject: Subject, event: ConnectionEvent, wake: RecordedWake? = nil,
        endsWithAgent: Bool = false
    ) {
        self.clocks = clocks
        self.subject = subject
        self.wake = wake
        self.endsWithAgent = endsWithAgent
        var event = event
        event.status.path = nil
        self.event = event
    }

    var name: String { subject.name }
    var key: ConnectionKey { ConnectionKey(subject.name, of: subject.owner) }
    var owner: UInt32 { subject.owner }
    var remote: String { subject.remoteText }

    /// The remote without what follows a question mark: a token there, of a WebSocket, is not for a log or a file.
    var remoteWithoutQuery: String { remote.split(separator: "?", maxSplits: 1).first.map { "\($0)" } ?? remote }
}

/// What an event knows of the wakes of its connection's client.
final class RecordedWake: Sendable {
    /// The one that stands.
    let standing: StandingWake?
    /// What happened; `nil` for events of the connection itself.
    let report: WakeReport?

    init(standing: StandingWake?, _ report: WakeReport?) {
        self.standing = standing
        self.report = report
    }
}
