// SPDX-License-Identifier: Apache-2.0

/// The words and signs of a definition, read in order.
struct DefinitionReader {
    private struct Token {
        let text: Substring
        let line: Int
    }

    /// Comments among them, each with its sign.
    private var tokens: ArraySlice<Token>

    init(_ text: String) {
        var tokens: [Token] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            var rest = line[...]
            while let first = rest.first {
                let length: Int
                if first.isWhitespace {
                    rest.removeFirst()
                    continue
                } else if first == "#" {
                    length = rest.count
                } else if rest.hasPrefix("->") || rest.hasPrefix("[]") {
                    length = 2
                } else {
                    length = max(rest.prefix { $0.isLetter || $0.isNumber || $0 == "." || $0 == "_" }.count, 1)
                }
                tokens.append(Token(text: rest.prefix(length), line: number + 1))
                rest = rest.dropFirst(length)
            }
        }
        self.tokens = tokens[...]
    }

    /// The next word or sign; `nil` at the end.
    var next: String? {
        tokens.first { !$0.text.hasPrefix("#") }.map { String($0.text) }
    }

    /// The comment that stands here: its lines, without those before a line that is empty.
    mutating func comment() -> [String] {
        var lines: [String] = []
        var last = 0
        while let token = tokens.first, token.text.hasPrefix("#") {
            tokens.removeFirst()
            if token.line > last + 1 { lines = [] }
            last = token.line
            lines.append(String(token.text.dropFirst(token.text.hasPrefix("# ") ? 2 : 1)))
        }
        if let next = tokens.first, next.line > last + 1 { return [] }
        return lines
    }

    @discardableResult mutating func take() -> String {
        _ = comment()
        return tokens.popFirst().map { String($0.text) } ?? ""
    }

    mutating func takeName(_ expected: String) throws(DefinitionError) -> String {
        guard let first = next?.first, first.isLetter else { throw error(expected, found: next ?? "the end") }
        return take()
    }

    mutating func expect(_ token: String) throws(DefinitionError) {
        guard next == token else { throw error(token, found: next ?? "the end") }
        take()
    }

    func error(_ expected: String, found: String) -> DefinitionError {
        DefinitionError("line \(tokens.first?.line ?? 0): \(found) where \(expected) was expected")
    }

    /// What stands in brackets, which must be fields.
    mutating func fields() throws(DefinitionError) -> [InterfaceDefinition.Field] {
        guard case .object(let fields) = try body() else { throw error("fields", found: "an enumeration") }
        return fields
    }

    /// What stands in brackets: fields, or the names of an enumeration.
    mutating func body() throws(DefinitionError) -> InterfaceDefinition.Kind {
        try expect("(")
        var fields: [InterfaceDefinition.Field] = []
        var names: [String] = []
        while next != ")" {
            let comment = comment()
            let name = try takeName("a field's name")
            if next == ":" {
                take()
                fields.append(
                    .init(
                        name: name, kind: try kind(), comment: comment.isEmpty ? fields.last?.comment ?? [] : comment,
                        hasOwnComment: !comment.isEmpty))
            } else {
                names.append(name)
            }
            guard next == "," else { break }
            take()
        }
        try expect(")")
        guard names.isEmpty || fields.isEmpty else { throw error("fields or names", found: "both") }
        return names.isEmpty ? .object(fields) : .enumeration(names)
    }

    private mutating func kind() throws(DefinitionError) -> InterfaceDefinition.Kind {
        switch next {
        case "(": return try body()
        case "?":
            take()
            return .optional(try kind())
        case "[]":
            take()
            return .array(try kind())
        default: break
        }
        return switch try takeName("a type") {
        case "bool": .bool
        case "int": .int
        case "float": .float
        case "string": .string
        case let name where name.first?.isUppercase == true: .named(name)
        case let name: throw error("a type", found: name)
        }
    }
}
