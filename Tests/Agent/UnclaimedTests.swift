// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// What an earlier process left in the service manager's store, and the state does not say whose it is.
@AgentQueue
@Suite struct UnclaimedTests {
    /// How many places there are.
    private static let places = 16

    private let manager = DescriptorStore.Manager(
        store: { (_, _) throws(SystemError) in }, remove: { (_) throws(SystemError) in })

    private func store(left: [UInt64: [CInt]]) -> DescriptorStore {
        DescriptorStore(
            manager, limit: Self.places + DescriptorStore.reserved, left: left,
            Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test func `a number that the manager did not hand on gives no place back`() throws {
        let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let store = store(left: [1: [file]])
        let part = store.part(of: .root)
        for number: UInt64 in 2...4 {
            expect(part.claim(number), is: [])
            part.discard(number)
        }
        let kept = (0..<2 * Self.places).count { _ in part.keep([0]) != nil }
        #expect(kept == Self.places - 1)
        part.discard(1)
        close(file)
        #expect(part.keep([0]) != nil)
        #expect(part.keep([0]) == nil)
    }
}
