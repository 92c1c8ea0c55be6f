// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneExpectations
import Testing

/// Registrations.
@Suite struct RegistrationTests {
    var world = Harness()

    @Test mutating func `an app is answered when its server has registered it, and told its endpoint`() {
        world.take(.register(Harness.request(vapid: "key"), call: 7))
        #expect(world.answers == [])
        let id = world.only.id
        #expect(world.asked == [.register(id, vapid: "key")])
        world.take(.reported(Harness.north, .registered(id, endpoint: "https://push.example/1", expires: nil)))
        #expect(world.effects.contains(.answer(call: 7, .succeeded)))
        #expect(world.calls.map(\.content) == [.newEndpoint("https://push.example/1")])
        world.answerAll(.taken)
        #expect(world.store.registrations.map(\.isTold) == [true])
        #expect(world.distributor.deadline == nil)
    }

    @Test mutating func `a server that does not answer is NETWORK after ten seconds, and tried further`() {
        world.take(.register(Harness.request(), call: 7))
        #expect(world.pass(.seconds(9)) == [])
        world.pass(.seconds(1))
        #expect(world.answers.map(\.reason) == [.network])
        world.pass(.seconds(120))
        #expect(world.asked == [.register(world.only.id, vapid: nil)])
        world.take(.reported(Harness.north, .registered(world.only.id, endpoint: "https://a.example", expires: nil)))
        #expect(world.calls.map(\.content) == [.newEndpoint("https://a.example")])
        #expect(world.answers == [])
    }

    @Test mutating func `a known token has its endpoint at once, and another app's is another registration`() {
        let first = world.registered()
        world.take(.register(Harness.request(), call: 2))
        #expect(world.answers == [.succeeded])
        #expect(world.calls.map(\.content) == [.newEndpoint(first.endpoint ?? "")])
        #expect(world.asked == [])
        world.take(.register(Harness.request(app: AppIdentity(name: "org.example.Other", sandbox: nil)), call: 3))
        #expect(world.answers == [])
        #expect(world.distributor.overview.count == 2)
    }

    @Test mutating func `the same name in another sandbox ends nothing`() {
        _ = world.registered()
        world.take(.unregister(AppIdentity(name: Harness.app.name, sandbox: "flatpak:org.evil"), token: "token"))
        #expect(world.effects == [])
        #expect(world.distributor.overview.count == 1)
    }

    @Test mutating func `another key is another endpoint, and the old one is ended`() {
        let old = world.registered()
        world.take(.register(Harness.request(vapid: "new"), call: 2))
        let new = world.only
        #expect(new.id != old.id)
        #expect(world.asked == [.register(new.id, vapid: "new"), .unregister(old.id, endpoint: old.endpoint)])
    }

    @Test(arguments: [
        (Harness.request(""), "the token has 0 bytes"), (Harness.request(String(repeating: "x", count: 101)), "101"),
        (Harness.request(app: AppIdentity(name: "", sandbox: nil)), "bus name"),
        (Harness.request(vapid: String(repeating: "x", count: 129)), "VAPID"),
    ])
    func `a request out of bounds is refused`(request: RegistrationRequest, why: String) {
        var world = world
        world.take(.register(request, call: 2))
        #expect(world.answers.map(\.reason) == [.internalError])
        #expect("\(world.answers)".contains(why), "\(world.answers)")
        #expect(world.distributor.overview == [])
    }

    @Test mutating func `an app has so many registrations, and not one more`() {
        var limits = DistributorLimits()
        limits.registrationsOfApp = 3
        world = Harness(limits: limits)
        for number in 1...4 { world.take(.register(Harness.request("\(number)"), call: UInt64(number))) }
        #expect(world.answers.map(\.reason) == [.internalError])
        #expect(world.distributor.overview.count == 3)
    }

    @Test mutating func `the names of one sandbox share its room, and leave that of others alone`() {
        var limits = DistributorLimits()
        (limits.registrationsOfApp, limits.messagesOfApp) = (2, 1)
        world = Harness(limits: limits)
        func app(_ name: String, _ sandbox: String?) -> RegistrationRequest {
            Harness.request(app: AppIdentity(name: "org.example.\(name)", sandbox: sandbox))
        }
        let first = world.registered(app("App", "flatpak:org.example.App"))
        let second = world.registered(app("App.Child", "flatpak:org.example.App"))
        world.take(.register(app("App.Third", "flatpak:org.example.App"), call: 9))
        #expect(world.answers.map(\.reason) == [.internalError])
        let other = world.registered(app("App.Third", nil))
        for (number, registration) in [first, second, other].enumerated() {
            world.arrive("\(number)", registration)
            #expect((world.settled["\(number)"] != nil) == (number == 1), "\(number): \(world.settled)")
        }
    }

