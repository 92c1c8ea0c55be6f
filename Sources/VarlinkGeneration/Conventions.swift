// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlinkDefinition

// What Varlink's language cannot say, and names and comments of the definitions do (decision 0026).

extension InterfaceDefinition.Field {
    private static let milliseconds = "Milliseconds"

    /// Whether it is a number of milliseconds, which each language has a type for.
    var isDuration: Bool { name.hasSuffix(Self.milliseconds) && [.int, .optional(.int)].contains(kind) }

    /// Its name, for a duration without the unit.
    var nameWithoutUnit: String { isDuration ? String(name.dropLast(Self.milliseconds.count)) : name }

    /// Whether it is a time as RFC 3339 writes it.
    var isTime: Bool { hasOwnComment && comment.says("RFC 3339") }
}

extension InterfaceDefinition {
    /// What is said of a field: there, or of the first one of its name and kind in the interface.
    func remark(on field: Field) -> [String] {
        if !field.comment.isEmpty { return field.comment }
        let all = types.flatMap(\.kind.fields) + methods.flatMap { $0.parameters + $0.reply }
        return all.first { $0.name == field.name && $0.kind == field.kind && !$0.comment.isEmpty }?.comment ?? []
    }
}

extension InterfaceDefinition.Kind {
    /// The fields of an object.
    var fields: [InterfaceDefinition.Field] { if case .object(let fields) = self { fields } else { [] } }
}

extension [String] {
    /// Whether it is the comment of an enumeration of which a client passes on what it does not know.
    var mayGrow: Bool { says("Others may be added") }

    /// Whether a comment says something, on one line or over two.
    fileprivate func says(_ words: String) -> Bool { joined(separator: " ").contains(words) }
}
