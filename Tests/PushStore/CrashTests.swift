// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePushStore
import DialtoneTestSupport
import Testing

/// The push store in trouble.
@Suite struct CrashTests {
    let fixture = StoreFixture()

    /// The transaction up to which a state is whole; `nil` where it is a part of one.
    private func number(of state: StoredState) -> Int64? {
        let number = state.settled.last?.number ?? 0
        if number == 0 { return state == StoredState() ? 0 : nil }
        let isWhole =
            state.settled.map(\.number) == Array(1...number)
            && state.registrations.map(\.request.summary) == ["\(number)"]
            && state.messages.map(\.number) == Array(max(1, number - 9)...number)
            && state.messages.allSatisfy {
                $0.body == Array(repeating: UInt8(truncatingIfNeeded: $0.number), count: 4096)
            }
            && state.memories.values.map { Array($0) } == [Array("\(number)".utf8)]
            && state.endings.map(\.endpoint) == ["\(number)"]
        return isWhole ? number : nil
    }

    @Test func `a process that is killed leaves each transaction entire, and all that it was told was saved`() throws {
        var random = SplitMix64(seed: seeds(1)[0])
        var last: Int64 = 0
        for round in 1...20 {
            let said =
                try Writer.runAndKill(
                    after: random.below(12), andTurns: random.below(3_000_000), fixture.store) ?? last
            var store = try PushStore(directory: fixture.store)
            let state = try store.load()
            let found = number(of: state)
            #expect(store.notices == [], "round \(round)")
            #expect(found == said || found == said + 1, "round \(round): said \(said), found \(found ?? -1)")
            last = found ?? 0
        }
        #expect(last > 20, "nothing was saved")
    }

    @Test func `a full disk refuses, loses nothing, and is used again when there is room`() throws {
        let result = Writer.run("full", fixture.store)
        let lines = result.output.split(separator: "\n")
        #expect(result.status == 0, "\(result)")
        #expect(lines.count == 3 && lines[0].hasPrefix("refused: saving to") && lines[2] == "saved", "\(result)")
        let numbers = lines.dropFirst().first?.split(separator: " of ").compactMap { Int64($0) } ?? []
        #expect(numbers.count == 2 && numbers.first == numbers.last, "\(result)")
        var store = try PushStore(directory: fixture.store)
        let state = try store.load()
        #expect(number(of: state) == (numbers.last ?? 0) + 1)
    }

    @Test(arguments: [0, 100, 4096, 20_000])
    func `a damaged file is renamed and told, and a new one takes its place`(offset: Int) throws {
        do {
            var store = try PushStore(directory: fixture.store)
            try store.save(Samples.all)
            try store.compact()
        }
        try fixture.overwrite(at: offset)
        var store = try PushStore(directory: fixture.store)
        #expect(store.notices.count == 1, "\(store.notices)")
        #expect(store.notices.first?.contains("\(fixture.file).damaged-1") == true, "\(store.notices)")
        #expect(fixture.entries.contains("push.db.damaged-1"), "\(fixture.entries)")
        let state = try store.load()
        #expect(state == StoredState())
        try store.save(Samples.all)
    }

    @Test func `damaged files are not renamed over each other`() throws {
        for number in 1...3 {
            _ = try PushStore(directory: fixture.store)
            fixture.write("this is no database, and more than 16 bytes", to: fixture.file)
            let store = try PushStore(directory: fixture.store)
            #expect(store.notices.first?.contains("damaged-\(number):") == true, "\(store.notices)")
        }
    }

    @Test func `what is no regular file is renamed`() throws {
        _ = try PushStore(directory: fixture.store)
        fixture.replaceByLink(to: "/etc/passwd")
        let store = try PushStore(directory: fixture.store)
        #expect(store.notices.first?.contains("no regular file") == true, "\(store.notices)")
    }

    @Test func `a file of a later version is left alone`() throws {
        _ = try PushStore(directory: fixture.store)
        try fixture.execute("PRAGMA user_version = 99")
        do throws(StoreError) {
            _ = try PushStore(directory: fixture.store)
            Issue.record("it was opened")
        } catch {
            #expect(error.description.contains("version 99"), "\(error)")
        }
        #expect(!fixture.entries.contains { $0.contains("damaged") }, "\(fixture.entries)")
    }

    @Test(arguments: [
        "UPDATE message SET urgency = 'extreme'", "UPDATE message SET body = zeroblob(4097)",
        "UPDATE message SET body = x''", "UPDATE message SET registration = 0", "UPDATE message SET failures = -1",
        "UPDATE message SET origin_registration = 'x'", "UPDATE message SET origin_id = ''",
        "UPDATE message SET origin_id = CAST(x'ff' AS TEXT)", "UPDATE message SET server = ''",
    ])
    func `a message that cannot be of our making is removed and told`(statement: String) throws {
        do {
            var store = try PushStore(directory: fixture.store)
            try store.save([.message(Samples.message(1)), .settled(Samples.settled(2))])
        }
        try fixture.execute(statement)
        do {
            var store = try PushStore(directory: fixture.store)
            let state = try store.load()
            #expect(state.messages == [])
            #expect(state.settled == [Samples.settled(2)])
            #expect(store.notices.first?.hasPrefix("1 messages in") == true, "\(store.notices)")
        }
        var store = try PushStore(directory: fixture.store)
        _ = try store.load()
        #expect(store.notices == [])
    }

    @Test(arguments: [
        "UPDATE registration SET version = 3", "UPDATE registration SET kind = 'loud'",
        "UPDATE registration SET told = 2", "UPDATE registration SET token = ''",
        "UPDATE registration SET endpoint = hex(zeroblob(501))", "UPDATE registration SET id = upper(id)",
        "UPDATE registration SET misses = 9223372036854775807", "UPDATE registration SET app = hex(zeroblob(128))",
    ])
    func `a registration that cannot be of our making is removed and told`(statement: String) throws {
        do {
            var store = try PushStore(directory: fixture.store)
            try store.save([.registration(Samples.registration)])
        }
        try fixture.execute(statement)
        var store = try PushStore(directory: fixture.store)
        let state = try store.load()
        #expect(state.registrations == [])
        #expect(store.notices.count == 1, "\(store.notices)")
    }
}
