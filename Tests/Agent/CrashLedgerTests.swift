// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// For whom processes crashed, and who is refused for it.
@Suite struct CrashLedgerTests {
    private func call(_ user: UInt32, digest: UInt64 = 7, signal: Int32? = 4) -> BlackBox.Crash {
        .init(.call(method: "org.dialtone.Connections.Open", user: user), digest: digest, signal: signal)
    }

    @Test func `the third crash in a row has a user refused, for ten minutes`() {
        var ledger = CrashLedger()
        for second in 1...3 {
            #expect(ledger.refusal(of: .user(1000), now: .seconds(second)) == nil)
            #expect(ledger.note(call(1000, digest: UInt64(second)), now: .seconds(second)) == .user(1000))
        }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(3)) == .seconds(600))
        #expect(ledger.refusal(of: .user(1000), now: .seconds(602)) == .seconds(1))
        #expect(ledger.refusal(of: .user(1000), now: .seconds(603)) == nil)
        #expect(ledger.refusal(of: .user(1001), now: .seconds(3)) == nil, "nobody else is")
    }

    @Test func `crashes with a long time between them are no row`() {
        var ledger = CrashLedger()
        for count in 1...5 { _ = ledger.note(call(1000), now: .seconds(601 * count)) }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(601 * 5)) == nil)
        #expect(ledger.entries.map(\.count) == [1])
    }

    @Test func `another user's crashes in between count for that one, and break no row`() {
        var ledger = CrashLedger()
        for second in 1...6 { _ = ledger.note(call(second.isMultiple(of: 2) ? 1000 : 1001), now: .seconds(second)) }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(6)) != nil)
        #expect(ledger.refusal(of: .user(1001), now: .seconds(6)) != nil)
    }

    @Test func `who kills it blames nobody, unless the same message was under way each time`() {
        var ledger = CrashLedger()
        for second in 1...5 { _ = ledger.note(call(1000, digest: UInt64(second), signal: nil), now: .seconds(second)) }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(5)) == nil)
        for second in 6...8 { _ = ledger.note(call(1000, digest: 8, signal: nil), now: .seconds(second)) }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(8)) != nil)
    }

    @Test func `root is never refused`() {
        var ledger = CrashLedger()
        for second in 1...9 { _ = ledger.note(call(0), now: .seconds(second)) }
        #expect(ledger.refusal(of: .user(0), now: .seconds(9)) == nil)
    }

    @Test func `a crash with nothing under way is nobody's`() {
        var ledger = CrashLedger()
        #expect(ledger.note(.init(nil, signal: 4), now: .seconds(1)) == nil)
        #expect(ledger.note(.init(.configuration, signal: 4), now: .seconds(1)) == nil)
        #expect(ledger.entries.isEmpty)
    }

    @Test func `a connection whose server does it is told from others, and its owner answers for many`() {
        var ledger = CrashLedger()
        for name in ["office", "van", "door"] {
            for _ in 1...3 {
                #expect(ledger.refusal(of: .user(1000), now: .seconds(1)) == nil)
                let crash = BlackBox.Crash(.bytes(connection: name, user: 1000), signal: 11)
                #expect(ledger.note(crash, now: .seconds(1)) == .connection(name, owner: 1000))
            }
            #expect(ledger.refusal(of: .connection(name, owner: 1000), now: .seconds(1)) != nil)
            let leftAlone = ledger.connectionsLeftAlone(now: .seconds(1))
            #expect(leftAlone.contains { $0.key == ConnectionKey(name, of: 1000) && $0.rest == .seconds(600) })
            #expect(ledger.refusal(of: .connection(name, owner: 1001), now: .seconds(1)) == nil)
        }
        #expect(ledger.refusal(of: .user(1000), now: .seconds(1)) != nil)
    }

    @Test func `it remembers the newest alone, as many as there is room for`() {
        var ledger = CrashLedger()
        for user in 1...100 { _ = ledger.note(call(UInt32(user)), now: .seconds(user)) }
        #expect(ledger.entries.count == BlackBox.mostEntries)
        #expect(ledger.entries.first?.work == call(100).work)
    }

    @Test(arguments: [(0, 0), (10, 0), (11, 1), (12, 2), (14, 8), (16, 30), (4_000_000_000, 30)])
    func `after many starts that did not last, the next ones wait`(starts: Int, seconds: Int) {
        #expect(CrashGuard.pause(afterStarts: starts) == .seconds(seconds))
    }
}
