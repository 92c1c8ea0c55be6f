// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlinkDefinition

/// Writes an interface as Swift: an enumeration without cases, which has its types, methods and errors.
///
/// A text that the comment says is RFC 3339 is a `Timestamp`. A number whose name ends in "Milliseconds" is a
/// `Duration`, named without that. An enumeration whose comment says that others may be added is a structure, so that a
/// client that does not know a value passes it on. One that has the values of a type of an interface written before is
/// that type.
package struct SwiftWriter {
    let definition: InterfaceDefinition
    /// The named enumerations of the interfaces before this one, by their values.
    private let known: [[String]: String]
    /// Whether it becomes a part of the module that has the protocols.
    private let isWithinVarlink: Bool
    /// Who may use it: other programs the interfaces of the daemon, and nobody else the others.
    let access: String
    let text = Output()

    /// The name in Swift of an interface: "ConnectionsAPI" for "org.dialtone.Connections".
    static func name(of definition: InterfaceDefinition) -> String {
        let last = definition.name.split(separator: ".").last ?? ""
        return "\(last.prefix(1).uppercased())\(last.dropFirst())API"
    }

    /// The named enumerations of an interface, by their values.
    package static func enumerations(of definition: InterfaceDefinition) -> [[String]: String] {
        definition.types.reduce(into: [:]) { found, type in
            if case .enumeration(let values) = type.kind { found[values] = "\(name(of: definition)).\(type.name)" }
        }
    }

    /// Writes `definition`.
    ///
    /// - Parameters:
    ///   - source: its text.
    ///   - known: the named enumerations of other interfaces, by their values.
    ///   - module: the module that it becomes a part of.
    package static func write(
        _ definition: InterfaceDefinition, source: String, known: [[String]: String], module: String
    ) -> String {
        let writer = SwiftWriter(definition, known, module)
        writer.write(source)
        return writer.text.text
    }

    private init(_ definition: InterfaceDefinition, _ known: [[String]: String], _ module: String) {
        (self.definition, self.known) = (definition, known)
        isWithinVarlink = module == "DialtoneVarlink"
        access = module == "DialtoneAPI" ? "public" : "package"
    }

    // MARK: - The parts

    private func write(_ source: String) {
        text.line("// Made of \(definition.name).varlink by varlink-swift.")
        text.line()
        if !isWithinVarlink {
            text.line("\(access) import DialtoneVarlink")
            text.line()
        }
        text.comment(definition.comment)
        text.open("\(access) enum \(Self.name(of: definition)) {") {
            text.comment(["The interface's name."])
            text.line("\(access) static let name = \(quoted(definition.name))")
            text.comment(["The interface's definition in Varlink's language."])
            text.line("\(access) static let description = ##\"\"\"")
            for line in source.split(separator: "\n", omittingEmptySubsequences: false) { text.line(String(line)) }
            text.line("\"\"\"##")
        }
        text.line()
        text.open("extension \(Self.name(of: definition)) {") {
            for type in definition.types { declare(type) }
            for method in definition.methods { declare(method) }
            for error in definition.errors {
                object(
                    error.name, error.kind.fields, error.comment, conforms: "VarlinkErrorReply",
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
                type.name, fields, type.comment)
        case .bool, .int, .float, .string, .optional, .array, .named:
            text.comment(type.comment)
            text.line("\(access) typealias \(type.name) = \(swift(type.kind, type.name, isTime: false))")
        }
    }

    private func declare(_ method: InterfaceDefinition.Method) {
        text.comment(method.comment)
        text.open("\(access) enum \(method.name): VarlinkMethod {") {
            text.comment(["The method's name."])
            text.line("\(access) static let name = \(quoted("\(definition.name).\(method.name)"))")
            if method.isStream {
                text.comment(["It answers with a stream."])
                text.line("\(access) static let isStream = true")
            }
            if method.takesDescriptors {
                text.comment(["Descriptors ride on a call."])
                text.line("\(access) static let takesDescriptors = true")
            }
            part("Parameters", method.parameters, ["What a call has."])
            part("Reply", method.reply, ["What a reply has."])
        }
        text.line()
    }

    private func part(_ name: String, _ fields: [InterfaceDefinition.Field], _ comment: [String]) {
        guard fields.isEmpty else { return object(name, fields, comment) }
        text.comment(["Nothing."])
        text.line("\(access) typealias \(name) = VarlinkEmpty")
    }

    private func object(
        _ name: String, _ fields: [InterfaceDefinition.Field], _ comment: [String],
        conforms protocolName: String = "VarlinkObject", constant: (name: String, value: String)? = nil
    ) {
        text.comment(comment)
        text.open("\(access) struct \(name): \(protocolName) {") {
            if let constant {
                text.comment(["Its name with the interface."])
                text.line("\(access) static let \(constant.name) = \(quoted(constant.value))")
            }
            for field in fields { nested(field) }
            for field in fields {
                text.comment(definition.remark(on: field))
                text.line("\(access) var \(swiftName(of: field)): \(swift(field))")
            }
            text.comment(["Made of its fields."])
            let parameters = fields.map { "\(swiftName(of: $0)): \(swift($0))\($0.isOptional ? " = nil" : "")" }
            text.open("\(access) init(\(parameters.joined(separator: ", "))) {") {
                for name in fields.map(swiftName) { text.line("self.\(name) = \(name)") }
            }
            coding(fields)
        }
        text.line()
    }

    // MARK: - Enumerations

    private func enumeration(_ name: String, _ values: [String], _ comment: [String]) {
        if let other = known[values] {
            text.comment(comment)
            return text.line("\(access) typealias \(name) = \(other)")
        }
        let meanings = Meanings(of: values, in: comment)
        text.comment(meanings.introduction)
        if comment.mayGrow {
            text.open("\(access) struct \(name): RawRepresentable, Hashable, Sendable {") {
                text.comment(["The value as it is written."])
                text.line("\(access) let rawValue: String")
                text.comment(["The one that is written so, known or not."])
                text.line("\(access) init(rawValue: String) { self.rawValue = rawValue }")
                for value in values {
                    text.comment(meanings[value])
                    text.line("\(access) static let \(escaped(value)) = \(name)(rawValue: \(quoted(value)))")
                }
                text.comment(["Those that are known."])
                let all = values.map { ".\(escaped($0))" }.joined(separator: ", ")
                text.line("\(access) static let known: [\(name)] = [\(all)]")
            }
        } else {
            text.open("\(access) enum \(name): String, Hashable, Sendable, CaseIterable {") {
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
        text.open("\(access) enum ErrorCode: String, Hashable, Sendable, CaseIterable {") {
            for error in definition.errors {
                text.comment(error.comment)
                text.line(
                    "case \(escaped(error.name.prefix(1).lowercased() + error.name.dropFirst())) = "
                        + quoted("\(definition.name).\(error.name)"))
            }
        }
    }

    /// Declares the type of a field that has none of its own name.
    private func nested(_ field: InterfaceDefinition.Field) {
        switch field.kind.element {
        case .enumeration(let values): enumeration(typeName(of: field), values, field.comment)
        case .object(let fields):
            object(typeName(of: field), fields, field.comment)
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
        if field.isDuration { return field.isOptional ? "Duration?" : "Duration" }
        return swift(field.kind, typeName(of: field), isTime: field.isTime)
    }

    /// The name of a field's property.
    func swiftName(of field: InterfaceDefinition.Field) -> String { escaped(field.nameWithoutUnit) }

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

    func escaped(_ name: String) -> String {
        Self.reserved.contains(name) ? "`\(name)`" : name
    }

    func quoted(_ text: String) -> String { "\"\(text)\"" }

    /// The words that are no names ("The Swift Programming Language", Lexical Structure, Keywords).
    private static let reserved: Set = [
        "Any", "Protocol", "Self", "Type", "as", "associatedtype", "await", "break", "case", "catch", "class",
        "continue", "default", "defer", "deinit", "do", "else", "enum", "extension", "fallthrough", "false",
        "fileprivate", "for", "func", "guard", "if", "import", "in", "init", "inout", "internal", "is", "let", "nil",
        "operator", "precedencegroup", "private", "protocol", "public", "repeat", "rethrows", "return", "self",
        "static", "struct", "subscript", "super", "switch", "throw", "throws", "true", "try", "typealias", "var",
        "where", "while",
    ]
}
