// SPDX-License-Identifier: Apache-2.0

/// A received call: its envelope is read, its parameters are read when the method is known.
package struct VarlinkCall: Sendable {
    /// How many replies the caller expects. The three flags of the envelope exclude each other.
    package enum Mode: String, Hashable, Sendable, CaseIterable {
        /// One; no flag is set.
        case single
        /// None, not even an error (`oneway`).
        case oneway
        /// Any number, each but the last with `continues` (`more`).
        case more
        /// One, after which the connection speaks another protocol (`upgrade`).
        case upgrade

        /// The member of the envelope that asks for it.
        var flag: String? { self == .single ? nil : rawValue }
    }

    /// The method's name with its interface.
    package let method: String
    /// How many replies the caller expects.
    package let mode: Mode

    private let document: JSONDocument

    /// Reads a message without its NUL.
    ///
    /// - Throws: what makes it no call. Members that the protocol does not know are passed over.
    package init(_ message: [UInt8]) throws(VarlinkViolation) {
        try CallShape.check(message)
        document = try JSONDocument(message)
        var fields = try document.object()
        let name = fields.text("method") ?? fields.lacking("method")
        let set = Mode.allCases.filter { $0.flag.flatMap { fields.flag($0) } == true }
        guard let name, fields.reading.fault == nil else {
            throw .notACall(fields.reading.fault?.description ?? "method is missing")
        }
        guard set.count <= 1 else { throw .notACall("oneway, more and upgrade exclude each other") }
        (method, mode) = (name, set.first ?? .single)
    }

    /// The call's parameters. Left out, `null` and `{}` mean the same.
    ///
    /// - Throws: `org.varlink.service.InvalidParameter` with the name of the first parameter that is unknown, missing,
    ///   of the wrong type or of a value that is not allowed.
    package func parameters<P: VarlinkObject>(as type: P.Type) throws(VarlinkFailure) -> P {
        let root = "parameters"
        guard var fields = try? document.object(refusesUnknown: true) else { throw Self.invalid(root) }
        let parameters: P? = fields.objectOrEmpty(root)
        let path = fields.reading.fault?.path
        guard let parameters, path == nil else {
            let path = path ?? root
            throw Self.invalid(path.hasPrefix(root + ".") ? String(path.dropFirst(root.count + 1)) : path)
        }
        return parameters
    }

    private static func invalid(_ parameter: String) -> VarlinkFailure {
        VarlinkFailure(ServiceAPI.InvalidParameter(parameter: parameter))
    }
}
