// SPDX-License-Identifier: Apache-2.0

/// A parsed definition of a Varlink interface: enough of the language to compare it with Swift types, and to make calls
/// of it.
package struct InterfaceDefinition: Sendable {
    package indirect enum Kind: Hashable, Sendable {
        case bool, int, float, string
        case optional(Kind)
        case array(Kind)
        case named(String)
        case enumeration([String])
        case object([Field])
    }

    package struct Field: Hashable, Sendable {
        package let name: String
        package let kind: Kind
    }

    package struct Method: Sendable {
        package let parameters: Kind
        package let reply: Kind
    }

    package struct SyntaxError: Error {
        let expected: String
        let found: String
    }

    package private(set) var name = ""
    package private(set) var types: [String: Kind] = [:]
    package private(set) var methods: [String: Method] = [:]
    package private(set) var errors: [String: Kind] = [:]

    private var tokens: ArraySlice<String>

    package init(_ text: String) throws {
        tokens = Self.tokens(of: text)[...]
        try expect("interface")
        name = take()
        while let keyword = tokens.first {
            tokens.removeFirst()
            let member = take()
            switch keyword {
            case "type": types[member] = try kind()
            case "error": errors[member] = try kind()
            case "method":
                let parameters = try kind()
                try expect("->")
                methods[member] = Method(parameters: parameters, reply: try kind())
            default: throw SyntaxError(expected: "a member", found: keyword)
            }
        }
    }

    private static func tokens(of text: String) -> [String] {
        var tokens: [String] = []
        for line in text.split(separator: "\n") {
            var rest = line.prefix { $0 != "#" }
            while let first = rest.first {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "." || $0 == "_" }
                if first.isWhitespace {
                    rest.removeFirst()
                } else if !word.isEmpty {
                    tokens.append(String(word))
                    rest.removeFirst(word.count)
                } else {
                    let symbol = rest.hasPrefix("->") || rest.hasPrefix("[]") ? rest.prefix(2) : rest.prefix(1)
                    tokens.append(String(symbol))
                    rest.removeFirst(symbol.count)
                }
            }
        }
        return tokens
    }

    private mutating func take() -> String { tokens.popFirst() ?? "" }

    private mutating func expect(_ token: String) throws {
        let found = take()
        if found != token { throw SyntaxError(expected: token, found: found) }
    }

    private mutating func kind() throws -> Kind {
        switch take() {
        case "?": .optional(try kind())
        case "[]": .array(try kind())
        case "bool": .bool
        case "int": .int
        case "float": .float
        case "string": .string
        case "(": try objectOrEnumeration()
        case let name where name.first?.isUppercase == true: .named(name)
        case let other: throw SyntaxError(expected: "a type", found: other)
        }
    }

    private mutating func objectOrEnumeration() throws -> Kind {
        var fields: [Field] = []
        var cases: [String] = []
        while tokens.first != ")" {
            let name = take()
            if tokens.first == ":" {
                tokens.removeFirst()
                fields.append(Field(name: name, kind: try kind()))
            } else {
                cases.append(name)
            }
            guard tokens.first == "," else { break }
            tokens.removeFirst()
        }
        try expect(")")
        return cases.isEmpty ? .object(fields) : .enumeration(cases)
    }
}

extension InterfaceDefinition {
    /// The kind that a name stands for.
    package func resolve(_ kind: Kind) -> Kind {
        switch kind {
        case .named(let name): types[name].map(resolve) ?? kind
        case .bool, .int, .float, .string, .optional, .array, .enumeration, .object: kind
        }
    }

    /// Values of a kind: between them every case of every enumeration, and every optional field both there and left
    /// out. Texts are times, so that they fit wherever one may stand.
    package func samples(of kind: Kind) -> [any Sendable] {
        switch resolve(kind) {
        case .bool: [true, false]
        case .int: [7]
        case .float: [1.5]
        case .string: ["2026-03-01T14:02:11.042Z"]
        case .optional(let kind): samples(of: kind)
        case .array(let element): [[any Sendable](), samples(of: element)]
        case .enumeration(let cases): cases
        case .named(let name): fatalError("\(name) is not declared")
        case .object(let fields): samples(of: fields)
        }
    }

    private func samples(of fields: [Field]) -> [any Sendable] {
        let full = fields.reduce(into: [String: any Sendable]()) { $0[$1.name] = samples(of: $1.kind).last }
        var objects = [full, full.filter { name, _ in !fields.contains { $0.name == name && $0.isOptional } }]
        for field in fields {
            for value in samples(of: field.kind) { objects.append(full.merging([field.name: value]) { $1 }) }
        }
        return objects
    }
}

extension InterfaceDefinition.Field {
    package var isOptional: Bool {
        if case .optional = kind { true } else { false }
    }
}