    @Test mutating func `another refusal of the login is told, and one after another password`() {
        for (why, isNews) in [("wrong password", true), ("wrong password", false), ("no such user", true)] {
            world.take(.reported(Harness.north, .loginRefused(why)))
            #expect(world.reports == (isNews ? [.server(Harness.north, refusal: why)] : []), "\(why)")
        }
        world.take(.command(.use(Harness.north), call: 1))
        world.take(.reported(Harness.north, .loginRefused("no such user")))
        #expect(world.reports == [.server(Harness.north, refusal: "no such user")])
    }

    @Test mutating func `without a server the user has something to do`() {
        world = Harness(server: nil)
        world.take(.register(Harness.request(), call: 1))
        #expect(world.answers.map(\.reason) == [.actionRequired])
    }

    @Test mutating func `an app that unregisters is told, and so is its server until it confirms`() {
        let old = world.registered()
        world.take(.unregister(Harness.app, token: "token"))
        #expect(world.calls.map(\.content) == [.unregistered(isAsked: true)])
        #expect(world.asked == [.unregister(old.id, endpoint: old.endpoint)])
        world.restart()
        #expect(world.asked == [.unregister(old.id, endpoint: old.endpoint)])
        world.take(.reported(Harness.north, .unregistered(old.id)))
        #expect(world.store.endings == [])
    }

    @Test mutating func `a server that lost its identity is asked for everything again, and apps are told`() {
        let first = world.registered(Harness.request("1"))
        let second = world.registered(Harness.request("2"))
        world.take(.reported(Harness.north, .identityLost("another uaid")))
        #expect(world.asked == [.register(first.id, vapid: nil), .register(second.id, vapid: nil)])
        for id in [first.id, second.id] {
            world.take(
                .reported(Harness.north, .registered(id, endpoint: "https://n.example/\(id.text)", expires: nil)))
            #expect(world.calls.map(\.content) == [.newEndpoint("https://n.example/\(id.text)")])
        }
    }

    @Test mutating func `an endpoint that its server has no room to renew is asked for again`() {
        world.take(.register(Harness.request(), call: 1))
        let id = world.only.id
        let expires = WallTime(milliseconds: world.wall + 86_400_000)
        world.take(.reported(Harness.north, .registered(id, endpoint: "https://a.example", expires: expires)))
        world.answerAll(.taken)
        world.pass(.seconds(43_200))
        expect(world.asked, is: [.register(id, vapid: nil)])
        world.take(.reported(Harness.north, .registrationsFull(id, "256 are the most")))
        world.pass(.seconds(60))
        expect(world.asked, is: [.register(id, vapid: nil)])
        expect(world.only.endpoint, is: "https://a.example")
    }

    @Test mutating func `an endpoint is renewed before it expires, and not told where it stays the same`() {
        world.take(.register(Harness.request(), call: 1))
        let id = world.only.id
        let expires = WallTime(milliseconds: world.wall + 86_400_000)
        world.take(.reported(Harness.north, .registered(id, endpoint: "https://a.example", expires: expires)))
        world.answerAll(.taken)
        #expect(world.pass(.seconds(43_000)) == [])
        // Half of its time is over. After a minute without an answer it would be asked again.
        world.pass(.seconds(210))
        #expect(world.asked == [.register(id, vapid: nil)])
        world.take(.reported(Harness.north, .registered(id, endpoint: "https://a.example", expires: expires)))
        #expect(world.calls == [])
    }

    @Test(arguments: [-31_536_000, -86_400, 0, 86_400, 31_536_000])
    func `an endpoint is renewed in time, though the clock was set while no process saw it`(step: Int64) {
        var world = world
        world.registerForADay()
        world.wall += step * 1000
        world.restart()
        world.pass(.seconds(43_300))
        #expect(world.asked.contains(.register(world.only.id, vapid: nil)))
    }

    @Test(arguments: [-31_536_000, -86_400, 86_400, 31_536_000])
    func `an endpoint is renewed in time, though the clock was wrong when it was registered`(step: Int64) {
        var world = world
        let right = world.wall
        world.wall += step * 1000
        world.registerForADay(from: right)
        world.wall = right
        world.take(.timePassed)
        #expect(world.reports == [.clockSet(by: -step * 1000)])
        world.pass(.seconds(43_300))
        #expect(world.asked.contains(.register(world.only.id, vapid: nil)))
    }

