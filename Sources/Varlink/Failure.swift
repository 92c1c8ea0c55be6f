// SPDX-License-Identifier: Apache-2.0

/// An error reply: what a handler throws to send one, and what a client gets that received one.
public struct VarlinkFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error's name with its interface.
    public let name: String
    /// The whole reply, encoded.
    package let message: VarlinkMessage

    /// The reply that says `error`.
    package init<E: VarlinkErrorReply>(_ error: E) {
        name = E.errorName
        message = .error(error)
    }

    init(name: String, received bytes: [UInt8]) {
        self.name = name
        message = VarlinkMessage(received: bytes)
    }

    /// The error with its parameters if it is a `type`; `nil` if it is another, or lacks a parameter.
    public func decoded<E: VarlinkErrorReply>(as type: E.Type = E.self) -> E? {
        guard name == E.errorName else { return nil }
        guard var fields = try? JSONDocument(message.bytes.dropLast()).object(),
            let error: E = fields.objectOrEmpty("parameters"), fields.reading.fault == nil
        else { return nil }
        return error
    }

    /// The name, and the reply as it stood on the wire.
    public var description: String { "\(name): \(String(decoding: message.bytes.dropLast(), as: UTF8.self))" }
}
