// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneExpectations
import Testing

/// Messages.
@Suite struct MessageTests {
    var world = Harness()

    @Test mutating func `a message is saved, delivered, and acknowledged when the app took it`() {
        let registration = world.registered()
        world.arrive("1", registration)
        #expect(world.store.messages.map(\.origin.id.text) == ["1"])
        #expect(world.delivered == ["1"])
        #expect(world.kept == ["1"])
        #expect(world.settled == [:])
        #expect(world.effects.contains(.inhibitSleep(true)))
        world.answerAll(.taken)
        #expect(world.store.messages == [])
        #expect(world.settled == ["1": .taken])
        #expect(world.effects.contains(.inhibitSleep(false)))
        #expect(world.distributor.deadline == nil)
    }

    @Test mutating func `a second copy is delivered once, and acknowledged again`() {
        let registration = world.registered()
        world.arrive("1", registration)
        let first = world.effects
        world.arrive("1", registration)
        #expect(world.effects == [.server(Harness.north, .settled(ServerMessageID("1")!, .kept))])
        world.effects = first
        world.answerAll(.taken)
        #expect(world.kept == [])
        world.restart()
        world.arrive("1", registration)
        #expect(world.delivered == [])
        #expect(world.settled == ["1": .taken])
    }

    @Test mutating func `messages come one at a time, in their order, also after a restart`() {
        let registration = world.registered()
        for number in 1...3 { world.arrive("\(number)", registration) }
        world.restart()
        var order: [String] = []
        for _ in 1...3 {
            order += world.delivered
            world.answerAll(.taken)
        }
        #expect(order == ["1", "2", "3"])
    }

    @Test(arguments: [0, 1, 4096, 4097])
    func `a body has one to 4096 bytes`(size: Int) {
        var world = world
        let registration = world.registered()
        world.arrive("1", registration, size: size)
        let isAllowed = (1...4096).contains(size)
        #expect(world.delivered == (isAllowed ? ["1"] : []))
        #expect((world.settled["1"] != nil) == !isAllowed, "\(world.settled)")
    }

    @Test mutating func `a message that fails five times is set aside aloud, and the next goes on`() {
        let registration = world.registered()
        world.arrive("1", registration)
        let first = world.effects
        world.arrive("2", registration)
        world.effects = first
        for failures in 0..<5 {
            if failures > 0 { world.passToCall() }
            #expect(world.delivered == ["1"], "after \(failures)")
            world.answerAll(failures.isMultiple(of: 2) ? .refused("no") : .unanswered)
            #expect(world.settled.isEmpty == (failures < 4), "after \(failures)")
        }
        #expect(world.delivered == ["2"])
        #expect(world.settled["1"]?.isGivenUp == true, "\(world.settled)")
        #expect(world.reports.contains { if case .givenUp(_, "1", .poisoned(5, "no")) = $0 { true } else { false } })
    }

    @Test mutating func `what was settled is there afterwards, the newest last, with its registration`() {
        let first = world.registered(Harness.request("a"))
        let second = world.registered(Harness.request("b"))
        for (name, registration) in [("1", first), ("2", second), ("3", first)] {
            world.arrive(name, registration)
            world.answerAll(.taken)
        }
        world.take(.command(.remove(registration: second.number), call: 9))
        world.restart()
        func seen(_ number: Int64?, _ count: Int) -> [String] {
            world.distributor.settled(of: number, atMost: count).map {
                "\($0.message.origin.id.text) of \($0.registration.map { "\($0.number)" } ?? "none")"
            }
        }
        expect(seen(nil, 100), is: ["1 of 1", "2 of none", "3 of 1"])
        expect(seen(nil, 2), is: ["2 of none", "3 of 1"])
        expect(seen(first.number, 1), is: ["3 of 1"])
        expect(seen(second.number, 100), is: [])
    }

    @Test mutating func `an app that cannot be started does not count, until the message expires`() {
        let registration = world.registered()
        world.arrive("1", registration, expires: .seconds(7200))
        var tries = 0
        while world.delivered == ["1"], tries < 100 {
            tries += 1
            world.answerAll(.notStarted("no program"))
            world.passToCall()
        }
        #expect(tries == 7)
        #expect(world.store.messages == [])
        #expect(world.store.settled.last?.givenUp?.contains("time was over") == true, "\(world.store.settled)")
    }

