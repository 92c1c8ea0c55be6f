// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// What users have the service manager store.
@Suite struct StorePaceTests {
    /// Counts what the service manager is told.
    @AgentQueue
    private final class Told {
        var messages = 0
    }

    @Test func `who opens and closes in a loop floods no service manager`() async {
        let (kept, messages, others) = await onQueue { () -> (Int, Int, [Bool]) in
            let told = Told()
            let manager = DescriptorStore.Manager(
                store: { (_, _) throws(SystemError) in told.messages += 1 },
                remove: { (_) throws(SystemError) in told.messages += 1 })
            let store = DescriptorStore(manager, limit: 4096, Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let greedy = store.part(of: .user(4001))
            var kept = 0
            for _ in 0..<20_000 {
                guard let number = greedy.keep([0]) else { continue }
                kept += 1
                greedy.discard(number)
            }
            let messages = told.messages
            let others = [StorePlaces.Holder.user(4002), .root].map { store.part(of: $0).keep([0]) != nil }
            return (kept, messages, others)
        }
        print("\(kept) of 20000 were kept, by \(messages) messages")
        #expect(kept < 2000)
        #expect(messages == 2 * kept)
        #expect(others == [true, true])
    }
}
