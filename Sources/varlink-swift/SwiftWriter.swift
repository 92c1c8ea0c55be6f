// SPDX-License-Identifier: Apache-2.0

internal import VarlinkDefinition

/// Writes an interface as Swift: an enumeration without cases, which has its types, methods and errors.
///
/// A text that the comment says is RFC 3339 is a `Timestamp`. An enumeration whose comment says that others may be
/// added is a structure, so that a client that does not know a value passes it on. One that has the values of a type of
/// an interface written before is that type.
struct SwiftWriter {
    let definition: InterfaceDefinition
    /// The named enumerations of the interfaces before this one, by their values.
    private let known: [[String]: String]
    /// What a caller sends, whose fields are checked.
    private var sent: Set<String> = []
    let text = Output()

    /// The name in Swift of an interface: "ConnectionsAPI" for "org.dialtone.Connections".
    static func name(of definition: InterfaceDefinition) -> String {
        "\(definition.name.split(separator: ".").last ?? "")API"
    }

    /// The named enumerations of an interface, by their values.
    static func enumerations(of definition: InterfaceDefinition) -> [[String]: String] {
        definition.types.reduce(into: [:]) { found, type in
            if case .enumeration(let values) = type.kind { found[values] = "\(name(of: definition)).\(type.name)" }
        }
    }

    /// Writes `definition`.
    ///
    /// - Parameters:
    ///   - source: its text.
    ///   - known: the named enumerations of other interfaces, by their values.
    static func write(
        _ definition: InterfaceDefinition, source: String, known: [[String]: String]
    ) -> String {
        let writer = SwiftWriter(definition, known: known)
        writer.write(source)
        return writer.text.text
    }

    private init(_ definition: InterfaceDefinition, known: [[String]: String]) {
        self.definition = definition
        self.known = known
        for method in definition.methods { for field in method.parameters { markSent(field.kind) } }
    }

    private mutating func markSent(_ kind: InterfaceDefinition.Kind) {
        switch kind.element {
        case .bool, .int, .float, .string, .enumeration, .optional, .array: break
        case .object(let fields): for field in fields { markSent(field.kind) }
        case .named(let name):
            guard sent.insert(name).inserted, let type = definition.type(name) else { return }
            markSent(type)
        }
    }

    // MARK: - The parts

    private func write(_ source: String) {
        text.line("// Made of \(definition.name).varlink by varlink-swift.")
        text.line()
        text.line("package import Platform")
        text.line("public import Varlink")
        text.line()
        text.comment(definition.comment)
        text.open("public enum \(Self.name(of: definition)) {") {
            text.comment(["The interface's name."])
            text.line("public static let name = \(quoted(definition.name))")
            text.comment(["The interface's definition in Varlink's language."])
            text.line("public static let description = ##\"\"\"")
            for line in source.split(separator: "\n", omittingEmptySubsequences: false) { text.line(String(line)) }
            text.line("\"\"\"##")
        }
        text.line()
        text.open("extension \(Self.name(of: definition)) {") {
            for type in definition.types { declare(type) }
            for method in definition.methods { declare(method) }
            for error in definition.errors {
                object(
                    error.name, fields(error.kind), error.comment, ["VarlinkErrorReply", "Hashable"],
                    constant: ("errorName", "\(definition.name).\(error.name)"))
            }
            errorCodes()
        }
    }

    private func declare(_ type: InterfaceDefinition.Declaration) {
        switch type.kind {
        case .enumeration(let values): enumeration(type.name, values, type.comment)
        case .object(let fields):
            object(
                type.name, fields, type.comment,
                sent.contains(type.name) ? ["VarlinkParameters", "Hashable"] : ["Codable", "Hashable", "Sendable"])
        case .bool, .int, .float, .string, .optional, .array, .named:
            text.comment(type.comment)
            text.line("public typealias \(type.name) = \(swift(type.kind, type.name, isTime: false))")
        }
    }

    private func declare(_ method: InterfaceDefinition.Method) {
        text.comment(method.comment)
        text.open("public enum \(method.name): VarlinkMethod {") {
            text.comment(["The method's name."])
            text.line("public static let name = \(quoted("\(definition.name).\(method.name)"))")
            if method.isStream {
                text.comment(["It answers with a stream."])
                text.line("public static let isStream = true")
            }
            if method.takesDescriptors {
                text.comment(["Descriptors ride on a call."])
                text.line("public static let takesDescriptors = true")
            }
            part("Parameters", method.parameters, ["What a call has."], ["VarlinkParameters", "Hashable"])
            part("Reply", method.reply, ["What a reply has."], ["Codable", "Hashable", "Sendable"])
        }
        text.line()
    }