    @Test mutating func `of an app that cannot be started it is told when nothing waits for it any more`() {
        let (first, second) = (world.registered(), world.registered(Harness.request("other")))
        world.arrive("1", first, expires: .seconds(65))
        world.answerAll(.notStarted("no program"))
        world.arrive("2", second, expires: .seconds(130))
        world.answerAll(.notStarted("no program"))
        world.passToCall()
        world.answerAll(.notStarted("no program"))
        world.pass(.seconds(30))
        #expect(!world.reports.contains(.nothingWaits(Harness.app)), "\(world.reports)")
        world.pass(.seconds(60))
        #expect(world.reports.contains(.nothingWaits(Harness.app)), "\(world.reports)")
    }

    @Test mutating func `an app that takes its name and ends is started later each time`() {
        let registrations = [world.registered(), world.registered(Harness.request("other"))]
        for registration in registrations { world.arrive("\(registration.number)", registration) }
        world.answerAll(.notStarted("it ended at its start"))
        world.passToCall()
        var starts: [Duration] = []
        while starts.count < 12 {
            starts.append(world.uptime)
            let calls = world.calls
            // The start brings its name to the bus, and it goes at once.
            world.take(.appAppeared(Harness.app.name))
            #expect(world.calls.isEmpty, "\(world.calls)")
            for call in calls { world.take(.answered(attempt: call.attempt, .notStarted("it ended at its start"))) }
            if world.calls.isEmpty { world.passToCall() }
        }
        #expect(starts.last.map { $0 - starts[0] } ?? .zero > .seconds(1200), "\(starts)")
    }

    @Test mutating func `an app that is there again is so with all its registrations`() {
        let (first, second) = (world.registered(), world.registered(Harness.request("other")))
        world.pass(.seconds(3600))
        for registration in [first, second] {
            world.arrive("\(registration.number)", registration)
            world.answerAll(.unknown)
        }
        #expect(world.store.registrations.count { $0.unknownSince != nil } == 2, "\(world.store.registrations)")
        world.passToCall()
        // Of one of them this says as much as of the other.
        world.take(.answered(attempt: world.calls[0].attempt, .taken))
        #expect(world.store.registrations.allSatisfy { $0.unknownSince == nil }, "\(world.store.registrations)")
    }

    @Test mutating func `an app that was started for one registration has at once what waits for the others`() {
        let (first, second) = (world.registered(), world.registered(Harness.request("other")))
        world.arrive("1", first)
        world.answerAll(.notStarted("no program"))
        world.arrive("2", second)
        #expect(world.delivered == ["2"])
        world.answerAll(.taken)
        #expect(world.delivered == ["1"])
    }

