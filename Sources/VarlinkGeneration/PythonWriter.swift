// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlinkDefinition

/// Writes interfaces as one module of Python, for `dialtone_client`: types and errors are dataclasses, a method is the
/// dataclass of its parameters.
///
/// A string is a `datetime` if its comment names RFC 3339. A number whose name ends in "Milliseconds" is a `timedelta`,
/// named without that ending. Names of fields are in snake case. What two interfaces declare alike is one class.
package struct PythonWriter {
    private let text = Output()
    /// All declarations, to find a name that two interfaces declare differently.
    private var declared: [String: InterfaceDefinition.Kind] = [:]
    /// Each error of each interface: its whole name, its class, and the first sentence of its comment.
    private var errors: [(name: String, type: String, sentence: String)] = []

    /// Writes `definitions`; those that others refer to come first.
    ///
    /// - Throws: ``DefinitionError`` for a name that stands for two things.
    package static func write(_ definitions: [InterfaceDefinition]) throws(DefinitionError) -> String {
        var writer = PythonWriter()
        writer.head(definitions)
        for definition in definitions {
            for type in definition.types { try writer.declare(type, in: definition) }
            for method in definition.methods { try writer.declare(method, in: definition) }
            for error in definition.errors { try writer.declare(error: error, in: definition) }
        }
        writer.text.line()
        writer.text.line()
        writer.text.indent("ERRORS: typing.Dict[str, _v.KnownError] = {") {
            for error in writer.errors {
                writer.text.indent("\"\(error.name)\": (") {
                    writer.text.line("\(error.type),")
                    let lines = writer.wrapped(writer.escaped(error.sentence))
                    for line in lines.dropLast() { writer.text.line("\"\(line) \"") }
                    writer.text.line("\"\(lines.last ?? "")\",")
                }
                writer.text.line("),")
            }
        }
        writer.text.line("}")
        writer.text.line()
        writer.text.indent("__all__ = [") {
            for line in writer.wrapped(writer.declared.keys.sorted().map { "\"\($0)\"," }.joined(separator: " ")) {
                writer.text.line(line)
            }
        }
        writer.text.line("]")
        return writer.text.text
    }

    private func head(_ definitions: [InterfaceDefinition]) {
        text.line("# SPDX-License-Identifier: Apache-2.0")
        text.line("# Generated from the .varlink files; Clients/Python/generate makes it again.")
        let names = definitions.map(\.name).joined(separator: ", ")
        documentation(["The types, methods and errors of \(names)."])
        text.line()
        for module in ["dataclasses", "datetime", "typing"] { text.line("import \(module)") }
        text.line()
        text.line("from . import _values as _v")
        text.line("from .errors import Refused as _Refused")
    }

    // MARK: - Declarations

    private mutating func declare(
        _ type: InterfaceDefinition.Declaration, in definition: InterfaceDefinition
    ) throws(DefinitionError) {
        switch type.kind {
        case .enumeration(let values): try enumeration(type.name, values, type.comment)
        case .object(let fields): try object(type.name, fields, type.comment, base: "_v.Value", in: definition)
        case .bool, .int, .float, .string, .optional, .array, .named: break
        }
    }

    private mutating func declare(
        _ method: InterfaceDefinition.Method, in definition: InterfaceDefinition
    ) throws(DefinitionError) {
        var reply = "_v.Nothing"
        if !method.reply.isEmpty {
            reply = "\(method.name)Reply"
            try object(
                reply, method.reply, ["What the agent answers to ``\(method.name)``."], base: "_v.Value",
                in: definition,
                owner: method.name)
        }
        try object(
            method.name, method.parameters, method.comment,
            base: "_v.\(method.isStream ? "StreamMethod" : "Method")[\(reply)]", in: definition,
            constants: ["_method = \"\(definition.name).\(method.name)\"", "_reply = \(reply)"])
    }

    private mutating func declare(
        error: InterfaceDefinition.Declaration, in definition: InterfaceDefinition
    ) throws(DefinitionError) {
        let names = error.kind.fields.map(pythonName)
        if let name = names.first(where: Self.ofEachError.contains) {
            throw DefinitionError(
                "\(error.name) has a parameter \(name), which each error of the library for Python has")
        }
        try object(error.name, error.kind.fields, error.comment, base: "_Refused", in: definition)
        let sentence = error.comment.joined(separator: " ").split(separator: ". ").first ?? ""
        let ended = sentence.hasSuffix(".") ? sentence.dropLast() : sentence
        errors.append(("\(definition.name).\(error.name)", error.name, String(ended)))
    }

    /// Returns whether it is still to be written: what an earlier interface declares alike is there.
    private mutating func isNew(_ name: String, _ kind: InterfaceDefinition.Kind) throws(DefinitionError) -> Bool {
        if let earlier = declared.updateValue(kind, forKey: name) {
            let isSame = earlier.withoutComments == kind.withoutComments
            guard isSame else { throw DefinitionError("\(name) stands for two things, and Python would have one") }
            return false
        }
        return true
    }

    private mutating func enumeration(
        _ name: String, _ values: [String], _ comment: [String]
    ) throws(DefinitionError) {
        guard try isNew(name, .enumeration(values)) else { return }
        let meanings = Meanings(of: values, in: comment)
        text.line()
        text.line()
        text.indent("class \(name)(_v.\(comment.mayGrow ? "Open" : "")Enumeration):") {
            documentation(meanings.introduction)
            text.line()
            for value in values {
                text.line("\(snake(value).uppercased()) = \"\(value)\"")
                documentation(meanings[value])
            }
        }
    }

    private mutating func object(
        _ name: String, _ fields: [InterfaceDefinition.Field], _ comment: [String], base: String,
        in definition: InterfaceDefinition, owner: String? = nil, constants: [String] = []
    ) throws(DefinitionError) {
        for field in fields { try nested(field, of: owner ?? name, in: definition) }
        guard try isNew(name, .object(fields)) else { return }
        // An exception is changed when it is raised, and equals itself alone.
        let options = base == "_Refused" ? "eq=False, repr=False" : "frozen=True, repr=False"
        text.line()
        text.line()
        text.line("@dataclasses.dataclass(\(options))")
        text.indent("class \(name)(\(base)):") {
            documentation(comment)
            text.line()
            for field in fields.filter({ !$0.isOptional }) + fields.filter(\.isOptional) {
                let type = python(field, of: owner ?? name)
                text.line("\(pythonName(of: field)): \(type)\(field.isOptional ? " = None" : "")")
                documentation(definition.remark(on: field))
            }
            for constant in constants { text.line(constant) }
            guard !fields.isEmpty else { return }
            text.indent("_wire = (") {
                for field in fields {
                    let reading = codec(field, of: owner ?? name, in: definition)
                    let isOptional = field.isOptional ? ", optional=True" : ""
                    text.line("_v.Field(\"\(pythonName(of: field))\", \"\(field.name)\", \(reading)\(isOptional)),")
                }
            }
            text.line(")")
        }
    }

    /// Declares the type of a field that has none of its own name.
    private mutating func nested(
        _ field: InterfaceDefinition.Field, of owner: String, in definition: InterfaceDefinition
    ) throws(DefinitionError) {
        let name = typeName(of: field, of: owner)
        switch field.kind.element {
        case .enumeration(let values): try enumeration(name, values, field.comment)
        case .object(let fields): try object(name, fields, field.comment, base: "_v.Value", in: definition)
        case .bool, .int, .float, .string, .optional, .array, .named: break
        }
    }

    // MARK: - Types and names

    private func typeName(of field: InterfaceDefinition.Field, of owner: String) -> String {
        owner + field.name.prefix(1).uppercased() + field.name.dropFirst()
    }

    private func python(_ field: InterfaceDefinition.Field, of owner: String) -> String {
        func python(_ kind: InterfaceDefinition.Kind) -> String {
            switch kind {
            case .bool: "bool"
            case .int: field.isDuration ? "datetime.timedelta" : "int"
            case .float: "float"
            case .string: field.isTime ? "datetime.datetime" : "str"
            case .optional(let kind): "typing.Optional[\(python(kind))]"
            case .array(let kind): "typing.Sequence[\(python(kind))]"
            case .named(let name): name
            case .enumeration, .object: typeName(of: field, of: owner)
            }
        }
        return python(field.kind)
    }

    /// How a field is read and written.
    private func codec(
        _ field: InterfaceDefinition.Field, of owner: String, in definition: InterfaceDefinition
    ) -> String {
        func codec(_ kind: InterfaceDefinition.Kind) -> String {
            switch kind {
            case .bool: return "_v.FLAG"
            case .int: return field.isDuration ? "_v.DURATION" : "_v.INTEGER"
            case .float: return "_v.NUMBER"
            case .string: return field.isTime ? "_v.TIME" : "_v.TEXT"
            case .optional(let kind): return codec(kind)
            case .array(let kind): return "_v.Array(\(codec(kind)))"
            case .named, .enumeration, .object:
                let name = if case .named(let name) = kind { name } else { typeName(of: field, of: owner) }
                if case .enumeration = definition.resolve(kind) { return "_v.Choice(\(name))" }
                return "_v.Nested(\(name))"
            }
        }
        return codec(field.kind)
    }

    private func pythonName(of field: InterfaceDefinition.Field) -> String {
        let name = snake(field.nameWithoutUnit)
        return Self.reserved.contains(name) ? "\(name)_" : name
    }

    /// "supportsIPv4" as "supports_ipv4".
    private func snake(_ name: String) -> String {
        var (snake, wasUpper) = ("", true)
        for character in name {
            if character.isUppercase, !wasUpper { snake += "_" }
            snake += character.lowercased()
            wasUpper = character.isUppercase
        }
        return snake
    }

    /// A docstring, in lines of at most 100 columns before they are indented.
    private func documentation(_ comment: [String]) {
        let paragraphs = comment.split(separator: "").map { $0.joined(separator: " ") }
        guard let first = paragraphs.first else { return }
        let mark = comment.contains { $0.contains("\\") } ? "r\"\"\"" : "\"\"\""
        var lines = wrapped(mark + first.prefix(1).uppercased() + first.dropFirst())
        for paragraph in paragraphs.dropFirst() { lines += [""] + wrapped(paragraph) }
        if lines.count == 1, !lines[0].hasSuffix("\"") {
            lines[0] += "\"\"\""
        } else {
            lines.append("\"\"\"")
        }
        for line in lines { text.line(line) }
    }

    /// The content of a string in quotation marks.
    private func escaped(_ sentence: String) -> String {
        sentence.reduce(into: "") { text, character in
            if character == "\"" || character == "\\" { text.append("\\") }
            text.append(character)
        }
    }

    private func wrapped(_ paragraph: String) -> [String] {
        paragraph.split(separator: " ").reduce(into: []) { lines, word in
            if let last = lines.last, last.count + word.count < 100 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
    }

    /// The attributes of each error: those of `Refused` in `errors.py`, and of Python's exceptions.
    private static let ofEachError: Set = ["args", "call", "code", "error_name", "is_passing", "parameters"]

    /// The words that are no names ("The Python Language Reference", 2.3.1), in lower case.
    private static let reserved: Set = [
        "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
        "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
        "raise", "return", "try", "while", "with", "yield",
    ]
}

extension InterfaceDefinition.Kind {
    /// What it is, whatever is said about it.
    fileprivate var withoutComments: Self {
        switch self {
        case .bool, .int, .float, .string, .named, .enumeration: self
        case .optional(let kind): .optional(kind.withoutComments)
        case .array(let kind): .array(kind.withoutComments)
        case .object(let fields):
            .object(
                fields.map {
                    .init(name: $0.name, kind: $0.kind.withoutComments, comment: [], hasOwnComment: $0.hasOwnComment)
                })
        }
    }
}