    private func part(
        _ name: String, _ fields: [InterfaceDefinition.Field], _ comment: [String], _ protocols: [String]
    ) {
        guard fields.isEmpty else { return object(name, fields, comment, protocols) }
        text.comment(["Nothing."])
        text.line("public typealias \(name) = VarlinkEmpty")
    }

    private func fields(_ kind: InterfaceDefinition.Kind) -> [InterfaceDefinition.Field] {
        if case .object(let fields) = kind { fields } else { [] }
    }

    private func object(
        _ name: String, _ fields: [InterfaceDefinition.Field], _ comment: [String], _ protocols: [String],
        constant: (name: String, value: String)? = nil
    ) {
        text.comment(comment)
        let isRead = sent.contains(name) && isReadable(fields)
        let all = protocols + (isRead ? ["VarlinkReadable"] : [])
        text.open("public struct \(name): \(all.joined(separator: ", ")) {") {
            if let constant {
                text.comment(["Its name with the interface."])
                text.line("public static let \(constant.name) = \(quoted(constant.value))")
            }
            for field in fields { nested(field) }
            for field in fields {
                text.comment(remark(on: field))
                text.line("public var \(escaped(field.name)): \(swift(field))")
            }
            if protocols.contains("VarlinkParameters") { keys(of: fields) }
            text.comment(["Made of its fields."])
            let parameters = fields.map { "\($0.name): \(swift($0))\($0.isOptional ? " = nil" : "")" }
            text.open("public init(\(parameters.joined(separator: ", "))) {") {
                for field in fields { text.line("self.\(field.name) = \(escaped(field.name))") }
            }
            if isRead { reading(fields) }
            if definition.type(name) != nil, !sent.contains(name) { keeping(fields, of: name) }
        }
        text.line()
    }

    /// The coding keys, by which fields that are none are refused, here and within.
    private func keys(of fields: [InterfaceDefinition.Field]) {
        text.comment(["The fields there are."])
        text.line("public enum CodingKeys: String, CodingKey, CaseIterable {")
        text.line("    case \(fields.map { escaped($0.name) }.joined(separator: ", "))")
        text.line("}")
        let objects = fields.compactMap { field in objectName(field.kind).map { (field.name, $0) } }
        guard !objects.isEmpty else { return }
        text.comment(["Their fields are checked as well."])
        text.open("public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {") {
            text.line("switch field {")
            for (field, type) in objects { text.line("case .\(field): \(type).self") }
            if objects.count < fields.count { text.line("default: nil") }
            text.line("}")
        }
    }

    /// Whether an object can be read out of something other than a message.
    private func isReadable(_ fields: [InterfaceDefinition.Field]) -> Bool {
        !fields.isEmpty && fields.allSatisfy { field in reader(of: field.kind) != nil }
    }

    /// What reads a field of that kind; `nil` for one that must be there, and where nothing does.
    private func reader(of kind: InterfaceDefinition.Kind) -> String? {
        switch kind {
        case .optional(.bool): return "flag"
        case .optional(.int): return "integer"
        case .optional(.float): return "number"
        case .optional(.string): return "text"
        case .optional(.array(.string)): return "texts"
        default: break
        }
        guard kind.isOptional, case .object(let fields) = definition.resolve(kind.element), isReadable(fields) else {
            return nil
        }
        return kind.isArray ? "objects" : "object"
    }

    private func reading(_ fields: [InterfaceDefinition.Field]) {
        text.comment(["Read out of something other than a message."])
        text.open("public init(from reader: inout some VarlinkFieldReader) {") {
            for field in fields {
                text.line("self.\(field.name) = reader.\(reader(of: field.kind) ?? "")(\(quoted(field.name)))")
            }
        }
    }

    /// The type of an object, or of each in an array.
    private func objectName(_ kind: InterfaceDefinition.Kind) -> String? {
        guard case .named(let name) = kind.element, case .object = definition.resolve(kind.element) else { return nil }
        return name
    }

    // MARK: - Enumerations

