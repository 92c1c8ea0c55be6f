// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Foundation
import TestSupport
import Testing
import Varlink

/// The Swift types and the definitions that the daemon hands out say the same, field by field.
@Suite struct AgreementTests {
    private static let methods: [any VarlinkMethod.Type] = [
        NetworkAPI.GetPath.self, NetworkAPI.MonitorPath.self, NetworkAPI.Explain.self,
        NetworkAPI.ListInterfaces.self,
        ConnectionsAPI.List.self, ConnectionsAPI.Monitor.self, ConnectionsAPI.Open.self, ConnectionsAPI.Close.self,
        ConnectionsAPI.Redial.self, ConnectionsAPI.History.self, ConnectionsAPI.Take.self, ConnectionsAPI.Park.self,
        ConnectionsAPI.Adopt.self, ConnectionsAPI.Acknowledge.self, ConnectionsAPI.KeepAlive.self,
    ]
    private static let errors: [any VarlinkErrorReply.Type] = [
        NetworkAPI.InvalidTarget.self, NetworkAPI.QuotaExceeded.self, NetworkAPI.ForeignNetwork.self,
        NetworkAPI.OutOfResources.self, ConnectionsAPI.ForeignNetwork.self, ConnectionsAPI.OutOfResources.self,
        ConnectionsAPI.NoSuchConnection.self, ConnectionsAPI.AmbiguousName.self, ConnectionsAPI.NameTaken.self,
        ConnectionsAPI.NotOwner.self,
        ConnectionsAPI.InvalidRemote.self, ConnectionsAPI.QuotaExceeded.self, ConnectionsAPI.Suspended.self,
        ConnectionsAPI.StaleEpoch.self,
        ConnectionsAPI.InvalidOpening.self, ConnectionsAPI.NotReady.self, ConnectionsAPI.InvalidTimeout.self,
        ConnectionsAPI.HeldByClient.self,
        ConnectionsAPI.NotTaken.self, ConnectionsAPI.InvalidDescriptor.self, ConnectionsAPI.SystemFailure.self,
    ]

    private let definitions: [InterfaceDefinition]

    init() throws {
        definitions = [
            try InterfaceDefinition(NetworkAPI.description), try InterfaceDefinition(ConnectionsAPI.description),
        ]
    }

    @Test func theNamesAgree() {
        #expect(definitions.map(\.name) == [NetworkAPI.name, ConnectionsAPI.name])
        let declared = definitions.flatMap { definition in definition.methods.keys.map { "\(definition.name).\($0)" } }
        #expect(declared.sorted() == Self.methods.map { $0.name }.sorted())
        let declaredErrors = definitions.flatMap { definition in
            definition.errors.keys.map { "\(definition.name).\($0)" }
        }
        #expect(declaredErrors.sorted() == Self.errors.map { $0.errorName }.sorted())
        let streams = Self.methods.filter { $0.isStream }.map { $0.name }
        let others = [ConnectionsAPI.History.name, ConnectionsAPI.KeepAlive.name]
        #expect(streams.allSatisfy { $0.contains(".Monitor") || others.contains($0) })
    }

    /// A descriptor that rides on a call is named by a parameter, and a method that has such a parameter takes it.
    @Test func methodsThatTakeDescriptorsNameThem() throws {
        func check<M: VarlinkMethod>(_ method: M.Type) throws {
            let (definition, declared) = try find(M.name, in: \.methods)
            guard case .object(let fields) = definition.resolve(declared.parameters) else { return }
            #expect(fields.contains { $0.name == "fileDescriptor" } == M.takesDescriptors, "\(M.name)")
        }
        for method in Self.methods { try check(method) }
    }

    @Test func everyTypeOfTheDefinitionsIsUsed() {
        for definition in definitions {
            let used = definition.methods.values.flatMap { [$0.parameters, $0.reply] } + definition.types.values
            for name in definition.types.keys {
                #expect(used.contains { String(describing: $0).contains("named(\"\(name)\")") }, "\(name)")
            }
        }
    }

    @Test func theParametersAgree() throws {
        func check<M: VarlinkMethod>(_ method: M.Type) throws {
            let (definition, declared) = try find(M.name, in: \.methods)
            try compare(M.Parameters.self, with: declared.parameters, of: definition, M.name)
        }
        for method in Self.methods { try check(method) }
    }

    @Test func theRepliesAgree() throws {
        func check<M: VarlinkMethod>(_ method: M.Type) throws {
            let (definition, declared) = try find(M.name, in: \.methods)
            try compare(M.Reply.self, with: declared.reply, of: definition, M.name)
        }
        for method in Self.methods { try check(method) }
    }

