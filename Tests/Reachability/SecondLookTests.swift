// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import Testing

@testable import Reachability

/// Changes that the kernel tells of too early are looked at again, each after its full delay.
@AgentQueue
struct SecondLookTests {
    private static func change(to prefix: UInt32, isForetold: Bool = true) -> KernelChange {
        var change = KernelChange(.routes, routes: .inside([IPPrefix(IPAddress(v4: prefix), length: 24)]))
        change.isForetold = isForetold
        return change
    }

    @Test func `a foretold change is looked at after each delay`() async {
        let start = BootClock.now()
        let looks = await looks(2) { $0.follow(Self.change(to: 1)) }
        #expect(looks.map(\.change.routes) == [Self.change(to: 1).routes, Self.change(to: 1).routes])
        // By then it is done; it must not ask for more looks by itself.
        #expect(looks.allSatisfy { !$0.change.isForetold })
        for (look, delay) in zip(looks, SecondLook.delays) { #expect(look.time >= start + delay) }
    }

    @Test func `another change is looked at only if foretold`() async {
        let looks = await looks(1) {
            $0.follow(Self.change(to: 1, isForetold: false))
            $0.follow(Self.change(to: 2))
        }
        #expect(looks[0].change.routes == Self.change(to: 2).routes)
    }

    /// What comes while one waits is not looked at before its own time.
    @Test func `a change that comes later has its full delay`() async {
        var second = Duration.zero
        let looks = await looks(4) { looker in
            let start = BootClock.now()
            looker.follow(Self.change(to: 1))
            // No timer fires in this turn of the queue, however long it lasts.
            while BootClock.now() < start + SecondLook.delays[0] / 2 {}
            second = BootClock.now()
            looker.follow(Self.change(to: 2))
            looker.follow(Self.change(to: 3))
        }
        var both = Self.change(to: 2)
        both.merge(Self.change(to: 3))
        let first = looks.first { $0.change.routes == both.routes }
        #expect(first != nil)
        if let first { #expect(first.time >= second + SecondLook.delays[0]) }
        #expect(looks.filter { $0.change.routes == both.routes }.count == 2)
    }

    /// The first `count` looks, after `body` gave the changes.
    private func looks(_ count: Int, _ body: (SecondLook) -> Void) async -> [(time: Duration, change: KernelChange)] {
        var looks: [(time: Duration, change: KernelChange)] = []
        var keep: SecondLook?
        var limit: Timers.Timer?
        await withCheckedContinuation { continuation in
            var waiting: CheckedContinuation<Void, Never>? = continuation
            func finish() {
                waiting?.resume()
                waiting = nil
            }
            let looker = SecondLook { change in
                looks.append((BootClock.now(), change))
                if looks.count == count { finish() }
            }
            keep = looker
            limit = Timers.shared.schedule(after: .seconds(90)) {
                Issue.record("\(looks.count) looks of \(count): \(looks)")
                finish()
            }
            body(looker)
        }
        limit?.cancel()
        withExtendedLifetime(keep) {}
        return looks
    }
}
