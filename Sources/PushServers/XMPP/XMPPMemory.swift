// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform

/// What of an account outlives the process. Its bounds keep it below 64 KiB: 24 KiB of what the server has not
/// acknowledged, 32 answers of up to 0.7 KiB more, 256 registrations and 32 messages.
struct XMPPMemory: Hashable, Sendable {
    /// A push that waits for its app's answer.
    struct Pending: Hashable, Sendable {
        let message: ServerMessageID
        let registration: RegistrationID
    }

    /// The most registrations of one account.
    static let mostRegistrations = 256
    /// The most pushes that wait for their answer. The server's module waits 120 s for each.
    static let mostPending = 32
    /// So many of them may be one registration's where others want their place.
    static let pendingShare = 16
    /// The most bytes of stanzas that the server does not acknowledge.
    static let mostUnacknowledged = 24 * 1024
    /// The longest name that a server may give a session. XEP-0198, section 3, has up to 4,000 characters; prosody's
    /// have 12, ejabberd's some 100.
    static let longestResumption = 1024
    /// The most bytes of all of it.
    static let mostBytes = 64 * 1024

    /// Which account it is of: another one's says nothing.
    let account: String
    /// The resource that is asked for at each bind, so that the full JID stays, and with it the endpoints: a push
    /// service sends to the full JID that registered.
    var resource: String
    /// The full JID that the server bound last; `nil` before the first.
    var fullJID: String?
    /// The push service: that of the configuration, or that the server named.
    var service: String?
    /// The session.
    var management: XMPPStreamManagement?
    /// Pushes of the session without an answer, the oldest first.
    var pending: [Pending] = []
    /// What was registered, and was not ended.
    var registrations: Set<RegistrationID> = []

    /// That of an account that was never used.
    init(account: String, resource: String) { (self.account, self.resource) = (account, resource) }

    // MARK: - Bytes

    private static let version: UInt64 = 1

    private enum Field {
        static let (version, account, resource, fullJID, service) = (1, 2, 3, 4, 5)
        static let (management, pending, registration) = (6, 7, 8)
    }

    private enum ManagementField {
        static let (resumption, handled, acknowledged, unacknowledged) = (1, 2, 3, 4)
    }

    private enum PendingField {
        static let (message, registration) = (1, 2)
    }

    /// As bytes, of which there are no more than ``mostBytes``: where there would be, the session is left out.
    var bytes: [UInt8] {
        var writer = FieldWriter()
        writer.put(Field.version, Self.version)
        writer.put(Field.account, account)
        writer.put(Field.resource, resource)
        writer.put(Field.fullJID, fullJID)
        writer.put(Field.service, service)
        for registration in registrations.map(\.text).sorted() { writer.put(Field.registration, registration) }
        let lasting = writer.bytes
        if let management { writer.put(Field.management) { Self.write(management, &$0) } }
        for push in pending {
            writer.put(Field.pending) {
                $0.put(PendingField.message, push.message.text)
                $0.put(PendingField.registration, push.registration.text)
            }
        }
        return writer.bytes.count <= Self.mostBytes ? writer.bytes : lasting
    }

    private static func write(_ management: XMPPStreamManagement, _ writer: inout FieldWriter) {
        writer.put(ManagementField.resumption, management.resumption)
        writer.put(ManagementField.handled, UInt64(management.handled))
        writer.put(ManagementField.acknowledged, UInt64(management.acknowledged))
        for stanza in management.unacknowledged { writer.put(ManagementField.unacknowledged, stanza) }
    }

    /// Reads what ``bytes`` wrote.
    ///
    /// - Throws: `DamagedState` also where it is another account's, or of a version that is not known.
    init(_ bytes: [UInt8], account: String) throws(DamagedState) {
        guard bytes.count <= Self.mostBytes else { throw DamagedState() }
        var reader = FieldReader(bytes[...])
        self.init(account: account, resource: "")
        var (version, name): (UInt64?, String?)
        while let (field, value) = try reader.next() {
            switch field {
            case Field.version: version = try value.unsigned()
            case Field.account: name = try value.text()
            case Field.resource: resource = try Self.name(value, upTo: 64)
            case Field.fullJID: fullJID = try Self.name(value, upTo: 2 * XMPPAccount.longestJID)
            case Field.service: service = try Self.name(value, upTo: XMPPAccount.longestJID)
            case Field.management: management = try Self.management(value.fields())
            case Field.pending: pending.append(try Self.pending(value.fields()))
            case Field.registration: registrations.insert(try Self.registration(value))
            default: break
            }
        }
        guard version == Self.version, name == account, !resource.isEmpty,
            registrations.count <= Self.mostRegistrations, pending.count <= Self.mostPending
        else { throw DamagedState() }
        // Without a session that can go on nobody waits for these.
        if management?.resumption == nil { (management, pending) = (nil, []) }
    }

    private static func management(_ reader: FieldReader) throws(DamagedState) -> XMPPStreamManagement {
        var reader = reader
        var (resumption, handled, acknowledged): (String?, UInt32, UInt32) = (nil, 0, 0)
        var unacknowledged: [[UInt8]] = []
        while let (field, value) = try reader.next() {
            switch field {
            case ManagementField.resumption: resumption = try name(value, upTo: longestResumption)
            case ManagementField.handled: handled = try value.unsigned(as: UInt32.self)
            case ManagementField.acknowledged: acknowledged = try value.unsigned(as: UInt32.self)
            case ManagementField.unacknowledged: unacknowledged.append(Array(try value.bytes()))
            default: break
            }
        }
        return XMPPStreamManagement(
            resumption: resumption, handled: handled, acknowledged: acknowledged, unacknowledged: unacknowledged)
    }

    private static func pending(_ reader: FieldReader) throws(DamagedState) -> Pending {
        var reader = reader
        var (message, registration): (ServerMessageID?, RegistrationID?)
        while let (field, value) = try reader.next() {
            switch field {
            case PendingField.message: message = ServerMessageID(try value.text())
            case PendingField.registration: registration = try Self.registration(value)
            default: break
            }
        }
        guard let message, let registration else { throw DamagedState() }
        return Pending(message: message, registration: registration)
    }

    private static func registration(_ value: FieldReader.Value) throws(DamagedState) -> RegistrationID {
        guard let registration = RegistrationID(try value.text()) else { throw DamagedState() }
        return registration
    }

    /// A text of at least one byte, in which no control character stands: it goes into stanzas.
    private static func name(_ value: FieldReader.Value, upTo most: Int) throws(DamagedState) -> String {
        let text = try value.text()
        guard (1...most).contains(text.utf8.count), text.printable == text else { throw DamagedState() }
        return text
    }
}
