// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneTOML
internal import DialtoneVarlink

/// The settings of a connection as a file says them. A key is the name of the field in `org.dialtone.Connections` in
/// snake case; what is milliseconds there is a duration with its units here, under a key without them.
struct SettingsTable: VarlinkFieldReader {
    /// Where the fields stand that were found, the place and the key, and which of them could not be read.
    private final class Places {
        var found: [String: (position: TOMLPosition, key: String)] = [:]
        var unread = UnreadFields()
    }

    private var table: TableReader
    private let places: Places
    /// The name of the object that this is, with a dot: "keepalive.".
    private let path: String
    /// What its keys begin with in messages.
    private let keys: String

    /// The settings at a connection.
    init(_ table: TableReader) { self.init(table, Places(), path: "", keys: "") }

    private init(_ table: TableReader, _ places: Places, path: String, keys: String) {
        (self.table, self.places, self.path, self.keys) = (table, places, path, keys)
    }

    /// What could not be read, which was reported.
    var unread: UnreadFields { places.unread }

    /// Reports the keys that are not known, once the settings were read.
    func finish() {
        if table.finish() { places.unread.insertMissing(of: "") }
    }

    mutating func flag(_ name: String) -> Bool? { take(name) { table, key in table.boolean(key) } }

    mutating func integer(_ name: String) -> Int? {
        take(name) { table, key in table.integer(key, Int.min...Int.max) }
    }

    mutating func duration(_ name: String) -> Duration? { take(name) { table, key in table.duration(key) } }

    mutating func number(_ name: String) -> Double? { take(name) { table, key in table.number(key) } }

    mutating func text(_ name: String) -> String? {
        let field = path + name
        return take(name) { table, key in
            if field == "trafficClass" {
                if case .integer(let number) = table.any(key)?.value { return "\(number)" }
                return table.string(key, expected: "a name or a number")?.value
            }
            if field.hasPrefix("opening["), name == "send" { return Self.readSend(from: &table) }
            return table.string(key)?.value
        }
    }

    mutating func integers(_ name: String) -> [Int]? {
        // No setting is one.
        lacks(name)
        return nil
    }

    mutating func refuse(_ name: String) {
        let key = note(name)
        places.unread.insert(path + name)
        table.error(key, places.found[path + name]?.position ?? table.position, "unknown value")
    }

    mutating func lacks(_ name: String) { table.require(note(name)) }

    mutating func texts(_ name: String) -> [String]? {
        let key = note(name)
        let texts = take(name, at: key) { table, key in table.strings(key) }
        for (index, text) in (texts ?? []).enumerated() {
            places.found["\(path)\(name)[\(index)]"] = (text.position, keys + key)
        }
        return texts?.map(\.value)
    }

    mutating func object<Object: VarlinkObject>(_ name: String) -> Object? {
        let key = note(name)
        // `expect = "…"` is short for exactly these bytes.
        if Object.self == ConnectionsAPI.OpeningAnswer.self, let node = table.any(key) {
            if case .string(let text) = node.value {
                places.found["\(path)\(name).bytes"] = (node.position, keys + key)
                return ConnectionsAPI.OpeningAnswer(bytes: text) as? Object
            }
            guard case .table = node.value else {
                return take(name, at: key) { table, key in
                    _ = table.string(key, expected: "a string or a table")
                    return nil
                }
            }
        }
        let inner = take(name, at: key) { table, key in table.table(key) }
        return inner.flatMap { read($0, as: "\(path)\(name)", key: key) }
    }

    mutating func objects<Object: VarlinkObject>(_ name: String) -> [Object]? {
        let key = note(name)
        guard !table.isAbsent(key) else { return nil }
        let tables = take(name, at: key) { table, key in table.tables(key) }
        if let first = tables.first { places.found[path + name] = (first.position, keys + key) }
        let objects: [Object?] = tables.enumerated().map { index, table in
            read(table, as: "\(path)\(name)[\(index)]", key: key)
        }
        // Without one of them, those behind it would be told with the places of others.
        return objects.contains { $0 == nil } ? nil : objects.compactMap(\.self)
    }

    private func read<Object: VarlinkObject>(_ table: TableReader, as field: String, key: String) -> Object? {
        places.found[field] = (table.position, keys + key)
        var inner = SettingsTable(table, places, path: field + ".", keys: "\(keys)\(key).")
        let object = Object(from: &inner)
        if inner.table.finish() { places.unread.insertMissing(of: field) }
        return object
    }

    /// Reads a field out of the table, by its key, and notes where that could not be done.
    private mutating func take<Value>(_ name: String, _ take: (inout TableReader, String) -> Value) -> Value {
        self.take(name, at: note(name), take)
    }

    /// The same of a field that was noted.
    private mutating func take<Value>(
        _ name: String, at key: String, _ take: (inout TableReader, String) -> Value
    ) -> Value {
        let before = table.report.count
        let value = take(&table, key)
        if table.report.count > before { places.unread.insert(path + name) }
        return value
    }

    /// What a step sends, which may be a password in a file of its own.
    private static func readSend(from table: inout TableReader) -> String? {
        let text = table.string("send")
        let file = table.string("send_file")
        if let text, let file {
            let first = text.position.line <= file.position.line ? "send" : "send_file"
            table.error("send_file", file.position, "the step says what it sends already, with \(first)")
        }
        guard text == nil, let file else { return text?.value }
        do throws(SecretFileError) {
            return try SecretFile.read(file.value, atMost: Opening.largestSize).escapedText
        } catch {
            table.error("send_file", file.position, "\"\(file.value)\" \(error.problem)")
            return nil
        }
    }

    // MARK: - Places

    private static let milliseconds = "Milliseconds"

    /// Notes where a field stands; returns its key.
    private mutating func note(_ name: String) -> String {
        let key = Self.key(of: name)
        if let node = table.any(key) { places.found[path + name] = (node.position, keys + key) }
        return key
    }

    /// The key of a field: "user_timeout" for "userTimeoutMilliseconds". A field's name is of ASCII, and its bytes are
    /// looked at: all fields of all connections are asked for, and a letter's Unicode properties cost eight times that.
    static func key(of name: String) -> String {
        let name = name.hasSuffix(milliseconds) ? name.dropLast(milliseconds.count) : name[...]
        var key: [UInt8] = []
        key.reserveCapacity(2 * name.utf8.count)
        for byte in name.utf8 {
            let isUppercase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            if isUppercase { key.append(UInt8(ascii: "_")) }
            key.append(isUppercase ? byte | 0x20 : byte)
        }
        return String(decoding: key, as: UTF8.self)
    }

    /// Reports what is wrong with the settings as a whole: at the field, or at what it is missing in.
    func report(_ problem: SettingsProblem) {
        var field = problem.field[...]
        var missing = ""
        while true {
            if let (position, key) = places.found[String(field)] {
                let key = missing.isEmpty ? key : "\(key).\(missing)"
                return tell(problem, key, position)
            }
            guard let dot = field.lastIndex(of: ".") else { break }
            missing = Self.key(of: String(field[field.index(after: dot)...])) + (missing.isEmpty ? "" : ".\(missing)")
            field = field[..<dot]
        }
        tell(problem, Self.key(of: String(field)) + (missing.isEmpty ? "" : ".\(missing)"), table.position)
    }

    private func tell(_ problem: SettingsProblem, _ key: String, _ position: TOMLPosition) {
        if problem.isHarmless {
            table.notice(key, position, problem.reason)
        } else {
            table.error(key, position, problem.reason)
        }
    }
}
