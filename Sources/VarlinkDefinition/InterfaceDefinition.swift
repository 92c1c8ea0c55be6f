// SPDX-License-Identifier: Apache-2.0

/// A Varlink interface as its definition has it (<https://varlink.org/Interface-Definition>): what is declared, in
/// order, with the comments.
package struct InterfaceDefinition: Sendable {
    /// A type.
    package indirect enum Kind: Hashable, Sendable {
        case bool, int, float, string
        case optional(Kind)
        case array(Kind)
        case named(String)
        case enumeration([String])
        case object([Field])

        /// Whether it may be left out.
        package var isOptional: Bool {
            if case .optional = self { true } else { false }
        }

        /// Whether it is an array, which may be one that can be left out.
        package var isArray: Bool {
            switch self {
            case .array: true
            case .optional(let kind): kind.isArray
            case .bool, .int, .float, .string, .enumeration, .object, .named: false
            }
        }

        /// The kind of each value, where there may be none or many.
        package var element: Kind {
            switch self {
            case .array(let kind), .optional(let kind): kind.element
            case .bool, .int, .float, .string, .enumeration, .object, .named: self
            }
        }
    }

    /// A field of an object, a parameter, or a part of a reply.
    package struct Field: Hashable, Sendable {
        package let name: String
        package let kind: Kind
        /// The lines before it, without their signs; of one without any, those of the field before it in the object.
        package let comment: [String]
        /// Whether these are its own.
        package let hasOwnComment: Bool

        package init(name: String, kind: Kind, comment: [String], hasOwnComment: Bool) {
            (self.name, self.kind, self.comment, self.hasOwnComment) = (name, kind, comment, hasOwnComment)
        }

        package var isOptional: Bool { kind.isOptional }
    }

    /// A type that has a name, or the parameters of an error.
    package struct Declaration: Sendable {
        package let name: String
        package let kind: Kind
        package let comment: [String]
    }

    package struct Method: Sendable {
        package let name: String
        package let parameters: [Field]
        package let reply: [Field]
        /// The lines before it, without the one that says that it answers with a stream.
        package let comment: [String]
        /// Whether it answers with a stream.
        package let isStream: Bool
        /// Whether descriptors ride on a call.
        package var takesDescriptors: Bool { parameters.contains { $0.name == "fileDescriptor" } }
    }

    /// What in the comment of a method says that it answers with a stream, as systemd's definitions have it
    /// (`SD_VARLINK_REQUIRES_MORE` of sd-varlink-idl.h).
    private static let streamMark = "[Requires 'more' flag]"

    /// With the dots.
    package private(set) var name = ""
    package private(set) var comment: [String] = []
    package private(set) var types: [Declaration] = []
    package private(set) var methods: [Method] = []
    package private(set) var errors: [Declaration] = []

    /// Reads a definition.
    ///
    /// - Throws: ``DefinitionError`` for what is none, or has a name that is not declared, or the same twice.
    package init(_ text: String) throws(DefinitionError) {
        var reader = DefinitionReader(text)
        comment = reader.comment().filter { !$0.hasPrefix("SPDX") }
        try reader.expect("interface")
        name = try reader.takeName("an interface's name")
        while true {
            let comment = reader.comment()
            guard let keyword = reader.next else { break }
            reader.take()
            let member = try reader.takeName("a member's name")
            switch keyword {
            case "type": types.append(Declaration(name: member, kind: try reader.body(), comment: comment))
            case "error": errors.append(Declaration(name: member, kind: .object(try reader.fields()), comment: comment))
            case "method":
                let parameters = try reader.fields()
                try reader.expect("->")
                methods.append(
                    Method(
                        name: member, parameters: parameters, reply: try reader.fields(),
                        comment: comment.filter { $0 != Self.streamMark },
                        isStream: comment.contains(Self.streamMark)))
            default: throw reader.error("type, method or error", found: keyword)
            }
        }
        try check()
    }

    /// The declared type of a name.
    package func type(_ name: String) -> Kind? { types.first { $0.name == name }?.kind }

    /// The kind that a name stands for.
    package func resolve(_ kind: Kind) -> Kind {
        if case .named(let name) = kind, let type = type(name) { resolve(type) } else { kind }
    }

    private func check() throws(DefinitionError) {
        var seen: Set<String> = []
        for name in types.map(\.name) + methods.map(\.name) + errors.map(\.name) where !seen.insert(name).inserted {
            throw DefinitionError("\(name) is declared twice")
        }
        let kinds =
            types.map(\.kind) + errors.map(\.kind) + methods.map { .object($0.parameters) }
            + methods.map { .object($0.reply) }
        for kind in kinds { try check(kind) }
    }

    private func check(_ kind: Kind) throws(DefinitionError) {
        switch kind {
        case .bool, .int, .float, .string, .enumeration: break
        case .optional(let kind), .array(let kind): try check(kind)
        case .named(let name): if type(name) == nil { throw DefinitionError("\(name) is not declared") }
        case .object(let fields):
            guard Set(fields.map(\.name)).count == fields.count else {
                throw DefinitionError("a field is there twice among \(fields.map(\.name))")
            }
            for field in fields { try check(field.kind) }
        }
    }
}

/// What is wrong with a definition.
package struct DefinitionError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
