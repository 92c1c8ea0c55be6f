// SPDX-License-Identifier: Apache-2.0

/// An encoded message, ready to be sent any number of times: copies share the bytes, so an event is encoded once for a
/// thousand subscribers.
package struct VarlinkMessage: Hashable, Sendable {
    /// The JSON object and its NUL.
    package let bytes: [UInt8]
    /// Whether it is a reply that announces another one.
    package let continues: Bool

    private init(_ envelope: Envelope<some VarlinkWritable>) {
        var writer = JSONWriter()
        writer.append(envelope)
        bytes = writer.finish([0])
        continues = envelope.continues
    }

    /// An error as it was received, without its NUL.
    init(received message: [UInt8]) {
        bytes = message + [0]
        continues = false
    }

    /// A call.
    package static func call<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ mode: VarlinkCall.Mode = .single
    ) -> VarlinkMessage {
        VarlinkMessage(Envelope(method: M.name, mode: mode, parameters: parameters))
    }

    /// A reply. Only one to a call with `more` may continue.
    package static func reply(_ parameters: some VarlinkWritable, continues: Bool = false) -> VarlinkMessage {
        VarlinkMessage(Envelope(parameters: parameters, continues: continues))
    }

    fileprivate init(_ bytes: [UInt8], continues: Bool) {
        self.bytes = bytes
        self.continues = continues
    }

    /// An error. It ends a stream.
    package static func error<E: VarlinkErrorReply>(_ error: E) -> VarlinkMessage {
        VarlinkMessage(Envelope(error: E.errorName, parameters: error))
    }
}

/// A reply with a long array whose elements are encoded one after the other: so that an answer that takes long is made
/// in turns.
package struct VarlinkLongReply: Sendable {
    private var writer: JSONWriter
    private let tail: [UInt8]
    private let continues: Bool
    private var isEmpty = true

    /// A reply whose array `member` is empty so far.
    package init(_ parameters: some VarlinkWritable, continues: Bool = false, _ member: String) {
        let message = VarlinkMessage.reply(parameters, continues: continues)
        let place = Array("\"\(member)\":[".utf8)
        guard let start = message.bytes.indices.first(where: { message.bytes[$0...].starts(with: place + [0x5D]) })
        else {
            // Of a reply that this process encoded, with that member and nothing in it.
            preconditionFailure("a reply has no empty array \(member)")
        }
        let end = start + place.count
        writer = JSONWriter(behind: Array(message.bytes[..<end]))
        tail = Array(message.bytes[end...])
        self.continues = continues
    }

    /// How many bytes it has so far.
    package var count: Int { writer.bytes.count }

    /// Makes room for so many bytes in all, tail included: what is there is copied once.
    package mutating func reserve(_ count: Int) { writer.reserve(count) }

    /// Adds an element.
    package mutating func append(_ element: some VarlinkWritable) {
        writer.append(element, isFirst: isEmpty)
        isEmpty = false
    }

    /// The whole reply. Nothing is left of this one.
    package mutating func finish() -> VarlinkMessage {
        VarlinkMessage(writer.finish(tail), continues: continues)
    }
}

/// A message, which is an object as well.
private struct Envelope<Parameters: VarlinkWritable>: VarlinkWritable {
    var method: String?
    var mode = VarlinkCall.Mode.single
    var error: String?
    let parameters: Parameters
    var continues = false

    func write(to fields: inout some VarlinkFieldWriter) {
        if let method { fields.put("method", method) }
        if let error { fields.put("error", error) }
        if let flag = mode.flag { fields.put(flag, true) }
        if continues { fields.put("continues", true) }
        // Last: it may be long.
        fields.put("parameters", parameters)
    }
}
