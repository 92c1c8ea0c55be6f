// SPDX-License-Identifier: Apache-2.0

internal import VarlinkDefinition

// How what is told is kept: in numbered fields, of which each has its number by its name. So a field that comes to the
// definition, wherever it stands there, is kept as well, and changes nothing of what was kept before.

extension SwiftWriter {
    /// How a value of a kind is kept: as what, and what makes it of that.
    private struct Kept {
        let write: (String) -> String
        let read: String
    }

    /// Writes what keeps an object.
    func keeping(_ fields: [InterfaceDefinition.Field], of object: String) {
        let numbers = fields.map { Self.number(of: $0.name) }
        // Of a definition of this project's: the build stops here.
        precondition(Set(numbers).count == numbers.count, "two fields of \(object) have one number: rename one")
        text.comment(["Writes it down, to be kept."])
        // Not in the way of fields of any name.
        text.open("package func write(_ _fields: inout FieldWriter) {") {
            for (field, number) in zip(fields, numbers) { write(field, number) }
        }
        text.comment(["Reads what was written down; throws where a field is missing, or of another kind."])
        text.open("package init(_ _fields: FieldReader) throws(DamagedState) {") {
            for field in fields {
                let type = swift(field)
                text.line(
                    "var \(escaped(field.name)): \(type)\(field.isOptional ? "" : field.kind.isArray ? " = []" : "?")")
            }
            text.line("var _fields = _fields")
            text.open("while let (_number, _value) = try _fields.next() {") {
                text.line("switch _number {")
                for (field, number) in zip(fields, numbers) {
                    let (name, read) = (escaped(field.name), kept(field).read)
                    let all = field.isOptional ? "(\(name) ?? [])" : name
                    let taken = field.kind.isArray ? "\(all) + [\(read)]" : read
                    text.line("case \(number): \(name) = \(taken)")
                }
                text.line("default: break")
                text.line("}")
            }
            let required = fields.filter { !$0.isOptional && !$0.kind.isArray }.map { "let \(escaped($0.name))" }
            if !required.isEmpty {
                text.line("guard \(required.joined(separator: ", ")) else { throw DamagedState() }")
            }
            text.line("self.init(\(fields.map { "\($0.name): \(escaped($0.name))" }.joined(separator: ", ")))")
        }
    }

    private func write(_ field: InterfaceDefinition.Field, _ number: Int) {
        let name = escaped(field.name)
        let put = { (value: String) in "_fields.put(\(number), \(kept(field).write(value)))" }
        if field.kind.isArray {
            let all = field.isOptional ? "\(name) ?? []" : name
            text.line("for _value in \(all) { \(put("_value")) }")
        } else if field.isOptional {
            text.line("if let \(name) { \(put(name)) }")
        } else {
            text.line(put(name))
        }
    }

    private func kept(_ field: InterfaceDefinition.Field) -> Kept {
        switch definition.resolve(field.kind.element) {
        case .string where isTime(field):
            Kept(write: { "signed: \($0).milliseconds" }, read: ".init(milliseconds: try _value.signed())")
        case .bool: Kept(write: { "\($0) ? 1 : 0" }, read: "try _value.unsigned() != 0")
        case .int: Kept(write: { "signed: Int64(\($0))" }, read: "Int(try _value.signed())")
        case .float: Kept(write: { "\($0).bitPattern" }, read: "Double(bitPattern: try _value.unsigned())")
        case .enumeration: Kept(write: { "\($0).rawValue" }, read: "try _value.choice()")
        case .object: Kept(write: { "\($0).write" }, read: "try .init(_value.fields())")
        default: Kept(write: { "\($0)" }, read: "try _value.text()")
        }
    }

    /// The number of a field: its name's FNV-1a hash (draft-eastlake-fnv), folded to 16 bits.
    static func number(of name: String) -> Int {
        let hash = name.utf8.reduce(UInt32(0x811C_9DC5)) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        return Int(hash >> 16 ^ hash & 0xFFFF)
    }
}
