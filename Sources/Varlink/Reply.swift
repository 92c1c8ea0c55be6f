// SPDX-License-Identifier: Apache-2.0

/// A received reply.
package enum VarlinkReply<Parameters: VarlinkObject>: Sendable {
    /// The method's answer; `continues` says that another reply follows.
    case success(Parameters, continues: Bool)
    /// An error, which ends the call.
    case failure(VarlinkFailure)

    /// Reads a message without its NUL.
    ///
    /// - Throws: what makes it no reply of the method. Members that the protocol or the method does not know are passed
    ///   over, so that a newer service may add some.
    package init(_ message: [UInt8]) throws(VarlinkViolation) {
        var fields = try JSONDocument(message).object()
        if let name = fields.text("error") {
            self = .failure(VarlinkFailure(name: name, received: message))
            return
        }
        let parameters: Parameters? = fields.objectOrEmpty("parameters")
        let continues = fields.flag("continues") ?? false
        guard let parameters, fields.reading.fault == nil else {
            throw .notAReply(fields.reading.fault?.description ?? "parameters is missing")
        }
        self = .success(parameters, continues: continues)
    }
}