    @Test mutating func `an app that appears has at once what waited for its start`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.answerAll(.notStarted("no program"))
        #expect(world.delivered == [])
        world.take(.appAppeared(Harness.app.name))
        #expect(world.delivered == ["1"])
    }

    @Test mutating func `without a bus nothing is said of an app, and it has its message when there is one`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.answerAll(.noBus)
        expect(world.reports, is: [])
        expect(world.delivered, is: [])
        world.take(.busConnected)
        expect(world.delivered, is: ["1"])
    }

    @Test mutating func `an app that is not installed loses its registration after a day, and not before`() {
        let registration = world.registered()
        world.pass(.seconds(3600))
        let start = world.uptime
        var tries = 0
        while world.distributor.overview.count == 1, tries < 200 {
            tries += 1
            if world.delivered.isEmpty { world.arrive("\(tries)", registration) }
            world.answerAll(.unknown)
            if world.distributor.overview.count == 1 { world.passToCall() }
        }
        let hours = (world.uptime - start) / .seconds(3600)
        #expect((24...26).contains(hours), "\(hours)")
        #expect(tries > 12, "\(tries)")
        #expect(world.store.endings.map(\.id) == [registration.id])
    }

    @Test mutating func `while the bus is new nobody is taken for uninstalled`() {
        let registration = world.registered()
        world.arrive("1", registration)
        world.answerAll(.unknown)
        #expect(world.only.unknownSince == nil)
    }

    @Test mutating func `what no app has room for stays with the server`() {
        var limits = DistributorLimits()
        limits.messagesOfApp = 2
        world = Harness(limits: limits)
        let registration = world.registered()
        for number in 1...2 { world.arrive("\(number)", registration) }
        #expect(world.settled == [:])
        world.arrive("3", registration)
        #expect(world.settled == ["3": .full("too much waits for the app")])
        #expect(world.kept == [])
        #expect(world.reports.contains(.full(.init(registration))))
        world.arrive("4", registration)
        #expect(world.reports == [])
    }

    @Test mutating func `an app that takes nothing leaves the room of all to others, whose messages wait for none`() {
        var limits = DistributorLimits()
        limits.messagesOfApp = 2
        limits.messages = 3
        world = Harness(limits: limits)
        let stuck = world.registered(Harness.request(app: AppIdentity(name: "org.example.Stuck", sandbox: nil)))
        let other = world.registered()
        for number in 1...3 { world.arrive("stuck \(number)", stuck) }
        world.arrive("1", other)
        #expect(world.delivered == ["1"])
        world.arrive("2", other)
        #expect(world.settled["2"]?.isNotNow == true, "\(world.settled)")
    }

    @Test(
        arguments: [
            (false, nil, false, false, Urgency.veryLow), (true, 80, false, false, .low),
            (false, nil, true, false, .low),
            (true, 80, true, false, .normal), (false, nil, false, true, .normal), (true, 20, false, false, .high),
            (false, 20, false, false, .veryLow),
        ] as [(Bool, Int?, Bool, Bool, Urgency)])
    func `battery and network let through what is urgent enough`(
        isOnBattery: Bool, level: Int?, isExpensive: Bool, isConstrained: Bool, least: Urgency
    ) {
        for urgency in Urgency.allCases {
            for kind in PushKind.allCases {
                var world = world
                let registration = world.registered(Harness.request(kind: kind))
                var conditions = PushConditions()
                conditions.isOnBattery = isOnBattery
                conditions.batteryLevel = level
                conditions.isExpensive = isExpensive
                conditions.isConstrained = isConstrained
                world.take(.conditions(conditions))
                world.arrive("1", registration, urgency: urgency)
                let passes = kind == .voip || urgency >= least
                #expect(world.delivered == (passes ? ["1"] : []), "\(urgency) \(kind)")
                world.take(.conditions(PushConditions()))
                #expect(world.delivered == (passes ? [] : ["1"]), "\(urgency) \(kind)")
            }
        }
    }

    @Test mutating func `an urgent message takes those before it along`() {
        let registration = world.registered()
        var conditions = PushConditions()
        conditions.isOnBattery = true
        conditions.batteryLevel = 5
        world.take(.conditions(conditions))
        world.arrive("1", registration, urgency: .low)
        #expect(world.delivered == [])
        world.arrive("2", registration, urgency: .high)
        #expect(world.delivered == ["1"])
    }

    @Test mutating func `three missed calls demote, and the user is told`() {
        let registration = world.registered(Harness.request(kind: .voip))
        for number in 1...3 {
            world.arrive("\(number)", registration)
            #expect(world.calls.map(\.timeout) == [.seconds(30)])
            world.answerAll(.unanswered)
            if number == 3 { break }
            // What else becomes of the message counts no more.
            while !world.store.messages.isEmpty {
                world.passToCall()
                world.answerAll(.refused("no"))
            }
            #expect(world.only.misses == number)
        }
        #expect(world.only.isDemoted)
        #expect(world.only.kind == .standard)
        #expect(world.reports.contains(.demoted(.init(registration), misses: 3)))
        // The next push says so to the app.
        #expect(world.calls.isEmpty)
        world.passToCall()
        #expect(world.calls.map(\.isDemoted) == [true])
        world.take(.register(Harness.request(kind: .voip), call: 3))
        #expect(world.only.isDemoted, "registering again lifts nothing")
    }

    @Test(arguments: [31_536_000_000, -31_536_000_000] as [Int64])
    func `a clock that is set neither loses nor freezes messages`(step: Int64) {
        var world = world
        let registration = world.registered()
        world.arrive("1", registration, expires: .seconds(3600))
        world.answerAll(.notStarted("no program"))
        world.wall += step
        world.take(.timePassed)
        #expect(world.reports == [.clockSet(by: step)])
        #expect(world.store.messages.count == 1)
        world.pass(.seconds(7200))
        #expect(world.store.messages == [])
    }
}

extension MessageOutcome {
    var isGivenUp: Bool { if case .givenUp = self { true } else { false } }
    var isNotNow: Bool { if case .notNow = self { true } else { false } }
}
