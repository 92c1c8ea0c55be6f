// SPDX-License-Identifier: Apache-2.0

/// All that outlives the process. The store checks sizes and enumerations when it reads it; that the parts belong
/// together is checked by ``Distributor``.
package struct StoredState: Hashable, Sendable {
    /// Where new registrations go; `nil` before the user has chosen a server.
    package var server: ServerName?
    /// What each server's value remembers (``PushServerTurn/memory``).
    package var memories: [ServerName: [UInt8]] = [:]
    /// Who is registered.
    package var registrations: [Registration] = []
    /// The messages that no app has taken yet, in the order in which they came.
    package var messages: [StoredMessage] = []
    /// What was settled, the oldest first.
    package var settled: [SettledMessage] = []
    /// What a server is still to end.
    package var endings: [Ending] = []

    /// Nothing.
    package init() {}
}

/// One registration of an app.
package struct Registration: Hashable, Sendable {
    /// Its number on this machine, which it keeps for its life; at least 1.
    package let number: Int64
    /// What the app asked for, the last time that it registered.
    package var request: RegistrationRequest
    /// The server that it is at, or is to be at.
    package var server: ServerName
    /// Its name at that server.
    package var id: RegistrationID
    /// Where the app's server sends to; `nil` before the server said so, and after it forgot the registration. Up to
    /// 1000 bytes.
    package var endpoint: String?
    /// When the server said so.
    package var registered: WallTime?
    /// Until when the endpoint holds; `nil` where the server does not say.
    package var expires: WallTime?
    /// Whether the app knows the endpoint.
    package var isTold = false
    /// When the last message came.
    package var lastMessage: WallTime?
    /// How many VoIP messages in a row the app did not answer in time.
    package var misses = 0
    /// Whether it is treated as `standard` although the app asked for `voip`: it missed too many.
    package var isDemoted = false
    /// Since when nobody on the bus knows the app; `nil` while somebody does.
    package var unknownSince: WallTime?
    /// How often that was the answer since then.
    package var unknownAnswers = 0

    /// A registration that no server has heard of.
    package init(number: Int64, request: RegistrationRequest, server: ServerName, id: RegistrationID) {
        self.number = number
        self.request = request
        self.server = server
        self.id = id
    }

    /// How its messages are treated.
    package var kind: PushKind { isDemoted ? .standard : request.kind }
}

/// A message that waits for its app.
package struct StoredMessage: Hashable, Sendable {
    /// Its number on this machine, at least 1. A message that came later has a higher one.
    package let number: Int64
    /// The number of its registration.
    package let registration: Int64
    /// Where it came from.
    package let server: ServerName
    /// Its name there, and the name of the registration there, which may have been another one than today.
    package let origin: MessageOrigin
    /// The encrypted body, 1 to 4096 bytes.
    package let body: [UInt8]
    /// How urgent it is.
    package let urgency: Urgency
    /// When it came.
    package var arrived: WallTime
    /// When it is worth nothing any more.
    package var expires: WallTime
    /// How often the app failed to take it: it refused, crashed or did not answer.
    package var failures = 0

    /// A message that was not tried yet.
    package init(
        number: Int64, registration: Int64, server: ServerName, origin: MessageOrigin, body: [UInt8], urgency: Urgency,
        arrived: WallTime, expires: WallTime
    ) {
        self.number = number
        self.registration = registration
        self.server = server
        self.origin = origin
        self.body = body
        self.urgency = urgency
        self.arrived = arrived
        self.expires = expires
    }
}

/// By what a second copy of a message is known: a server that numbers the messages of each registration may use a name
/// twice.
package struct MessageOrigin: Hashable, Sendable {
    /// The registration, by its name at the server.
    package let registration: RegistrationID
    /// The message, by its name at the server.
    package let id: ServerMessageID

    /// Both names.
    package init(registration: RegistrationID, id: ServerMessageID) {
        self.registration = registration
        self.id = id
    }
}

/// A message that needs nothing any more but to be known when the server sends it again.
package struct SettledMessage: Hashable, Sendable {
    /// Its place in the order, at least 1; the oldest have the lowest.
    package let number: Int64
    /// Where it came from.
    package let server: ServerName
    /// Its name there.
    package let origin: MessageOrigin
    /// When it was settled.
    package let time: WallTime
    /// Why it was given up, up to 1000 bytes; `nil`: the app has it.
    package let givenUp: String?

    /// A message that the app took, or that was given up.
    package init(number: Int64, server: ServerName, origin: MessageOrigin, time: WallTime, givenUp: String?) {
        self.number = number
        self.server = server
        self.origin = origin
        self.time = time
        self.givenUp = givenUp
    }

    /// What the server is told.
    package var outcome: MessageOutcome { givenUp.map { .givenUp($0) } ?? .taken }
}

/// A server is to end a registration, and has not confirmed it yet.
package struct Ending: Hashable, Sendable {
    /// Which server.
    package let server: ServerName
    /// The registration's name there.
    package let id: RegistrationID
    /// Its endpoint, where there was one.
    package let endpoint: String?
    /// The registration that moved to another server, and still gets what comes by this name; `nil`: it is over.
    package var registration: Int64?
    /// When the server is told.
    package var due: WallTime

    /// An ending with all its fields.
    package init(server: ServerName, id: RegistrationID, endpoint: String?, registration: Int64?, due: WallTime) {
        self.server = server
        self.id = id
        self.endpoint = endpoint
        self.registration = registration
        self.due = due
    }
}

/// A change of what outlives the process. Those of one turn are one transaction.
package enum StoreChange: Hashable, Sendable {
    /// New registrations go there.
    case server(ServerName)
    /// What a server's value remembers; empty for nothing any more.
    case memory(ServerName, [UInt8])
    /// A registration is new or is another one now.
    case registration(Registration)
    /// The registration of that number is over.
    case registrationRemoved(Int64)
    /// A message is new. The body of one that is there already is the same.
    case message(StoredMessage)
    /// The message of that number waits no longer.
    case messageRemoved(Int64)
    /// A message was settled.
    case settled(SettledMessage)
    /// Of what was settled, all up to this number is forgotten.
    case settledRemoved(upTo: Int64)
    /// An ending is new or is another one now.
    case ending(Ending)
    /// The server has ended it.
    case endingRemoved(ServerName, RegistrationID)
}
