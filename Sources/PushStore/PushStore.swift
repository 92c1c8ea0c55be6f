// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSQLite
package import DialtoneDistributor
internal import DialtonePlatform
internal import Glibc

/// What the distributor keeps, in a SQLite file of one process, whose other users it keeps out.
///
/// Called from one queue. What ``save(_:)`` took is on the disk when it returns; a process that is killed, and a
/// machine that loses its power, leaves each transaction entire or not at all.
package struct PushStore: ~Copyable {
    /// What a person is to be told of the opening and the loading: what was damaged, and where it is now.
    package private(set) var notices: [String] = []
    /// Where the database is.
    package var path: String { database.path }
    var database: Database

    /// The file's name in its directory.
    package static let fileName = "push.db"

    /// Opens the store of a directory; makes both where they are missing. What cannot be used is renamed.
    ///
    /// - Throws: why there is none: the directory cannot be used, another process has it, or a
    ///   later version wrote it.
    package init(directory: String) throws(StoreError) { try self.init(directory: directory, Schema.migrations) }

    init(directory: String, _ migrations: [String]) throws(StoreError) {
        let path = "\(directory)/\(Self.fileName)"
        try Self.told { () throws(SystemError) in try StoreFile.makeDirectory(directory) }
        if try !Self.told({ () throws(SystemError) in try StoreFile.makeFile(path) }) {
            notices.append(try Self.setAside(path, "it is no regular file"))
        }
        do {
            database = try Self.open(path, migrations)
        } catch {
            guard error.isDamage else { throw error }
            notices.append(try Self.setAside(path, error.text))
            database = try Self.open(path, migrations)
        }
    }

    /// Does something with files, and says in the store's words why it cannot be done.
    private static func told<Value>(_ body: () throws(SystemError) -> Value) throws(StoreError) -> Value {
        do {
            return try body()
        } catch {
            let isFull = error.code == ENOSPC || error.code == EDQUOT
            throw StoreError(operation: error.operation, code: isFull ? SQLITE_FULL : SQLITE_OK, text: error.text)
        }
    }

    /// Renames a file and puts an empty one in its place; says so to a person.
    private static func setAside(_ path: String, _ why: String) throws(StoreError) -> String {
        let new = try told { () throws(SystemError) in
            let new = try StoreFile.setAside(path)
            guard try StoreFile.makeFile(path) else {
                throw SystemError("making \(path), where something else appears again and again", code: SQLITE_CANTOPEN)
            }
            return new
        }
        return "\(path) cannot be used (\(why)) and is now \(new): registrations and messages begin anew"
    }

    private static func open(_ path: String, _ migrations: [String]) throws(StoreError) -> Database {
        var database = try Database(path)
        for setting in Schema.settings { try database.run(text: setting, "setting up") }
        var result: String?
        try database.run(.check, [], "checking") { result = $0.text(0, 0...10_000) }
        guard result == "ok" else {
            throw StoreError(
                operation: "checking \(path)", code: SQLITE_CORRUPT, text: result ?? "its check says nothing")
        }
        var version: Int64 = 0
        try database.run(.version, [], "checking") { version = $0.integer(0) ?? -1 }
        guard (0...Int64(migrations.count)).contains(version) else {
            throw StoreError(
                operation: "opening \(path)", code: SQLITE_OK,
                text: "it is of version \(version), and this program knows none after \(migrations.count): install the "
                    + "later one again, or move the file away")
        }
        for migration in migrations.dropFirst(Int(version)) {
            try database.transaction("migrating") { (database) throws(StoreError) in
                try database.run(text: migration, "migrating")
            }
        }
        return database
    }

    /// Saves changes, in one transaction. Nothing of them is saved where it throws; after a failure of the disk itself
    /// they may be there nevertheless once the process ended.
    package mutating func save(_ changes: [StoreChange]) throws(StoreError) {
        guard !changes.isEmpty else { return }
        try database.transaction("saving to") { (database) throws(StoreError) in
            for change in changes {
                let (statement, values) = Self.statement(for: change)
                try database.run(statement, values)
            }
        }
    }

    private static func statement(for change: StoreChange) -> (Statement, [SQLValue]) {
        switch change {
        case .server(let server): (.putSetting, [.text("server"), .text(server.text)])
        case .memory(let server, []): (.removeMemory, [.text(server.text)])
        case .memory(let server, let bytes): (.putMemory, [.text(server.text), .blob(bytes)])
        case .registration(let registration): (.putRegistration, registration.columns)
        case .registrationRemoved(let number): (.removeRegistration, [.integer(number)])
        case .message(let message): (.putMessage, message.columns)
        case .messageRemoved(let number): (.removeMessage, [.integer(number)])
        case .settled(let message): (.putSettled, message.columns)
        case .settledRemoved(let number): (.removeSettled, [.integer(number)])
        case .ending(let ending): (.putEnding, ending.columns)
        case .endingRemoved(let server, let id): (.removeEnding, [.text(server.text), .text(id.text)])
        }
    }

    /// Writes the log back and gives what is free back to the file system. For a time when nothing waits: it takes
    /// some milliseconds.
    package mutating func compact() throws(StoreError) {
        try database.run(.vacuum, [], "compacting")
        try database.run(.checkpoint, [], "compacting")
    }

    mutating func notice(_ text: String) { notices.append(text) }
}