    @Test(arguments: [RegistrationFailure.internalError, .vapidRequired])
    func `an endpoint that stands outlives a failure that nobody asked for`(reason: RegistrationFailure) {
        var world = world
        let registration = world.registered()
        world.take(.reported(Harness.north, .registrationFailed(registration.id, reason, "no")))
        #expect(world.reports.count == 1)
        #expect(world.pass(.seconds(86_400)) == [])
        #expect(world.store.registrations == [registration])
    }

    @Test mutating func `a registration that its server has no room for is over, and is not asked for again`() {
        world.take(.register(Harness.request(), call: 1))
        world.take(.reported(Harness.north, .registrationsFull(world.only.id, "256 are the most")))
        #expect(world.answers == [.failed(.internalError, "256 are the most")])
        #expect(world.calls == [], "the answer said it")
        #expect(world.store.registrations == [])
        #expect(!world.pass(.seconds(86_400)).contains { if case .server(_, .register) = $0 { true } else { false } })
        // One that had an endpoint elsewhere is told.
        let moved = world.registered()
        world.take(.command(.use(Harness.south), call: 2))
        world.take(.reported(Harness.south, .loggedIn))
        world.take(.reported(Harness.south, .registrationsFull(world.only.id, "256 are the most")))
        #expect(world.calls.map(\.content) == [.unregistered(isAsked: false)])
        #expect(world.asked.contains(.unregister(moved.id, endpoint: moved.endpoint)), "\(world.asked)")
        #expect(world.distributor.overview == [])
    }

    @Test mutating func `an endpoint that stands needs no room`() {
        let registration = world.registered()
        world.take(.reported(Harness.north, .registrationsFull(registration.id, "256 are the most")))
        #expect(world.store.registrations == [registration])
    }

    @Test mutating func `an app registers so often, and another one then registers`() {
        for number in 0...64 { world.take(.register(Harness.request("\(number)"), call: UInt64(number))) }
        #expect(world.answers.map(\.reason) == [.internalError])
        #expect(world.distributor.overview.count == 64)
        _ = world.registered(Harness.request(app: AppIdentity(name: "org.example.Phone", sandbox: nil)))
        #expect(world.distributor.overview.count == 65)
    }

    @Test(arguments: ["", "ftp://x", "https://x y", "https://ä", "https://" + String(repeating: "x", count: 1000)])
    func `an endpoint that is none is not handed on`(endpoint: String) {
        var world = world
        world.take(.register(Harness.request(), call: 1))
        world.take(.reported(Harness.north, .registered(world.only.id, endpoint: endpoint, expires: nil)))
        #expect(world.answers.map(\.reason) == [.internalError])
        #expect(world.calls == [])
    }

    @Test mutating func `after a change of servers the old endpoint is heard for a day`() {
        let old = world.registered()
        world.take(.command(.use(Harness.south), call: 5))
        #expect(world.effects.contains(.done(call: 5, .done)))
        world.take(.reported(Harness.south, .loggedIn))
        let new = world.only
        #expect(world.asked == [.register(new.id, vapid: nil)])
        world.arrive("late", old)
        #expect(world.delivered == ["late"])
        world.answerAll(.taken)
        #expect(world.distributor.servers == [Harness.north, Harness.south])
        world.take(.reported(Harness.south, .registered(new.id, endpoint: "https://s.example", expires: nil)))
        world.answerAll(.taken)
        world.pass(.seconds(86_400))
        #expect(world.asked == [.unregister(old.id, endpoint: old.endpoint)])
        world.take(.reported(Harness.north, .unregistered(old.id)))
        #expect(world.distributor.servers == [Harness.south])
    }

    @Test mutating func `what a server registers that nobody asked for is ended`() {
        let stranger = RegistrationID(String(repeating: "f", count: 32))!
        world.take(.reported(Harness.north, .registered(stranger, endpoint: "https://x.example", expires: nil)))
        #expect(world.asked == [.unregister(stranger, endpoint: "https://x.example")])
    }

    @Test mutating func `a server has few requests at a time`() {
        for number in 0..<40 { world.take(.register(Harness.request("\(number)"), call: UInt64(number))) }
        world.take(.reported(Harness.north, .loggedIn))
        #expect(world.asked.count == 16)
    }
}

extension Harness {
    /// Registers what lasts a day by the server's clock, and has the app take its endpoint.
    fileprivate mutating func registerForADay(from time: Int64? = nil) {
        take(.register(Self.request(), call: 1))
        let expires = WallTime(milliseconds: (time ?? wall) + 86_400_000)
        take(.reported(Self.north, .registered(only.id, endpoint: "https://a.example", expires: expires)))
        answerAll(.taken)
    }
}

extension RegistrationAnswer {
    /// Why it failed; `nil` where it did not.
    var reason: RegistrationFailure? { if case .failed(let reason, _) = self { reason } else { nil } }
}
