// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import Testing

/// A store that fails.
@Suite struct SavingTests {
    var world = Harness()

    @Test mutating func `a message that cannot be saved is neither delivered nor acknowledged, and stays upstream`() {
        let registration = world.registered()
        world.storeFails = true
        world.arrive("1", registration)
        #expect(world.delivered == [])
        #expect(world.kept == [])
        #expect(world.settled["1"]?.isNotNow == true, "\(world.settled)")
        #expect(world.reports == [.storeFailed("the disk is full")])
        world.arrive("2", registration)
        #expect(world.settled["2"]?.isNotNow == true, "\(world.settled)")
        #expect(world.reports == [])
        world.storeFails = false
        world.pass(.seconds(5))
        world.arrive("1", registration)
        #expect(world.delivered == ["1"])
        #expect(!world.effects.contains(.report(.storeFailed("the disk is full"))))
    }

    @Test mutating func `what an app took while nothing can be saved is acknowledged later`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.storeFails = true
        world.answerAll(.taken)
        #expect(world.settled == [:])
        world.pass(.seconds(60))
        #expect(world.settled == [:])
        #expect(world.reports == [])
        world.storeFails = false
        world.pass(.seconds(300))
        #expect(world.settled == ["1": .taken])
        #expect(world.reports.filter { $0 == .storeWorks }.count == 1)
        #expect(world.distributor.deadline == nil)
    }

    @Test mutating func `a registration that cannot be saved is refused, and there is none`() {
        world.storeFails = true
        world.take(.register(Harness.request(), call: 9))
        #expect(world.answers.map(\.reason) == [.internalError])
        #expect(world.asked == [])
        #expect(world.distributor.overview == [])
        world.take(.register(Harness.request(), call: 10))
        #expect(world.answers.map(\.reason) == [.internalError])
    }

    @Test mutating func `what a server remembers is not saved without the messages that it counts`() {
        let registration = world.registered()
        let message = ArrivedMessage(
            id: ServerMessageID("1")!, registration: registration.id, body: [1], urgency: .normal, expires: nil)
        world.storeFails = true
        world.take(.arrived(Harness.north, [message], memory: [1]))
        world.take(.arrived(Harness.north, [], memory: [2]))
        world.storeFails = false
        world.pass(.seconds(300))
        #expect(world.store.memories == [Harness.north: [2]])
    }

    @Test mutating func `a message that is sent again, as its server heard nothing, is known to be kept`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.restart()
        #expect(world.kept == [])
        world.storeFails = true
        world.arrive("1", registration)
        #expect(world.kept == ["1"])
        let message = ArrivedMessage(
            id: ServerMessageID("2")!, registration: registration.id, body: [1], urgency: .normal, expires: nil)
        world.take(.arrived(Harness.north, [message, message], memory: nil))
        #expect(world.kept == [])
        world.storeFails = false
        world.pass(.seconds(5))
        world.take(.arrived(Harness.north, [message, message], memory: nil))
        #expect(world.kept == ["2"])
    }

    @Test mutating func `a process that ends before it could acknowledge does so after the next login`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.answerAll(.taken)
        world.restart()
        #expect(world.settled == ["1": .taken])
        world.take(.reported(Harness.north, .loggedIn))
        #expect(world.settled == [:])
    }

    @Test mutating func `what a server was told before something could not be saved it is told again`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.answerAll(.taken)
        world.storeFails = true
        world.arrive("2", registration)
        world.storeFails = false
        world.take(.reported(Harness.north, .loggedIn))
        #expect(world.settled["1"] == .taken, "\(world.settled)")
    }

    @Test mutating func `what was asked before the machine slept has its time afterwards`() {
        let registration = world.registered()
        world.arrive("1", registration)
        let call = world.calls[0]
        world.take(.suspending)
        world.uptime += .seconds(36_000)
        world.wall += 36_000_000
        world.take(.resumed)
        #expect(world.reports == [])
        world.take(.answered(attempt: call.attempt, .taken))
        #expect(world.settled == ["1": .taken])
    }

    @Test mutating func `neither server nor app hears of an ending, or of another name, before it is saved`() {
        let old = world.registered()
        let other = world.registered(Harness.request("other"))
        world.storeFails = true
        world.take(.register(Harness.request(vapid: "new"), call: 2))
        world.take(.unregister(Harness.app, token: "other"))
        world.pass(.seconds(60))
        #expect(world.asked == [])
        #expect(world.calls == [])
        world.storeFails = false
        world.pass(.seconds(300))
        let new = world.store.registrations[0]
        #expect(world.calls.map(\.content) == [.unregistered(isAsked: true)])
        #expect(world.asked.contains(.register(new.id, vapid: "new")), "\(world.asked)")
        for ended in [old, other] {
            #expect(world.asked.contains(.unregister(ended.id, endpoint: ended.endpoint)), "\(world.asked)")
        }
    }

    @Test mutating func `a lost identity is saved with the memory that knows of it, or not at all`() {
        let registration = world.registered()
        world.storeFails = true
        world.take(.arrived(Harness.north, [], memory: [2], identityLost: "another uaid"))
        #expect(world.store.memories == [:])
        #expect(world.store.registrations.map(\.endpoint) == [registration.endpoint])
        world.storeFails = false
        world.pass(.seconds(300))
        #expect(world.store.memories == [Harness.north: [2]])
        #expect(world.store.registrations.map(\.endpoint) == [nil])
        world.take(.reported(Harness.north, .loggedIn))
        #expect(world.asked == [.register(registration.id, vapid: nil)])
    }
}
