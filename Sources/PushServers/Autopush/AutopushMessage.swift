// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtoneVarlink

/// What is said to autopush: objects of JSON, told apart by `messageType` (autopush-rs, `protocol.rs`).
enum AutopushRequest: VarlinkWritable, Hashable {
    /// Who this is; the first message on a socket, within 5 s.
    case hello(uaid: String?)
    /// A channel is to get an endpoint; one with a key takes pushes from nobody else.
    case register(RegistrationID, key: String?)
    /// A channel ends.
    case unregister(RegistrationID)
    /// What became of a notification.
    case ack(RegistrationID, version: String, AutopushCode)

    /// Writes the members.
    func write(to fields: inout some VarlinkFieldWriter) {
        switch self {
        case .hello(let uaid):
            fields.put("messageType", "hello")
            fields.put("use_webpush", true)
            if let uaid { fields.put("uaid", uaid) }
            fields.put("broadcasts", VarlinkEmpty())
        case .register(let registration, let key):
            fields.put("messageType", "register")
            fields.put("channelID", registration.channel)
            if let key { fields.put("key", key) }
        case .unregister(let registration):
            fields.put("messageType", "unregister")
            fields.put("channelID", registration.channel)
            // The user's wish: what Firefox says of an `unsubscribe()`.
            fields.put("code", 200)
        case .ack(let registration, let version, let code):
            fields.put("messageType", "ack")
            fields.put("updates", [Update(channel: registration.channel, version: version, code: code)])
        }
    }

    private struct Update: VarlinkWritable {
        let channel: String
        let version: String
        let code: AutopushCode

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("channelID", channel)
            fields.put("version", version)
            fields.put("code", code.rawValue)
        }
    }
}

/// What became of a notification, in Firefox's numbers (`PushServiceWebSocket`, `kACK_STATUS_TO_CODE`).
enum AutopushCode: Int, Hashable {
    case delivered = 100
    case undecipherable = 101
    case notDelivered = 102
}

/// What autopush says: the members of all its messages that matter here.
struct AutopushMessage: VarlinkObject {
    var type: String?
    var status: Int?
    var uaid: String?
    var channel: String?
    var endpoint: String?
    var version: String?
    var data: String?
    var ttl: Int?
    var headers: Headers?

    /// The fields of the sender's request that a notification keeps.
    struct Headers: VarlinkObject {
        var encoding: String?
        var urgency: String?

        /// With no fields.
        init() {}

        /// Reads the members.
        init?(from fields: inout some VarlinkFieldReader) {
            (encoding, urgency) = (fields.text("encoding"), fields.text("urgency"))
        }

        /// Writes the members.
        func write(to fields: inout some VarlinkFieldWriter) {
            if let encoding { fields.put("encoding", encoding) }
            if let urgency { fields.put("urgency", urgency) }
        }
    }

    /// With no members.
    init() {}

    /// Reads the members.
    init?(from fields: inout some VarlinkFieldReader) {
        type = fields.text("messageType")
        status = fields.integer("status")
        uaid = fields.text("uaid")
        channel = fields.text("channelID")
        endpoint = fields.text("pushEndpoint")
        version = fields.text("version")
        data = fields.text("data")
        ttl = fields.integer("ttl")
        headers = fields.object("headers")
    }

    /// Writes the members.
    func write(to fields: inout some VarlinkFieldWriter) {
        if let type { fields.put("messageType", type) }
        if let status { fields.put("status", status) }
        if let uaid { fields.put("uaid", uaid) }
        if let channel { fields.put("channelID", channel) }
        if let endpoint { fields.put("pushEndpoint", endpoint) }
        if let version { fields.put("version", version) }
        if let data { fields.put("data", data) }
        if let ttl { fields.put("ttl", ttl) }
        if let headers { fields.put("headers", headers) }
    }
}

extension RegistrationID {
    /// autopush's name for it: a UUID in lower case with dashes, and nothing else is accepted.
    var channel: String {
        let digits = Array(text)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }

    /// The registration of a channel; `nil` for another text.
    init?(channel: String) {
        self.init(channel.filter { $0 != "-" })
        guard self.channel == channel else { return nil }
    }
}

/// What outlives the process: who this is at the server, and which channels the server knows.
struct AutopushMemory: VarlinkObject {
    /// The most channels, so that the memory stays under its 64 KiB.
    static let mostChannels = 1500

    var uaid: String?
    var channels: Set<RegistrationID> = []

    /// Nothing.
    init() {}

    /// Reads the members; what is no registration is passed over.
    init?(from fields: inout some VarlinkFieldReader) {
        uaid = fields.text("uaid")
        let texts: [String] = fields.texts("channels") ?? []
        channels = Set(texts.prefix(Self.mostChannels).compactMap { RegistrationID($0) })
    }

    /// Writes the members.
    func write(to fields: inout some VarlinkFieldWriter) {
        if let uaid { fields.put("uaid", uaid) }
        fields.put("channels", channels.map(\.text).sorted())
    }
}
