// SPDX-License-Identifier: Apache-2.0

/// The fields of a connection's settings that stand in a file and could not be read. Each of them was told; what is
/// wrong only because such a field is absent is no further mistake.
package struct UnreadFields {
    private var fields: Set<String> = []
    /// The objects that have an unknown key, which may be a misspelled one of those that they lack.
    private var objects: Set<String> = []

    /// Everything was read.
    package init() {}

    /// Whether everything was read.
    var isEmpty: Bool { fields.isEmpty && objects.isEmpty }

    /// Adds a field, by its name in `org.dialtone.Connections`, as in `keepalive.protocol` or `opening[0].send`.
    mutating func insert(_ field: String) { fields.insert(field) }

    /// Adds all that an object lacks: `keepalive`, `opening[0]`, or "" for the settings themselves.
    mutating func insertMissing(of object: String) { objects.insert(object) }

    /// Whether this field stands there, and could not be read or only in part.
    func contains(_ field: String) -> Bool { fields.contains(field) }

    /// Whether this field, which was not read, may stand there all the same.
    func mayContain(_ field: String) -> Bool {
        let object = field.lastIndex(of: ".").map { String(field[..<$0]) } ?? ""
        return fields.contains(field) || objects.contains(object)
    }

    /// Whether any part of this field could not be read.
    func touches(_ field: String) -> Bool {
        fields.union(objects).contains { part in
            part == field || part.hasPrefix("\(field).") || part.hasPrefix("\(field)[")
        }
    }
}
