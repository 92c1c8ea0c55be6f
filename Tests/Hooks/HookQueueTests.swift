// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneVarlink
import Testing

@testable import DialtoneHooks

/// The changes that wait for slow hooks.
@Suite struct HookQueueTests {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)

    private func change(_ name: HookChange.Name, of connection: String, owner: Int = 1000) -> HookChange {
        let connection = ConnectionsAPI.Connection(
            name: connection, owner: owner, remote: "tcp://192.0.2.7:7000", epoch: 3, state: .waiting,
            holder: .daemon, session: .none, since: Self.now, attempt: 1)
        return HookChange(name, .connection(connection, nil))
    }

    private let network = HookChange(
        .networkDown,
        .network(
            .init(
                path: .init(
                    generation: 1, status: .unsatisfied, coherent: true, isDirect: false, isLocalAddress: false,
                    supportsIPv4: false, supportsIPv6: false, supportsDNS: false, expensive: false,
                    constrained: false), changes: ["status"])))

    /// The words of all that wait, and how many were left out.
    private func drain(_ queue: inout HookQueue) -> (told: [String], leftOut: Int) {
        var (told, sum) = ([String](), 0)
        while let (change, leftOut) = queue.takeFirst() {
            let variables = change.variables
            told.append(
                [change.name.rawValue, variables["DIALTONE_NAME"], variables["DIALTONE_OWNER"]].compactMap(\.self)
                    .joined(separator: " "))
            sum += leftOut
        }
        return (told, sum)
    }

    @Test func `while few wait, each is called in its turn`() {
        var queue = HookQueue()
        let names = (0..<HookQueue.most / 2).flatMap { _ in [HookChange.Name.connectionDown, .connectionUp] }
        for name in names { queue.append(change(name, of: "a")) }
        let (told, leftOut) = drain(&queue)
        #expect(told == names.map { "\($0.rawValue) a 1000" })
        #expect(leftOut == 0)
    }

    @Test func `where all connections fall at once, each is told of, and the network as well`() {
        var queue = HookQueue()
        queue.append(network)
        for number in 0..<1000 { queue.append(change(.connectionDown, of: "a", owner: number)) }
        let (told, leftOut) = drain(&queue)
        #expect(told == ["network-down"] + (0..<1000).map { "connection-down a \($0)" })
        #expect(leftOut == 0)
    }

    @Test func `where one comes and goes again and again, its last changes are called, in their order`() {
        var queue = HookQueue()
        for _ in 0..<10_000 {
            queue.append(change(.connectionUp, of: "flaps"))
            queue.append(change(.connectionDown, of: "flaps"))
        }
        queue.append(change(.connectionOpened, of: "new"))
        let (told, leftOut) = drain(&queue)
        #expect(told.count == HookQueue.most + 1)
        #expect(
            told.suffix(3) == ["connection-up flaps 1000", "connection-down flaps 1000", "connection-opened new 1000"])
        #expect(leftOut == 20_000 - HookQueue.most)
        #expect(drain(&queue).told == [], "once")
    }
}
