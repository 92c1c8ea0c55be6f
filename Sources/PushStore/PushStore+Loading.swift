// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor

extension PushStore {
    /// What was saved. Rows that cannot be of this program's making are removed and told (``notices``): a message of
    /// that kind was not acknowledged, and its server sends it again.
    package mutating func load() throws(StoreError) -> StoredState {
        var state = StoredState()
        try database.run(.setting, [.text("server")], "reading") { state.server = $0.server(0) }
        var badMemories: [SQLValue] = []
        try database.run(.memories, [], "reading") { row in
            if let server = row.server(0), let bytes = row.blob(1, 0...DistributorLimits.memory) {
                state.memories[server] = bytes
            } else if let number = row.integer(2) {
                badMemories.append(.integer(number))
            }
        }
        try drop(badMemories, "of what servers remember", .dropMemory)
        state.registrations = try read(.registrations, "registrations", .removeRegistration) { Registration($0) }
        state.messages = try read(.messages, "messages", .removeMessage) { StoredMessage($0) }
        state.settled = try read(.allSettled, "settled messages", .dropSettled) { SettledMessage($0) }
        var badEndings = 0
        try database.run(.endings, [], "reading") { row in
            if let ending = Ending(row) { state.endings.append(ending) } else { badEndings += 1 }
        }
        if badEndings > 0 { notice("\(badEndings) endings in \(path) cannot be read and are left out") }
        return state
    }

    /// Reads the rows of a table whose first column is its key.
    private mutating func read<Value>(
        _ statement: Statement, _ what: String, _ removal: Statement, _ make: (Row) -> Value?
    ) throws(StoreError) -> [Value] {
        var values: [Value] = []
        var bad: [SQLValue] = []
        try database.run(statement, [], "reading") { row in
            if let value = make(row) {
                values.append(value)
            } else if let number = row.integer(0) {
                bad.append(.integer(number))
            }
        }
        try drop(bad, what, removal)
        return values
    }

    private mutating func drop(_ rows: [SQLValue], _ what: String, _ removal: Statement) throws(StoreError) {
        guard !rows.isEmpty else { return }
        notice("\(rows.count) \(what) in \(path) cannot be read and are removed")
        try database.transaction("cleaning") { (database) throws(StoreError) in
            for row in rows { try database.run(removal, [row], "cleaning") }
        }
    }
}
