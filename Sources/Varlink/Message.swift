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

    /// A reply whose array `member` is empty so far, with these elements in it.
    public static func reply(
        _ parameters: some Encodable, continues: Bool = false, _ member: String, _ elements: VarlinkElements
    ) -> VarlinkMessage {
        VarlinkMessage(.reply(parameters, continues: continues), filling: member, with: elements)
    }

    private init(_ message: VarlinkMessage, filling member: String, with elements: VarlinkElements) {
        let place = Array("\"\(member)\":[".utf8)
        guard let start = message.bytes.indices.first(where: { message.bytes[$0...].starts(with: place + [0x5D]) })
        else {
            // Of a reply that this process encoded, with that member and nothing in it.
            preconditionFailure("a reply has no empty array \(member)")
        }
        let end = start + place.count
        bytes = message.bytes[..<end] + elements.bytes + message.bytes[end...]
        continues = message.continues
    }

    /// An error. It ends a stream.
    public static func error<E: VarlinkErrorReply>(_ error: E) -> VarlinkMessage {
        VarlinkMessage(ReplyEnvelope(parameters: error, continues: false, error: E.errorName))
    }
}

/// The elements of a long array, encoded one after the other: so that an answer that takes long is made in turns.
public struct VarlinkElements: Sendable {
    fileprivate var bytes: [UInt8] = []

    /// None yet.
    public init() {}

    /// Adds one.
    public mutating func append(_ element: some Encodable) {
        if !bytes.isEmpty { bytes.append(UInt8(ascii: ",")) }
        bytes += JSON.encodeMessage(element).dropLast()
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
