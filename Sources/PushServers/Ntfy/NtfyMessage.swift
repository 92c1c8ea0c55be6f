// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform
internal import DialtoneVarlink

/// What ntfy says: the members of all its events that matter here (`server/types.go`).
struct NtfyMessage: VarlinkObject {
    var id: String?
    /// In seconds since 1970.
    var time: Int?
    /// When the server forgets the message.
    var expires: Int?
    var event: String?
    var topic: String?
    var message: String?
    var priority: Int?
    /// `base64`; `nil` for a message of text.
    var encoding: String?
    /// Set where the message has a file.
    var attachment: VarlinkEmpty?

    /// With no members.
    init() {}

    /// Reads the members.
    init?(from fields: inout some VarlinkFieldReader) {
        id = fields.text("id")
        time = fields.integer("time")
        expires = fields.integer("expires")
        event = fields.text("event")
        topic = fields.text("topic")
        message = fields.text("message")
        priority = fields.integer("priority")
        encoding = fields.text("encoding")
        attachment = fields.object("attachment")
    }

    /// Writes the members.
    func write(to fields: inout some VarlinkFieldWriter) {
        if let id { fields.put("id", id) }
        if let time { fields.put("time", time) }
        if let expires { fields.put("expires", expires) }
        if let event { fields.put("event", event) }
        if let topic { fields.put("topic", topic) }
        if let message { fields.put("message", message) }
        if let priority { fields.put("priority", priority) }
        if let encoding { fields.put("encoding", encoding) }
        if let attachment { fields.put("attachment", attachment) }
    }

    /// What was pushed; `nil` for an encoding that nobody knows.
    var body: [UInt8]? {
        switch encoding {
        case nil, "": Array((message ?? "").utf8)
        case "base64": Base64.bytes(of: message ?? "")
        default: nil
        }
    }

    /// ntfy's priorities go from 1 to 5, and are 3 where the sender says nothing.
    var urgency: Urgency {
        switch priority {
        case 1: .veryLow
        case 2: .low
        case 4, 5: .high
        default: .normal
        }
    }
}

/// What outlives the process: the topic of each registration, and what has arrived.
struct NtfyMemory: VarlinkObject {
    /// The most topics. All stand in the first line of a request, for which proxies have 8 KiB (nginx's
    /// `large_client_header_buffers`).
    static let mostTopics = 400

    var topics: [RegistrationID: String] = [:]
    var mark = NtfyMark()

    private struct Topic: VarlinkObject {
        let registration: String
        let topic: String

        init(registration: String, topic: String) { (self.registration, self.topic) = (registration, topic) }

        init?(from fields: inout some VarlinkFieldReader) {
            guard let registration = fields.text("registration"), let topic = fields.text("topic") else { return nil }
            self.init(registration: registration, topic: topic)
        }

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("registration", registration)
            fields.put("topic", topic)
        }
    }

    /// Nothing.
    init() {}

    /// Reads the members; what is no registration or no topic is passed over.
    init?(from fields: inout some VarlinkFieldReader) {
        let saved: [Topic] = fields.objects("topics") ?? []
        for entry in saved.prefix(Self.mostTopics) where Self.isTopic(entry.topic) {
            if let registration = RegistrationID(entry.registration) { topics[registration] = entry.topic }
        }
        mark = fields.object("mark") ?? NtfyMark()
    }

    /// Writes the members.
    func write(to fields: inout some VarlinkFieldWriter) {
        let sorted = topics.map { Topic(registration: $0.key.text, topic: $0.value) }.sorted { $0.topic < $1.topic }
        fields.put("topics", sorted)
        fields.put("mark", mark)
    }

    /// ntfy's rule for topics (`topicRegex`).
    private static func isTopic(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") }
    }
}
