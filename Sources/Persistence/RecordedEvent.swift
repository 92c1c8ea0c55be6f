// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection
internal import DialtonePlatform

/// An event of a connection, as the journal keeps it: without the path, which is most of an event and is not told.
package struct RecordedEvent {
    /// Which connection's: all of its events share one.
    package final class Subject: Sendable {
        package let name: String
        package let owner: UInt32
        package let remote: Remote
        package let remoteText: String

        package init(name: String, owner: UInt32, remote: Remote) {
            self.name = name
            self.owner = owner
            self.remote = remote
            remoteText = remote.description
        }
    }

    package let clocks: ClockReading
    package let subject: Subject
    package let event: ConnectionEvent
    /// The wake that stands, or that something happened to; out of line, since most events have none.
    package let wake: RecordedWake?
    /// Whether the service manager's store has no place for the flow that stands.
    package let endsWithAgent: Bool
    /// The outages up to this event; `nil` for what happened to a wake.
    package let outages: ConnectionsAPI.OutageCount?

    package init(
        clocks: ClockReading, subject: Subject, event: ConnectionEvent, wake: RecordedWake? = nil,
        endsWithAgent: Bool = false, outages: ConnectionsAPI.OutageCount?
    ) {
        self.clocks = clocks
        self.subject = subject
        self.wake = wake
        self.endsWithAgent = endsWithAgent
        self.outages = outages
        var event = event
        event.status.path = nil
        self.event = event
    }

    package var name: String { subject.name }
    package var key: ConnectionKey { ConnectionKey(subject.name, of: subject.owner) }
    package var owner: UInt32 { subject.owner }
    package var remote: String { subject.remoteText }

    /// The remote without what follows a question mark: a token there, of a WebSocket, is not for a log or a file.
    package var remoteWithoutQuery: String {
        remote.split(separator: "?", maxSplits: 1).first.map { "\($0)" } ?? remote
    }
}

/// What an event knows of the wakes of its connection's client.
package final class RecordedWake: Sendable {
    /// The one that stands.
    package let standing: StandingWake?
    /// What happened; `nil` for events of the connection itself.
    package let report: WakeReport?

    package init(standing: StandingWake?, _ report: WakeReport?) {
        self.standing = standing
        self.report = report
    }
}
