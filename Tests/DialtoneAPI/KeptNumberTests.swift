// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePersistence
import DialtoneVarlinkDefinition
import Testing

/// The numbers of fields that are kept.
@Suite struct KeptNumberTests {
    /// Two of one number would be read as one.
    private static func collisions(among fields: [InterfaceDefinition.Field]) -> [[String]] {
        Dictionary(grouping: fields.map(\.name)) { keptNumber(of: $0) }.values.filter { $0.count > 1 }
    }

    @Test(arguments: [NetworkAPI.description, ConnectionsAPI.description])
    func `no two fields of an object have one number`(text: String) throws {
        let definition = try InterfaceDefinition(text)
        for type in definition.types {
            guard case .object(let fields) = type.kind else { continue }
            #expect(Self.collisions(among: fields) == [], "rename one, in \(type.name)")
        }
        // The history keeps a method's replies.
        for method in definition.methods {
            #expect(Self.collisions(among: method.reply) == [], "rename one, in \(method.name)")
        }
    }

    @Test func `two that have are found`() {
        let names = (0..<2000).map { "field\($0)" }
        let fields = names.map { InterfaceDefinition.Field(name: $0, kind: .int, comment: [], hasOwnComment: false) }
        #expect(!Self.collisions(among: fields).isEmpty, "two thousand names in 65,536 numbers")
    }
}
