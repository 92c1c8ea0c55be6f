// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneVarlinkDefinition
import Foundation
import Testing

/// The interfaces only grow: a client that was written for an earlier version works with every later one. The earlier
/// versions are in Interfaces; with a release, a copy of the present ones comes to them.
@Suite struct GrowthTests {
    /// Who writes a value.
    private struct Writers: OptionSet {
        let rawValue: Int
        /// A client of the earlier version: it knows no new field that must be there.
        static let caller = Writers(rawValue: 1)
        /// The agent: a client of the earlier version knows no new value.
        static let agent = Writers(rawValue: 2)
    }

    /// A type, and what is said of it.
    private struct Part {
        let kind: InterfaceDefinition.Kind
        let comment: [String]

        init(_ kind: InterfaceDefinition.Kind, _ comment: [String] = []) { (self.kind, self.comment) = (kind, comment) }

        /// Whether clients pass over values that they do not know, as `SwiftWriter` has it.
        var mayGetValues: Bool { comment.joined(separator: " ").contains("Others may be added") }
    }

    private struct Growth {
        let earlier: InterfaceDefinition
        let present: InterfaceDefinition
        private(set) var breaks: [String] = []

        init(from earlier: String, to present: String) throws {
            self.earlier = try InterfaceDefinition(earlier)
            self.present = try InterfaceDefinition(present)
            let told = Self.told(in: self.earlier)
            for type in self.earlier.types {
                guard let now = self.present.types.first(where: { $0.name == type.name }) else {
                    breaks.append("\(type.name) is gone")
                    continue
                }
                // Whether callers send it is not looked at: no field may become required in any type.
                compare(
                    Part(type.kind, type.comment), Part(now.kind, now.comment), at: type.name,
                    by: told.contains(type.name) ? [.caller, .agent] : .caller)
            }
            for method in self.earlier.methods {
                guard let now = self.present.methods.first(where: { $0.name == method.name }) else {
                    breaks.append("\(method.name) is gone")
                    continue
                }
                if method.isStream != now.isStream { breaks.append("\(method.name) streams otherwise") }
                compare(
                    Part(.object(method.parameters)), Part(.object(now.parameters)), at: method.name, by: .caller)
                compare(
                    Part(.object(method.reply)), Part(.object(now.reply)), at: "\(method.name)'s reply", by: .agent)
            }
            for error in self.earlier.errors {
                guard let now = self.present.errors.first(where: { $0.name == error.name }) else {
                    breaks.append("\(error.name) is gone")
                    continue
                }
                compare(Part(error.kind), Part(now.kind), at: error.name, by: .agent)
            }
        }

        /// The types that are in replies and errors, and in what these have.
        private static func told(in definition: InterfaceDefinition) -> Set<String> {
            var told: Set<String> = []
            var waiting = definition.methods.flatMap(\.reply).map(\.kind) + definition.errors.map(\.kind)
            while let kind = waiting.popLast() {
                switch kind.element {
                case .named(let name):
                    guard told.insert(name).inserted, let type = definition.type(name) else { continue }
                    waiting.append(type)
                case .object(let fields): waiting += fields.map(\.kind)
                case .bool, .int, .float, .string, .optional, .array, .enumeration: break
                }
            }
            return told
        }

        private mutating func compare(_ old: Part, _ new: Part, at place: String, by writers: Writers) {
            switch (old.kind, new.kind) {
            case (.optional(let oldKind), .optional(let newKind)), (.array(let oldKind), .array(let newKind)):
                compare(Part(oldKind, old.comment), Part(newKind, new.comment), at: place, by: writers)
            case (.enumeration(let oldValues), .enumeration(let newValues)):
                for value in oldValues where !newValues.contains(value) { breaks.append("\(place): \(value) is gone") }
                if old.mayGetValues {
                    if !new.mayGetValues { breaks.append("\(place) does not say any more that others may be added") }
                } else if writers.contains(.agent) {
                    for value in newValues where !oldValues.contains(value) {
                        breaks.append("\(place): \(value) is new")
                    }
                }
            case (.object(let oldFields), .object(let newFields)):
                compare(oldFields, newFields, at: place, by: writers)
            default:
                if old.kind != new.kind { breaks.append("\(place) has another type") }
            }
        }

        private mutating func compare(
            _ old: [InterfaceDefinition.Field], _ new: [InterfaceDefinition.Field], at place: String,
            by writers: Writers
        ) {
            for field in old {
                guard let now = new.first(where: { $0.name == field.name }) else {
                    breaks.append("\(place).\(field.name) is gone")
                    continue
                }
                compare(
                    Part(field.kind, field.comment), Part(now.kind, now.comment), at: "\(place).\(field.name)",
                    by: writers)
            }
            guard writers.contains(.caller) else { return }
            for field in new where !field.isOptional && !old.contains(where: { $0.name == field.name }) {
                breaks.append("\(place).\(field.name) is required")
            }
        }
    }

