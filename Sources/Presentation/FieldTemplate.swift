// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
package import DialtoneVarlink

/// What `--format` asks for: a list of fields (`name,state,security.version`), which are separated by tabs, or a
/// template with fields in braces (`{name} is {state}`). Fields have the names that the socket gives them.
package struct FieldTemplate: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        case field(String)
    }

    private let parts: [Part]

    /// The names of its fields.
    package var fields: [String] {
        parts.compactMap { part in
            guard case .field(let name) = part else { return nil }
            return name
        }
    }

    /// A template; `nil` of one that makes no sense: an empty name, or a brace without its other half.
    package init?(_ text: String) {
        guard text.contains("{") else {
            let names = text.split(separator: ",", omittingEmptySubsequences: false)
            guard names.allSatisfy({ Self.isName($0) }) else { return nil }
            parts = names.enumerated().flatMap { index, name -> [Part] in
                (index == 0 ? [] : [.text("\t")]) + [.field(String(name))]
            }
            return
        }
        var parts: [Part] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            let literal = rest[..<open]
            let inside = rest[rest.index(after: open)...]
            guard let close = inside.firstIndex(of: "}"), Self.isName(inside[..<close]), !literal.contains("}") else {
                return nil
            }
            parts += [.text(Self.unescaped(literal)), .field(String(inside[..<close]))]
            rest = inside[inside.index(after: close)...]
        }
        guard !rest.contains("}") else { return nil }
        self.parts = parts + [.text(Self.unescaped(rest))]
    }

    /// The template with the fields of `object`; one that it does not have is empty.
    package func text(of object: some VarlinkWritable) -> String {
        var writer = FieldTexts()
        object.write(to: &writer)
        return parts.map { part in
            switch part {
            case .text(let text): text
            case .field(let name): writer.texts[name] ?? ""
            }
        }.joined()
    }

    private static func isName(_ text: Substring) -> Bool {
        !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") }
    }

    /// With tabs and line ends for what a shell makes hard to write.
    private static func unescaped(_ text: Substring) -> String {
        var result = ""
        var isEscaped = false
        for character in text {
            switch (isEscaped, character) {
            case (false, "\\"): isEscaped = true
            case (false, _): result.append(character)
            case (true, "t"): (isEscaped, result) = (false, result + "\t")
            case (true, "n"): (isEscaped, result) = (false, result + "\n")
            case (true, _): (isEscaped, result) = (false, result + "\\\(character)")
            }
        }
        return isEscaped ? result + "\\" : result
    }
}

/// The fields of an object as text, those of objects in it by `outer.inner`.
private struct FieldTexts: VarlinkFieldWriter {
    private(set) var texts: [String: String] = [:]
    private var prefix = ""

    mutating func put(_ name: String, _ value: Bool) { texts[prefix + name] = "\(value)" }
    mutating func put(_ name: String, _ value: Int) { texts[prefix + name] = "\(value)" }
    mutating func put(_ name: String, _ value: Double) { texts[prefix + name] = "\(value)" }
    mutating func put(_ name: String, _ value: String) { texts[prefix + name] = value.printable }
    mutating func put(_ name: String, _ value: Timestamp) { texts[prefix + name] = value.description }
    mutating func put(_ name: String, _ values: [Int]) {
        texts[prefix + name] = values.map { "\($0)" }.joined(separator: ",")
    }
    mutating func put(_ name: String, _ values: [String]) {
        texts[prefix + name] = values.joined(separator: ",").printable
    }
    mutating func put(_ name: String, _ value: some VarlinkWritable) {
        let outer = prefix
        prefix += name + "."
        value.write(to: &self)
        prefix = outer
    }
    // No list of objects is in what is shown.
    mutating func put(_ name: String, _ values: [some VarlinkWritable]) {}
}

extension VarlinkObject {
    /// The names of its fields, those of objects in it by `outer.inner`.
    package static var fieldNames: [String] {
        var names = FieldNames()
        _ = Self(from: &names)
        return names.names
    }
}

/// Has nothing to read, and notes what is asked for. Objects ask for each of their fields, whatever they get.
private struct FieldNames: VarlinkFieldReader {
    private(set) var names: [String] = []
    private var prefix = ""

    private mutating func note<Value>(_ name: String) -> Value? {
        names.append(prefix + name)
        return nil
    }

    mutating func flag(_ name: String) -> Bool? { note(name) }
    mutating func integer(_ name: String) -> Int? { note(name) }
    mutating func number(_ name: String) -> Double? { note(name) }
    mutating func text(_ name: String) -> String? { note(name) }
    mutating func integers(_ name: String) -> [Int]? { note(name) }
    mutating func texts(_ name: String) -> [String]? { note(name) }
    mutating func object<Object: VarlinkObject>(_ name: String) -> Object? {
        let outer = prefix
        prefix += name + "."
        _ = Object(from: &self)
        prefix = outer
        return nil
    }
    mutating func objects<Object: VarlinkObject>(_ name: String) -> [Object]? { nil }
    mutating func refuse(_ name: String) {}
    mutating func lacks(_ name: String) {}
    mutating func lackingElements<Element>(_ name: String) -> [Element]? { nil }
}