    private func enumeration(_ name: String, _ values: [String], _ comment: [String]) {
        if let other = known[values] {
            text.comment(comment)
            return text.line("public typealias \(name) = \(other)")
        }
        let meanings = Meanings(of: values, in: comment)
        text.comment(meanings.introduction)
        if says("Others may be added", comment) {
            text.open("public struct \(name): RawRepresentable, Codable, Hashable, Sendable {") {
                text.comment(["The value as it is written."])
                text.line("public let rawValue: String")
                text.comment(["The one that is written so, known or not."])
                text.line("public init(rawValue: String) { self.rawValue = rawValue }")
                for value in values {
                    text.comment(meanings[value])
                    text.line("public static let \(escaped(value)) = \(name)(rawValue: \(quoted(value)))")
                }
                text.comment(["Those that are known."])
                let all = values.map { ".\($0)" }.joined(separator: ", ")
                text.line("public static let known: [\(name)] = [\(all)]")
            }
        } else {
            text.open("public enum \(name): String, Codable, Hashable, Sendable, CaseIterable {") {
                for value in values {
                    text.comment(meanings[value])
                    text.line("case \(escaped(value))")
                }
            }
        }
        text.line()
    }

    /// The errors by their names, for a `switch`.
    private func errorCodes() {
        guard !definition.errors.isEmpty else { return }
        text.comment(["The errors, to be told apart. A raw value is a name with the interface."])
        text.open("public enum ErrorCode: String, Hashable, Sendable, CaseIterable {") {
            for error in definition.errors {
                text.comment(error.comment)
                text.line(
                    "case \(error.name.prefix(1).lowercased() + error.name.dropFirst()) = "
                        + quoted("\(definition.name).\(error.name)"))
            }
        }
    }

    /// Declares the type of a field that has none of its own name.
    private func nested(_ field: InterfaceDefinition.Field) {
        switch field.kind.element {
        case .enumeration(let values): enumeration(typeName(of: field), values, field.comment)
        case .object(let fields):
            object(typeName(of: field), fields, field.comment, ["Codable", "Hashable", "Sendable"])
        case .bool, .int, .float, .string, .optional, .array, .named: break
        }
    }

    // MARK: - Types and names

    private func typeName(of field: InterfaceDefinition.Field) -> String {
        let name = field.name.prefix(1).uppercased() + field.name.dropFirst()
        // `Protocol` cannot be named as a member type.
        return name == "Protocol" || name == "Type" ? "Field\(name)" : name
    }

    func swift(_ field: InterfaceDefinition.Field) -> String {
        swift(field.kind, typeName(of: field), isTime: isTime(field))
    }

    func isTime(_ field: InterfaceDefinition.Field) -> Bool {
        says("RFC 3339", field.comment)
    }

    /// Whether a comment says something, on one line or over two.
    private func says(_ words: String, _ comment: [String]) -> Bool { comment.joined(separator: " ").contains(words) }

    private func swift(_ kind: InterfaceDefinition.Kind, _ name: String, isTime: Bool) -> String {
        switch kind {
        case .bool: "Bool"
        case .int: "Int"
        case .float: "Double"
        case .string: isTime ? "Timestamp" : "String"
        case .optional(let kind): "\(swift(kind, name, isTime: isTime))?"
        case .array(let kind): "[\(swift(kind, name, isTime: isTime))]"
        case .named(let name): name
        case .enumeration, .object: name
        }
    }

    /// What is said of a field: there, or of one of its name elsewhere in the interface.
    private func remark(on field: InterfaceDefinition.Field) -> [String] {
        if !field.comment.isEmpty { return field.comment }
        let all = definition.types.flatMap { fields($0.kind) } + definition.methods.flatMap { $0.parameters + $0.reply }
        return all.first { $0.name == field.name && !$0.comment.isEmpty }?.comment ?? []
    }

    func escaped(_ name: String) -> String {
        Self.reserved.contains(name) ? "`\(name)`" : name
    }

    private func quoted(_ text: String) -> String { "\"\(text)\"" }

    private static let reserved: Set = [
        "as", "break", "case", "catch", "class", "continue", "default", "defer", "do", "else", "enum", "extension",
        "false", "for", "func", "if", "import", "in", "init", "inout", "internal", "is", "let", "nil", "operator",
        "private", "protocol", "public", "repeat", "return", "self", "static", "struct", "switch", "throw", "true",
        "try", "typealias", "var", "where", "while",
    ]
}
