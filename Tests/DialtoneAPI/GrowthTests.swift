// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Foundation
import Testing
import VarlinkDefinition

/// The interfaces only grow: who was written for an earlier version goes on with every later one. The earlier versions
/// are in Interfaces; with a release, a copy of the present ones comes to them.
@Suite("Interfaces only grow") struct GrowthTests {
    private struct Growth {
        let earlier: InterfaceDefinition
        let present: InterfaceDefinition
        private(set) var breaks: [String] = []

        init(from earlier: String, to present: String) throws {
            self.earlier = try InterfaceDefinition(earlier)
            self.present = try InterfaceDefinition(present)
            for type in self.earlier.types {
                guard let kind = self.present.type(type.name) else { breaks.append("\(type.name) is gone"); continue }
                // Without knowing who sends it: neither may a field become required, nor may one go.
                compare(type.kind, kind, at: type.name, isSent: true)
            }
            for method in self.earlier.methods {
                guard let now = self.present.methods.first(where: { $0.name == method.name }) else {
                    breaks.append("\(method.name) is gone")
                    continue
                }
                if method.isStream != now.isStream { breaks.append("\(method.name) streams otherwise") }
                compare(.object(method.parameters), .object(now.parameters), at: method.name, isSent: true)
                compare(.object(method.reply), .object(now.reply), at: "\(method.name)'s reply", isSent: false)
            }
            for error in self.earlier.errors {
                guard let now = self.present.errors.first(where: { $0.name == error.name }) else {
                    breaks.append("\(error.name) is gone")
                    continue
                }
                compare(error.kind, now.kind, at: error.name, isSent: false)
            }
        }

        private mutating func compare(
            _ old: InterfaceDefinition.Kind, _ new: InterfaceDefinition.Kind, at place: String, isSent: Bool
        ) {
            switch (old, new) {
            case (.optional(let old), .optional(let new)), (.array(let old), .array(let new)):
                compare(old, new, at: place, isSent: isSent)
            case (.enumeration(let old), .enumeration(let new)):
                for value in old where !new.contains(value) { breaks.append("\(place): \(value) is gone") }
            case (.object(let old), .object(let new)):
                for field in old {
                    guard let now = new.first(where: { $0.name == field.name }) else {
                        breaks.append("\(place).\(field.name) is gone")
                        continue
                    }
                    compare(field.kind, now.kind, at: "\(place).\(field.name)", isSent: isSent)
                }
                for field in new where isSent && !field.isOptional && !old.contains(where: { $0.name == field.name }) {
                    breaks.append("\(place).\(field.name) is required")
                }
            default:
                if old != new { breaks.append("\(place) has another type") }
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
    ])
    func `what breaks is found`(before: String, after: String, problem: String) throws {
        let head = "interface a.B\n\n"
        #expect(try Growth(from: head + before, to: head + after).breaks == [problem])
    }

    @Test func `what comes to it breaks nobody`() throws {
        let before = "interface a.B\n\ntype T (a: (x, y))\nmethod M() -> ()"
        let after = "interface a.B\n\ntype T (a: (x, y, z), b: ?int)\nmethod M(t: ?T) -> (a: int)\nerror E ()"
        #expect(try Growth(from: before, to: after).breaks == [])
    }
}
