// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlinkDefinition

// How an object is read and written, field by field, by readers and writers that know nothing of it.

extension SwiftWriter {
    /// Writes what reads an object, and what writes it.
    func coding(_ fields: [InterfaceDefinition.Field]) {
        // Not in the way of fields of any name.
        let required = fields.filter { !$0.isOptional }
        text.comment(["Reads its fields\(required.isEmpty ? "" : "; `nil` where one that must be there is not")."])
        text.open("\(access) init\(required.isEmpty ? "" : "?")(from _fields: inout some VarlinkFieldReader) {") {
            for field in required {
                let lacking = field.kind.isArray ? "lackingElements" : "lacking"
                text.line(
                    "let \(swiftName(of: field)): \(swift(field))? = "
                        + "\(reading(field)) ?? _fields.\(lacking)(\(quoted(field.name)))")
            }
            for field in fields where field.isOptional { text.line("self.\(swiftName(of: field)) = \(reading(field))") }
            guard !required.isEmpty else { return }
            let names = required.map(swiftName)
            text.line("guard \(names.map { "let \($0)" }.joined(separator: ", ")) else { return nil }")
            for name in names { text.line("self.\(name) = \(name)") }
        }
        text.comment(["Writes its fields."])
        text.open("\(access) func write(to _fields: inout some VarlinkFieldWriter) {") {
            for field in fields { write(field) }
        }
    }

    private func reading(_ field: InterfaceDefinition.Field) -> String {
        let isArray = field.kind.isArray
        let method =
            switch definition.resolve(field.kind.element) {
            case .bool: "flag"
            case .int where field.isDuration: "duration"
            case .int: isArray ? "integers" : "integer"
            case .float: "number"
            case .string where field.isTime: "time"
            case .enumeration: isArray ? "choices" : "choice"
            case .object: isArray ? "objects" : "object"
            default: isArray ? "texts" : "text"
            }
        return "_fields.\(method)(\(quoted(field.name)))"
    }

    private func write(_ field: InterfaceDefinition.Field) {
        let name = swiftName(of: field)
        var value = name
        if case .enumeration = definition.resolve(field.kind.element) {
            value = field.kind.isArray ? "\(name).map(\\.rawValue)" : "\(name).rawValue"
        }
        let put = "_fields.put(\(quoted(field.name)), \(value))"
        text.line(field.isOptional ? "if let \(name) { \(put) }" : put)
    }
}
