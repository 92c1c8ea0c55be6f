// SPDX-License-Identifier: Apache-2.0

/// An encoded message, ready to be sent any number of times: copies share the bytes, so an event is encoded once for a
/// thousand subscribers.
public struct VarlinkMessage: Hashable, Sendable {
    /// The JSON object and its NUL.
    public let bytes: [UInt8]
    /// Whether it is a reply that announces another one.
    public let continues: Bool

    private init(_ envelope: some Encodable, continues: Bool = false) {
        bytes = JSON.encodeMessage(envelope)
        self.continues = continues
    }

    /// An error as it was received, without its NUL.
    init(received message: [UInt8]) {
        bytes = message + [0]
        continues = false
    }

    /// A call.
    public static func call<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ mode: VarlinkCall.Mode = .single
    ) -> VarlinkMessage {
        VarlinkMessage(CallEnvelope(method: M.name, parameters: parameters, mode: mode))
    }

    /// A reply. Only one to a call with `more` may continue.
    public static func reply(_ parameters: some Encodable, continues: Bool = false) -> VarlinkMessage {
        VarlinkMessage(ReplyEnvelope(parameters: parameters, continues: continues, error: nil), continues: continues)
    }

    fileprivate init(_ bytes: [UInt8], continues: Bool) {
        self.bytes = bytes
        self.continues = continues
    }

    /// An error. It ends a stream.
    public static func error<E: VarlinkErrorReply>(_ error: E) -> VarlinkMessage {
        VarlinkMessage(ReplyEnvelope(parameters: error, continues: false, error: E.errorName))
    }
}

/// A reply with a long array whose elements are encoded one after the other: so that an answer that takes long is made
/// in turns.
public struct VarlinkLongReply: Sendable {
    private var bytes: [UInt8]
    private let tail: [UInt8]
    private let continues: Bool
    private var isEmpty = true

    /// A reply whose array `member` is empty so far.
    public init(_ parameters: some Encodable, continues: Bool = false, _ member: String) {
        let message = VarlinkMessage.reply(parameters, continues: continues)
        let place = Array("\"\(member)\":[".utf8)
        guard let start = message.bytes.indices.first(where: { message.bytes[$0...].starts(with: place + [0x5D]) })
        else {
            // Of a reply that this process encoded, with that member and nothing in it.
            preconditionFailure("a reply has no empty array \(member)")
        }
        let end = start + place.count
        bytes = Array(message.bytes[..<end])
        tail = Array(message.bytes[end...])
        self.continues = continues
    }

    /// How many bytes it has so far.
    public var count: Int { bytes.count }

    /// Makes room for so many bytes in all, tail included: what is there is copied once.
    public mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Adds an element.
    public mutating func append(_ element: some Encodable) {
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        isEmpty = false
        JSON.append(element, to: &bytes)
    }

    /// The whole reply. Nothing is left of this one.
    public mutating func finish() -> VarlinkMessage {
        bytes += tail
        defer { bytes = [] }
        return VarlinkMessage(bytes, continues: continues)
    }
}

private struct CallEnvelope<Parameters: Encodable>: Encodable {
    let method: String
    let parameters: Parameters
    let mode: VarlinkCall.Mode

    enum CodingKeys: CodingKey {
        case method, parameters, oneway, more, upgrade
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(method, forKey: .method)
        try container.encode(parameters, forKey: .parameters)
        switch mode {
        case .single: break
        case .oneway: try container.encode(true, forKey: .oneway)
        case .more: try container.encode(true, forKey: .more)
        case .upgrade: try container.encode(true, forKey: .upgrade)
        }
    }
}

private struct ReplyEnvelope<Parameters: Encodable>: Encodable {
    let parameters: Parameters
    let continues: Bool
    let error: String?

    enum CodingKeys: CodingKey {
        case parameters, continues, error
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(error, forKey: .error)
        try container.encode(parameters, forKey: .parameters)
        if continues { try container.encode(true, forKey: .continues) }
    }
}
