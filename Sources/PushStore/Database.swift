// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSQLite
internal import DialtoneDistributor

/// An open SQLite database, and its prepared statements.
struct Database: ~Copyable {
    /// Where it is, for errors.
    let path: String
    private let handle: OpaquePointer
    private var statements: [Statement: OpaquePointer] = [:]

    /// Opens a file that is there.
    init(_ path: String) throws(StoreError) {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(
            path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
        guard let handle else { throw StoreError(operation: "opening \(path)", code: code, text: "out of memory") }
        guard code == SQLITE_OK else {
            let text = String(cString: sqlite3_errmsg(handle))
            sqlite3_close_v2(handle)
            throw StoreError(operation: "opening \(path)", code: code, text: text)
        }
        sqlite3_extended_result_codes(handle, 1)
        // A process that ends still has the file for a moment.
        sqlite3_busy_timeout(handle, 500)
        self.path = path
        self.handle = handle
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    private func error(_ operation: String, _ code: CInt) -> StoreError {
        StoreError(operation: "\(operation) \(path)", code: code, text: String(cString: sqlite3_errmsg(handle)))
    }

    /// Runs statements that the program holds as a literal; their rows are left out.
    borrowing func run(_ statements: StaticString, _ operation: String) throws(StoreError) {
        try run(text: statements.description, operation)
    }

    /// Runs statements of ``Schema``.
    borrowing func run(text statements: String, _ operation: String) throws(StoreError) {
        let code = sqlite3_exec(handle, statements, nil, nil, nil)
        if code != SQLITE_OK { throw error(operation, code) }
    }

    /// Runs `body` as one transaction: all of it is on the disk when this returns, or nothing of it is.
    mutating func transaction(
        _ operation: String, _ body: (inout Database) throws(StoreError) -> Void
    ) throws(StoreError) {
        try run("BEGIN IMMEDIATE", operation)
        do {
            try body(&self)
            try run("COMMIT", operation)
        } catch {
            // Some errors have ended the transaction already.
            if sqlite3_get_autocommit(handle) == 0 { try? run("ROLLBACK", operation) }
            throw error
        }
    }

    /// Runs a prepared statement with these values, and gives each row to `row`.
    mutating func run(
        _ statement: Statement, _ values: [SQLValue] = [], _ operation: String = "saving to",
        _ row: (Row) -> Void = { _ in }
    ) throws(StoreError) {
        let prepared = try prepare(statement)
        defer {
            sqlite3_reset(prepared)
            sqlite3_clear_bindings(prepared)
        }
        for (index, value) in values.enumerated() {
            let code = value.bind(to: prepared, CInt(index + 1))
            if code != SQLITE_OK { throw error(operation, code) }
        }
        while true {
            let code = sqlite3_step(prepared)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw error(operation, code) }
            row(Row(statement: prepared))
        }
    }

    private mutating func prepare(_ statement: Statement) throws(StoreError) -> OpaquePointer {
        if let prepared = statements[statement] { return prepared }
        var prepared: OpaquePointer?
        let code = sqlite3_prepare_v3(
            handle, statement.rawValue, -1, CUnsignedInt(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard code == SQLITE_OK, let prepared else { throw error("preparing a statement for", code) }
        statements[statement] = prepared
        return prepared
    }
}

/// A value of a column.
enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    static func text(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
    static func time(_ time: WallTime?) -> SQLValue { time.map { .integer($0.milliseconds) } ?? .null }
    static func integer(_ number: Int64?) -> SQLValue { number.map { .integer($0) } ?? .null }
    static func flag(_ flag: Bool) -> SQLValue { .integer(flag ? 1 : 0) }
    static func count(_ count: Int) -> SQLValue { .integer(Int64(count)) }

    fileprivate func bind(to statement: OpaquePointer, _ index: CInt) -> CInt {
        switch self {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let number): return sqlite3_bind_int64(statement, index, number)
        case .text(var text):
            return text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    guard let start = $0.baseAddress else { return dialtone_bind_text(statement, index, "", 0) }
                    return dialtone_bind_text(statement, index, start, CInt(clamping: $0.count))
                }
            }
        case .blob(let bytes):
            return bytes.withUnsafeBytes {
                dialtone_bind_blob(statement, index, $0.baseAddress, CInt(clamping: $0.count))
            }
        }
    }
}

/// A row that was read, whose columns may hold anything. Its reading is over with the next step.
struct Row {
    fileprivate let statement: OpaquePointer

    /// An integer; `nil` for anything else.
    func integer(_ column: CInt) -> Int64? {
        sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : nil
    }

    /// A text of UTF-8 of that many bytes; `nil` for anything else.
    func text(_ column: CInt, _ bounds: ClosedRange<Int>) -> String? {
        guard sqlite3_column_type(statement, column) == SQLITE_TEXT else { return nil }
        return bytes(sqlite3_column_text(statement, column), column, bounds).flatMap {
            String(validating: $0, as: UTF8.self)
        }
    }

    /// Bytes, of that count; `nil` for anything else.
    func blob(_ column: CInt, _ bounds: ClosedRange<Int>) -> [UInt8]? {
        guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
        return bytes(sqlite3_column_blob(statement, column), column, bounds)
    }

    /// Whether there is nothing.
    func isNull(_ column: CInt) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

    private func bytes(_ start: UnsafeRawPointer?, _ column: CInt, _ bounds: ClosedRange<Int>) -> [UInt8]? {
        let count = Int(sqlite3_column_bytes(statement, column))
        guard bounds.contains(count) else { return nil }
        return Array(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
}
