// SPDX-License-Identifier: Apache-2.0

internal import CTOML

/// A place in the text of a document. Lines and columns count from one; a column is a Unicode code point.
public struct TOMLPosition: Hashable, Comparable, Sendable {
    /// The line.
    public var line: Int
    /// The column.
    public var column: Int

    /// A place.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// By line, then by column.
    public static func < (left: TOMLPosition, right: TOMLPosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// A value in a document, and where it stands.
public struct TOMLNode: Sendable {
    /// The types of TOML 1.0.
    public enum Value: Sendable {
        /// A string of any of the four notations.
        case string(String)
        /// A 64-bit integer, of any base.
        case integer(Int64)
        /// A 64-bit float, infinity and not-a-number included.
        case float(Double)
        /// `true` or `false`.
        case boolean(Bool)
        /// A date, a time or both, as it is written.
        case time(String)
        /// An array, inline or of tables.
        case array([TOMLNode])
        /// A table, inline or under a header, in the order of the text.
        case table([TOMLEntry])
    }

    /// The value.
    public var value: Value
    /// Where it begins; for a table under a header, where its header begins.
    public var position: TOMLPosition
}

/// A key of a table with its value.
public struct TOMLEntry: Sendable {
    /// The key, without quotes.
    public var key: String
    /// Where the key begins.
    public var keyPosition: TOMLPosition
    /// The value.
    public var node: TOMLNode
}

/// Why a text is no TOML.
public struct TOMLError: Error, Hashable, Sendable {
    /// Where the parser stopped.
    public var position: TOMLPosition
    /// The parser's words.
    public var message: String
}

/// TOML 1.0 text to a tree of values that know where they stand.
public enum TOMLDocument {
    /// Parses `text` and returns its root table.
    public static func parse(_ text: String) throws(TOMLError) -> [TOMLEntry] {
        var builder = Builder()
        var text = text
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { bytes in
                let document = ctoml_text(bytes: bytes.baseAddress, length: bytes.count)
                withUnsafeMutablePointer(to: &builder) {
                    ctoml_parse(document, $0, visited, refused)
                }
            }
        }
        if let error = builder.error { throw error }
        guard case .table(let entries)? = builder.root?.value else { return [] }
        return entries
    }
}

/// The tree as far as the walk has come.
private struct Builder {
    /// A value under its key, or in an array without one, whose members are still coming.
    struct Open {
        var key: (text: String, position: TOMLPosition)
        var position: TOMLPosition
        var isTable: Bool
        var members: [TOMLEntry] = []
    }

    var open: [Open] = []
    var root: TOMLNode?
    var error: TOMLError?

    mutating func visit(_ node: ctoml_node) {
        let key = (String(node.key), TOMLPosition(node.key_position))
        let position = TOMLPosition(node.position)
        switch node.kind {
        case CTOML_STRING: add(.string(String(node.text)), key, position)
        case CTOML_INTEGER: add(.integer(node.integer), key, position)
        case CTOML_FLOAT: add(.float(node.number), key, position)
        case CTOML_BOOLEAN: add(.boolean(node.boolean), key, position)
        case CTOML_TIME: add(.time(String(node.text)), key, position)
        case CTOML_ARRAY: open.append(Open(key: key, position: position, isTable: false))
        case CTOML_TABLE: open.append(Open(key: key, position: position, isTable: true))
        default: close()
        }
    }

    private mutating func add(_ value: TOMLNode.Value, _ key: (String, TOMLPosition), _ position: TOMLPosition) {
        let node = TOMLNode(value: value, position: position)
        if open.isEmpty {
            root = node
        } else {
            open[open.count - 1].members.append(TOMLEntry(key: key.0, keyPosition: key.1, node: node))
        }
    }

    private mutating func close() {
        guard let last = open.popLast() else { return }
        let value: TOMLNode.Value =
            last.isTable
            ? .table(last.members.sorted { $0.keyPosition < $1.keyPosition })
            : .array(last.members.map(\.node))
        add(value, last.key, last.position)
    }
}

// The context of both is the builder that lies still in `TOMLDocument.parse` until the walk is over.

private func visited(_ context: UnsafeMutableRawPointer?, _ node: UnsafePointer<ctoml_node>?) {
    guard let node else { return }
    context?.assumingMemoryBound(to: Builder.self).pointee.visit(node.pointee)
}

private func refused(_ context: UnsafeMutableRawPointer?, _ position: ctoml_position, _ message: ctoml_text) {
    let error = TOMLError(position: TOMLPosition(position), message: String(message))
    context?.assumingMemoryBound(to: Builder.self).pointee.error = error
}

extension TOMLPosition {
    fileprivate init(_ position: ctoml_position) {
        self.init(line: Int(position.line), column: Int(position.column))
    }
}

extension String {
    fileprivate init(_ text: ctoml_text) {
        let bytes = UnsafeRawBufferPointer(start: text.bytes, count: text.length)
        self = String(decoding: bytes, as: UTF8.self)
    }
}
