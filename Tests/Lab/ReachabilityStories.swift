// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Reachability
import Testing

/// How the library delivers, on a real kernel. What it delivers, case by case, is in `KernelCases`.
@Suite(.lab)
struct ReachabilityStories {
    @Test func `the present path comes first, then each change, and none after cancel`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            let paths = PathRecorder()
            let monitor = PathMonitor(.any, on: { engine })
            monitor.pathUpdateHandler = { paths.add($0, []) }
            monitor.start(queue: paths.queue)
            let first = try await paths.next("the present path") { _ in true }
            #expect(first.status == .satisfied)
            #expect(first.interface?.name == "wan0")
            #expect(first.gateway == IPAddress(Uplink.wan0.gateway(.v4)))
            #expect(first.supportsIPv4 && first.supportsIPv6)

            try await lab.preferDefaultRoute(via: .wan1)
            _ = try await paths.next("the other uplink") { $0.interface?.name == "wan1" }

            monitor.cancel()
            let count = paths.count
            try await lab.takeDown(.wan1)
            // Another observer of the same engine has seen the change: the cancelled one had its chance.
            let witness = PathRecorder()
            let other = PathMonitor(.any, on: { engine })
            other.pathUpdateHandler = { witness.add($0, []) }
            other.start(queue: paths.queue)
            _ = try await witness.next("the witness") { $0.interface?.name != "wan1" }
            #expect(paths.count == count)
        }
    }

    @Test func `an asynchronous sequence gives the present path and the next`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            let host = HostReachability(.server(.v4), on: { engine })
            var updates = host.updates.makeAsyncIterator()
            expect(try #require(await updates.next()).path.status, is: .satisfied)
            expect(try await host.flags(), is: .reachable)
            try await lab.cut(.wan0)
            var path = try #require(await updates.next()).path
            // On the way there the path may have been seen in between.
            while path.status == .satisfied { path = try #require(await updates.next()).path }
            #expect(path.reason == .noCarrier)
            expect(try await host.flags(), is: [])
        }
    }

    @Test func `a source address that is lost takes its path with it`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            var target = Target.server(.v4)
            target.source = IPAddress(Uplink.wan1.address(.v4))
            let paths = PathRecorder(target, by: engine)
            _ = try await paths.next("the present path") { $0.status == .satisfied }
            try await lab.removeAddress(Uplink.wan1.prefix(.v4), from: .wan1)
            try await paths.next("the loss of the address") { $0.reason == .noAddress }
            try await lab.addAddress(Uplink.wan1.prefix(.v4), to: .wan1)
            _ = try await paths.next("the way back") { $0.status == .satisfied }
        }
    }
}