    @Test func theErrorsAgree() throws {
        func check<E: VarlinkErrorReply>(_ error: E.Type) throws {
            let (definition, declared) = try find(E.errorName, in: \.errors)
            try compare(E.self, with: declared, of: definition, E.errorName)
        }
        for error in Self.errors { try check(error) }
    }

    @Test func theKindsOfEventsAreTheDocumentedOnes() throws {
        let kinds: [ConnectionsAPI.Event.Kind] = [.opened, .state, .pathChanged, .reconfigured, .wake, .closed]
        let type = try #require(ConnectionsAPI.description.split(separator: "type Event").last)
        let comment = try #require(type.split(separator: "kind: string").first)
        for kind in kinds { #expect(comment.contains(" \(kind.rawValue): "), "\(kind.rawValue)") }
    }

    private func find<T>(
        _ name: String, in members: KeyPath<InterfaceDefinition, [String: T]>
    ) throws -> (InterfaceDefinition, T) {
        let dot = try #require(name.lastIndex(of: "."))
        let definition = try #require(definitions.first { $0.name == name[..<dot] })
        return (definition, try #require(definition[keyPath: members][String(name[name.index(after: dot)...])]))
    }

    /// Every value that the definition allows is read, written back as it was, and read as nothing else; a value that
    /// lacks a required field or has a wrong one is refused; and the Swift type has no field beyond the definition's.
    private func compare<T: Codable>(
        _ type: T.Type, with kind: InterfaceDefinition.Kind, of definition: InterfaceDefinition, _ name: String
    ) throws {
        for sample in definition.samples(of: kind) {
            let json = try JSONSerialization.data(withJSONObject: sample, options: .sortedKeys)
            let text = Comment(rawValue: "\(name): \(String(decoding: json, as: UTF8.self))")
            let value = try #require(try? JSONDecoder().decode(T.self, from: json), text)
            let written = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
            let back = try JSONSerialization.data(withJSONObject: written, options: .sortedKeys)
            #expect(back == json, text)
        }
        guard case .object(let fields) = definition.resolve(kind),
            let full = definition.samples(of: kind).first as? [String: any Sendable]
        else {
            Issue.record("\(name) is not an object")
            return
        }
        let value = try decode(T.self, full)
        #expect(Mirror(reflecting: value).children.compactMap(\.label).sorted() == fields.map(\.name).sorted())
        for field in fields {
            let without = full.filter { $0.key != field.name }
            #expect(((try? decode(T.self, without)) != nil) == field.isOptional, "\(name) without \(field.name)")
            #expect(throws: DecodingError.self, "\(name) with another kind of \(field.name)") {
                try decode(T.self, full.merging([field.name: [["neither"]]]) { $1 })
            }
            try compareNested(field.kind, of: definition, value, "\(name).\(field.name)")
        }
    }

    private func decode<T: Decodable>(_ type: T.Type, _ object: [String: any Sendable]) throws -> T {
        try JSONDecoder().decode(type, from: JSONSerialization.data(withJSONObject: object))
    }

    /// Goes into the field's own fields, if it has some, by the type of the value that is there.
    private func compareNested(
        _ kind: InterfaceDefinition.Kind, of definition: InterfaceDefinition, _ parent: Any, _ name: String
    ) throws {
        let label = name.split(separator: ".").last.map(String.init)
        var value = try #require(Mirror(reflecting: parent).children.first { $0.label == label }?.value)
        switch definition.resolve(kind) {
        case .bool, .int, .float, .string, .enumeration, .named: return
        case .optional(let wrapped):
            guard case .object = definition.resolve(wrapped) else { return }
            value = try #require(Mirror(reflecting: value).children.first?.value)
            try compareObject(value, with: wrapped, of: definition, name)
        case .array(let element):
            guard case .object = definition.resolve(element) else { return }
            value = try #require(Mirror(reflecting: value).children.first?.value)
            try compareObject(value, with: element, of: definition, name)
        case .object:
            try compareObject(value, with: kind, of: definition, name)
        }
    }

    private func compareObject(
        _ value: Any, with kind: InterfaceDefinition.Kind, of definition: InterfaceDefinition, _ name: String
    ) throws {
        let codable = try #require(value as? any Codable)
        func open<T: Codable>(_ value: T) throws { try compare(T.self, with: kind, of: definition, name) }
        try open(codable)
    }
}
