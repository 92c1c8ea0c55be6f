// SPDX-License-Identifier: Apache-2.0

/// A place in the text of a document. Lines and columns count from one; a column is a Unicode code point.
package struct TOMLPosition: Hashable, Comparable, Sendable {
    /// The line.
    package var line: Int
    /// The column.
    package var column: Int

    /// A place.
    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// By line, then by column.
    package static func < (left: TOMLPosition, right: TOMLPosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// A value in a document, and where it stands.
package struct TOMLNode: Sendable {
    /// The types of TOML 1.0.
    package enum Value: Sendable {
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
        /// A table, inline or under a header, its keys in the order of the text.
        case table([TOMLEntry])
    }

    /// The value.
    package var value: Value
    /// Where it begins; for a table under a header, where its header begins.
    package var position: TOMLPosition
}

/// A key of a table with its value.
package struct TOMLEntry: Sendable {
    /// The key, without quotes.
    package var key: String
    /// Where the key begins.
    package var keyPosition: TOMLPosition
    /// The value.
    package var node: TOMLNode
}

/// Why a text is not TOML.
package struct TOMLError: Error, Hashable, Sendable {
    /// Where the reader stopped.
    package var position: TOMLPosition
    /// What it found, and what it expected.
    package var message: String
}

/// TOML 1.0 (https://toml.io/en/v1.0.0) as a tree of values that know where they stand.
package enum TOMLDocument {
    /// How deep tables and arrays may nest. The configuration has five levels. The stack that a reader needs grows with
    /// each, and a Dispatch thread has half a mebibyte.
    package static let deepestNesting = 32

    /// Reads `text` and returns its root table. It takes time and memory in proportion to the text, whatever is in it.
    ///
    /// - Throws: the first thing that is not TOML, or is nested deeper than ``deepestNesting``.
    package static func parse(_ text: String) throws(TOMLError) -> [TOMLEntry] {
        var parser = TOMLParser(text)
        return try parser.document()
    }
}
