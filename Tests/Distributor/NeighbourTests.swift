// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneExpectations
import DialtoneTestSupport
import Testing

/// What an app cannot do to the others, and what is asked of nobody.
@Suite struct NeighbourTests {
    private static let other = AppIdentity(name: "org.example.Other", sandbox: nil)
    private var world = Harness()

    @Test mutating func `an app that leaves each Unregistered unanswered keeps no other from its pushes`() {
        let quiet = world.registered(Harness.request("quiet", app: Self.other))
        for number in 0..<40 {
            world.take(.register(Harness.request("\(number)"), call: 2))
            world.take(.unregister(Harness.app, token: "\(number)"))
            expect(world.calls.map(\.content), is: [.unregistered(isAsked: true)])
        }
        world.arrive("1", quiet)
        expect(world.delivered, is: ["1"])
    }

    @Test mutating func `a sandbox takes no more calls at a time under many names`() {
        let quiet = world.registered(Harness.request("quiet", app: Self.other))
        var calls = 0
        for name in 0..<10 {
            let app = AppIdentity(name: "org.example.Box.n\(name)", sandbox: "org.example.Box")
            for token in 0..<4 {
                let registration = world.registered(Harness.request("\(token)", app: app))
                world.arrive("\(name)-\(token)", registration)
                calls += world.calls.count
            }
        }
        expect(calls, is: DistributorLimits().callsOfApp)
        world.arrive("1", quiet)
        expect(world.delivered, is: ["1"])
    }

    @Test mutating func `an app that starts slowly has all its time for the answer`() {
        let registration = world.registered(Harness.request(kind: .voip))
        world.arrive("1", registration)
        let call = world.calls[0]
        world.pass(.seconds(59))
        world.take(.answered(attempt: call.attempt, .taken))
        expect(world.distributor.overview.map(\.waiting), is: [0])
        expect(world.only.misses, is: 0)
    }

    @Test mutating func `without a push server apps are told what to do, and no server is asked`() {
        world.take(.register(Harness.request("asked"), call: 1))
        world.take(.command(.use(nil), call: 2))
        for (call, token) in [(UInt64(3), "asked"), (4, "new")] {
            world.take(.register(Harness.request(token), call: call))
            let answer = known(world.answers.first)
            guard case .failed(.actionRequired, _) = answer else {
                Issue.record("\(token): \(answer)")
                continue
            }
        }
        world.pass(.seconds(2 * 86_400))
        expect(world.asked, is: [])
        // It is chosen again.
        world.take(.command(.use(Harness.north), call: 5))
        world.take(.reported(Harness.north, .loggedIn))
        expect(world.asked.count, is: 1)
    }
}