    @Test func `each version has what the ones before it have`() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Interfaces")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(files.count >= 2)
        for file in files {
            let text = try String(contentsOf: file, encoding: .utf8)
            let present =
                text.contains("interface \(NetworkAPI.name)\n") ? NetworkAPI.description : ConnectionsAPI.description
            #expect(try Growth(from: text, to: present).breaks == [], "since \(file.lastPathComponent)")
        }
    }

    @Test(arguments: [
        ("type T (a: int)", "", "T is gone"), ("type T (a: int)", "type T (b: ?int)", "T.a is gone"),
        ("type T (a: int)", "type T (a: ?int)", "T.a has another type"),
        ("type T (a: int)", "type T (a: int, b: int)", "T.b is required"),
        ("type T (a: (x, y))", "type T (a: (x, z))", "T.a: y is gone"),
        ("method M() -> ()", "", "M is gone"), ("method M() -> ()", "method M(a: int) -> ()", "M.a is required"),
        ("method M() -> (a: int)", "method M() -> ()", "M's reply.a is gone"),
        ("# [Requires 'more' flag]\nmethod M() -> ()", "method M() -> ()", "M streams otherwise"),
        ("error E (a: int)", "error E ()", "E.a is gone"), ("error E ()", "", "E is gone"),
        // The agent may say a value that a client does not know.
        ("type T (x)\nmethod M() -> (a: T)", "type T (x, y)\nmethod M() -> (a: T)", "T: y is new"),
        ("type T (x)\nmethod M(a: T) -> (a: T)", "type T (x, y)\nmethod M(a: T) -> (a: T)", "T: y is new"),
        ("type T (x)\nerror E (a: ?[]T)", "type T (x, y)\nerror E (a: ?[]T)", "T: y is new"),
        (
            "type T (x)\ntype U (a: T)\nmethod M() -> (b: []U)", "type T (x, y)\ntype U (a: T)\nmethod M() -> (b: []U)",
            "T: y is new"
        ),
        ("type T (a: (x))\nmethod M() -> (b: ?T)", "type T (a: (x, y))\nmethod M() -> (b: ?T)", "T.a: y is new"),
        ("method M() -> (a: ?(x))", "method M() -> (a: ?(x, y))", "M's reply.a: y is new"),
        ("method M() -> (a: (b: (x)))", "method M() -> (a: (b: (x, y)))", "M's reply.a.b: y is new"),
        ("error E (a: [](x))", "error E (a: [](x, y))", "E.a: y is new"),
        // What the earlier version said of it counts.
        (
            "type T (x)\nmethod M() -> (a: T)", "# Others may be added.\ntype T (x, y)\nmethod M() -> (a: T)",
            "T: y is new"
        ),
        (
            "# Others may be added.\ntype T (x)\nmethod M() -> (a: T)", "type T (x, y)\nmethod M() -> (a: T)",
            "T does not say any more that others may be added"
        ),
        (
            "method M() -> (\n# Others may be added.\na: (x)\n)", "method M() -> (a: (x))",
            "M's reply.a does not say any more that others may be added"
        ),
    ])
    func `what breaks is found`(before: String, after: String, problem: String) throws {
        let head = "interface a.B\n\n"
        #expect(try Growth(from: head + before, to: head + after).breaks == [problem])
    }

    @Test(arguments: [
        (
            "type T (a: (x, y))\nmethod M() -> ()",
            "type T (a: (x, y, z), b: ?int)\nmethod M(t: ?T) -> (a: int)\nerror E ()"
        ),
        // Callers alone send it.
        ("type T (x)\nmethod M(a: ?T) -> ()", "type T (x, y)\nmethod M(a: ?T) -> ()"),
        ("method M(a: ?(x)) -> ()", "method M(a: ?(x, y)) -> ()"),
        ("type T (a: (x))\nmethod M(b: []T) -> ()", "type T (a: (x, y))\nmethod M(b: []T) -> ()"),
        // In a field that clients of the earlier version pass over.
        ("type T (x)\nmethod M(a: T) -> ()", "type T (x, y)\nmethod M(a: T) -> (a: T)"),
        // The earlier version said that it may come.
        (
            "# Others may be added.\ntype T (x)\nmethod M() -> (a: T)",
            "# Others may be added.\ntype T (x, y)\nmethod M() -> (a: T)"
        ),
        (
            "# One of them. Others may\n# be added.\ntype T (x)\nerror E (a: T)",
            "# Others may be added.\ntype T (x, y)\nerror E (a: T)"
        ),
        (
            "method M() -> (\n# Others may be added.\na: ?(x)\n)",
            "method M() -> (\n# Others may be added.\na: ?(x, y)\n)"
        ),
        ("type T (x)\nmethod M() -> (a: T)", "# Others may be added.\ntype T (x)\nmethod M() -> (a: T)"),
    ])
    func `what comes to it breaks nobody`(before: String, after: String) throws {
        let head = "interface a.B\n\n"
        #expect(try Growth(from: head + before, to: head + after).breaks == [])
    }
}
