// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtonePlatform

/// An event of a connection with its number.
package struct NumberedEvent: Hashable {
    package let sequence: UInt64
    package let event: SavedEvent

    package init(sequence: UInt64, event: SavedEvent) { (self.sequence, self.event) = (sequence, event) }
}

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

    /// An event as subscribers are told of it, whatever its number.
    package init(_ event: ConnectionsAPI.Event, owner: UInt32) {
        var event = event
        event.sequence = 0
        event.connection.owner = Int(owner)
        self.owner = owner
        name = event.connection.name
        epoch = UInt64(clamping: event.connection.epoch)
        bytes = KeptFieldWriter.bytes(of: event)
    }

    /// An event that was kept.
    ///
    /// - Throws: where this version cannot tell it to anybody.
    package init(bytes: [UInt8]) throws(DamagedState) {
        let event: ConnectionsAPI.Event = try KeptFieldReader.object(bytes)
        guard let owner = event.connection.owner.flatMap({ UInt32(exactly: $0) }),
            let epoch = UInt64(exactly: event.connection.epoch), epoch <= FieldReader.largestCount,
            !event.connection.name.isEmpty, !event.kind.rawValue.isEmpty
        else { throw DamagedState() }
        (self.owner, self.epoch, name, self.bytes) = (owner, epoch, event.connection.name, bytes)
    }

    /// As subscribers are told of it.
    package func wire(sequence: UInt64) -> ConnectionsAPI.Event {
        guard var event: ConnectionsAPI.Event = try? KeptFieldReader.object(bytes) else {
            // Read once when it was kept, or written by this process.
            preconditionFailure("an event was kept that cannot be read")
        }
        event.sequence = Int(clamping: sequence)
        return event
    }
}
