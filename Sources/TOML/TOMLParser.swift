// SPDX-License-Identifier: Apache-2.0

/// Reads a document, line by line, into ``TOMLTable``s.
struct TOMLParser {
    /// One part of a dotted key.
    struct Key {
        let text: String
        let position: TOMLPosition
    }

    var scanner: TOMLScanner
    private let root = TOMLTable(.header, at: TOMLPosition(line: 1, column: 1), depth: 0)

    init(_ text: String) {
        scanner = TOMLScanner(text)
    }

    /// All of it.
    mutating func document() throws(TOMLError) -> [TOMLEntry] {
        var table = root
        while true {
            scanner.skipBlanks()
            switch scanner.next {
            case nil: return root.entries
            case UInt8(ascii: "["):
                table = try header()
                try endLine("the end of the line after a header")
            case .lineFeed, .carriageReturn, UInt8(ascii: "#"): try endLine("a key or a header")
            default:
                try keyAndValue(in: table)
                try endLine("the end of the line after a value")
            }
        }
    }

    func error(_ message: String, at position: TOMLPosition? = nil) -> TOMLError {
        TOMLError(position: position ?? scanner.position, message: message)
    }

    func expected(_ what: String) -> TOMLError { error("expected \(what), found \(scanner.found)") }

    /// Refuses what is nested too deep to be a configuration.
    func checkDepth(_ depth: Int, at position: TOMLPosition) throws(TOMLError) {
        guard depth > TOMLDocument.deepestNesting else { return }
        throw error("nested more than \(TOMLDocument.deepestNesting) levels deep", at: position)
    }

    // MARK: - Lines

    private mutating func endLine(_ expectation: String) throws(TOMLError) {
        scanner.skipBlanks()
        try skipComment()
        if scanner.next == nil || scanner.skipLineEnd() { return }
        throw expected(expectation)
    }

    private mutating func skipComment() throws(TOMLError) {
        guard scanner.next == UInt8(ascii: "#") else { return }
        while let byte = scanner.next, !scanner.isAtLineEnd {
            if byte.isControl { throw error("\(scanner.found) may not stand in a comment") }
            scanner.take()
        }
    }

    /// Passes over blanks, comments and line ends, as they may stand between the members of an array.
    mutating func skipLines() throws(TOMLError) {
        repeat {
            scanner.skipBlanks()
            try skipComment()
        } while scanner.skipLineEnd()
    }

    /// `[a.b]` or `[[a.b]]`, up to its last bracket.
    private mutating func header() throws(TOMLError) -> TOMLTable {
        let start = scanner.position
        let isArray = scanner.isAt("[[")
        scanner.skip(isArray ? 2 : 1)
        let keys = try dottedKey()
        guard isArray ? scanner.isAt("]]") : scanner.next == UInt8(ascii: "]") else {
            throw expected(isArray ? "\"]]\"" : "\"]\"")
        }
        scanner.skip(isArray ? 2 : 1)
        var table = root
        for key in keys.dropLast() { table = try descend(from: table, to: key, header: start) }
        guard let last = keys.last else { throw expected("a key") }
        return isArray ? try append(to: table, under: last, start) : try declare(in: table, last, start)
    }

    private func descend(
        from table: TOMLTable, to key: Key, header: TOMLPosition
    ) throws(TOMLError) -> TOMLTable {
        switch table.member(key.text) {
        case nil: return try add(.above, to: table, under: key, at: header)
        case (.table(let inner), _)?: return inner
        case (.tables(let tables), let position)?:
            guard let last = tables.all.last else { throw redefinition(of: key, position) }
            return last
        case (.value, let position)?: throw redefinition(of: key, position)
        }
    }

    private func declare(in table: TOMLTable, _ key: Key, _ start: TOMLPosition) throws(TOMLError) -> TOMLTable {
        switch table.member(key.text) {
        case nil: return try add(.header, to: table, under: key, at: start)
        case (.table(let inner), let position)?:
            guard inner.origin == .above else { throw redefinition(of: key, position) }
            inner.declare(at: start)
            return inner
        case (.tables, let position)?, (.value, let position)?: throw redefinition(of: key, position)
        }
    }

    private func append(to table: TOMLTable, under key: Key, _ start: TOMLPosition) throws(TOMLError) -> TOMLTable {
        // The array is a level of its own.
        try checkDepth(table.depth + 2, at: key.position)
        let fresh = TOMLTable(.header, at: start, depth: table.depth + 2)
        switch table.member(key.text) {
        case nil: table.add(.tables(.init(fresh)), under: key, at: start)
        case (.tables(let tables), _)?: tables.all.append(fresh)
        case (.table, let position)?, (.value, let position)?: throw redefinition(of: key, position)
        }
        return fresh
    }

    private func add(
        _ origin: TOMLTable.Origin, to table: TOMLTable, under key: Key, at position: TOMLPosition
    ) throws(TOMLError) -> TOMLTable {
        try checkDepth(table.depth + 1, at: key.position)
        let inner = TOMLTable(origin, at: position, depth: table.depth + 1)
        table.add(.table(inner), under: key, at: position)
        return inner
    }

    private func redefinition(of key: Key, _ first: TOMLPosition) -> TOMLError {
        error("\"\(key.text)\" is already defined, at line \(first.line)", at: key.position)
    }

    // MARK: - Keys

    /// `a.b = value`, in a table under a header or inline.
    mutating func keyAndValue(in table: TOMLTable) throws(TOMLError) {
        let keys = try dottedKey()
        guard scanner.skip(UInt8(ascii: "=")) else { throw expected("\"=\" after a key") }
        scanner.skipBlanks()
        var table = table
        for key in keys.dropLast() {
            switch table.member(key.text) {
            case nil: table = try add(.dotted, to: table, under: key, at: key.position)
            case (.table(let inner), _)? where inner.origin == .dotted: table = inner
            case (_, let position)?: throw redefinition(of: key, position)
            }
        }
        guard let last = keys.last else { throw expected("a key") }
        if let (_, position) = table.member(last.text) { throw redefinition(of: last, position) }
        let position = scanner.position
        table.add(.value(try value(depth: table.depth + 1)), under: last, at: position)
    }

    /// The parts of a key, with the blanks around each.
    private mutating func dottedKey() throws(TOMLError) -> [Key] {
        var keys: [Key] = []
        repeat {
            scanner.skipBlanks()
            let position = scanner.position
            // Before a million parts have been collected.
            try checkDepth(keys.count, at: position)
            keys.append(Key(text: try simpleKey(), position: position))
            scanner.skipBlanks()
        } while scanner.skip(UInt8(ascii: "."))
        return keys
    }

    private mutating func simpleKey() throws(TOMLError) -> String {
        switch scanner.next {
        case .quote: return try basicString()
        case .apostrophe: return try literalString()
        case let byte? where byte.isBareKey: return scanner.takeWhile(\.isBareKey)
        default: throw expected("a key")
        }
    }
}
