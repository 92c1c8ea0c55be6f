// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct AdaptiveIntervalTests {
    private let figures = KeepaliveProtocol.crlf.figures
    private let home = NetworkIdentity(kind: .wifi, gateway: [2, 0, 0x5E, 0x10, 0, 1])
    private var learner = AdaptiveInterval()

    private func network(_ number: Int) throws -> NetworkIdentity {
        try #require(NetworkIdentity(kind: .wired, gateway: [2, 0, 0, 0, 0, UInt8(number)]))
    }

    /// Keepalives that are acknowledged, each after the whole interval.
    private mutating func beat(_ count: Int, on network: NetworkIdentity) {
        for _ in 0..<count { learner.survived(learner.interval(on: network, figures), on: network, figures) }
    }

    private mutating func beat(_ count: Int, of silence: Duration, on network: NetworkIdentity) {
        for _ in 0..<count { learner.survived(silence, on: network, figures) }
    }

    /// One flow tries longer intervals, so many steps of them.
    private mutating func climb(_ steps: Int, on network: NetworkIdentity) throws {
        beat(3, on: network)
        for _ in 0..<steps {
            let trial = try #require(learner.trial(on: network, figures))
            for _ in 0..<3 { learner.survived(trial, on: network, figures) }
        }
    }

    @Test mutating func `it begins with the protocol's figure and one flow tries the next`() throws {
        let home = try #require(home)
        #expect(learner.interval(on: home, figures) == .seconds(120))
        beat(2, on: home)
        #expect(learner.trial(on: home, figures) == nil)
        beat(1, on: home)
        #expect(learner.trial(on: home, figures) == .seconds(150))
        // The others wait for what becomes of it.
        #expect(learner.interval(on: home, figures) == .seconds(120))
        for _ in 0..<2 { learner.survived(.seconds(150), on: home, figures) }
        #expect(learner.interval(on: home, figures) == .seconds(120))
        learner.survived(.seconds(149), on: home, figures)
        // Nobody takes more than was survived each time.
        #expect(learner.interval(on: home, figures) == .seconds(149))
    }

    @Test mutating func `a silent death takes it back to what was survived less a margin`() throws {
        let home = try #require(home)
        try climb(1, on: home)
        #expect(learner.interval(on: home, figures) == .seconds(150))
        learner.died(after: .milliseconds(187_500), sentAt: .seconds(600), on: home, figures)
        #expect(learner.interval(on: home, figures) == .seconds(135))
        // And no trial leads to where flows died: the next step would.
        beat(50, on: home)
        #expect(learner.trial(on: home, figures) == nil)
        #expect(learner.interval(on: home, figures) == .seconds(135))
    }

    @Test mutating func `a first interval that is too long is halved`() throws {
        let home = try #require(home)
        learner.died(after: .seconds(120), sentAt: .seconds(600), on: home, figures)
        #expect(learner.interval(on: home, figures) == .seconds(60))
        learner.died(after: .seconds(60), sentAt: .seconds(700), on: home, figures)
        #expect(learner.interval(on: home, figures) == .seconds(30))
    }

    @Test mutating func `what was fatal is tried again after a long while`() throws {
        let home = try #require(home)
        try climb(0, on: home)
        learner.died(after: .seconds(150), sentAt: .seconds(600), on: home, figures)
        beat(3, on: home)
        #expect(learner.trial(on: home, figures) == nil)
        beat(400, on: home)
        #expect(learner.trial(on: home, figures) != nil)
    }

    @Test mutating func `a death in a silence that was survived is chance until it comes again`() throws {
        let home = try #require(home)
        try climb(1, on: home)
        let interval = learner.interval(on: home, figures)
        let first = learner.died(after: .seconds(130), sentAt: .seconds(1000), on: home, figures)
        #expect(!first)
        #expect(learner.interval(on: home, figures) == interval)
        beat(1, on: home)
        learner.died(after: .seconds(130), sentAt: .seconds(2000), on: home, figures)
        #expect(learner.interval(on: home, figures) == interval)
        let again = learner.died(after: .seconds(130), sentAt: .seconds(3000), on: home, figures)
        #expect(again)
        #expect(learner.interval(on: home, figures) == .seconds(65))
    }

    @Test mutating func `a shorter silence that is survived says nothing for a longer one`() throws {
        let home = try #require(home)
        try climb(1, on: home)
        // The network holds 125 s from now on. One flow rides with others' wakes and lives; another does not.
        for round in 1...2 {
            learner.died(after: .seconds(150), sentAt: .seconds(1000 * round), on: home, figures)
            beat(1, of: .seconds(120), on: home)
        }
        #expect(learner.interval(on: home, figures) == .seconds(75))
    }

    @Test mutating func `a death in a silence shorter than any interval teaches nothing`() throws {
        let home = try #require(home)
        let learned = learner.died(after: .seconds(20), sentAt: .seconds(600), on: home, figures)
        #expect(!learned)
        #expect(learner.interval(on: home, figures) == .seconds(120))
    }

    @Test mutating func `flows that die together die of one cause`() throws {
        let home = try #require(home)
        try climb(1, on: home)
        let interval = learner.interval(on: home, figures)
        for flow in 0..<100 {
            learner.died(after: .seconds(130), sentAt: .seconds(1000 + flow), on: home, figures)
        }
        #expect(learner.interval(on: home, figures) == interval)
    }

    @Test mutating func `an early keepalive tells little`() throws {
        let home = try #require(home)
        for _ in 0..<50 { learner.survived(.seconds(60), on: home, figures) }
        #expect(learner.trial(on: home, figures) == nil)
    }

    @Test mutating func `what another protocol does of itself says nothing against a longer interval`() throws {
        let home = try #require(home)
        let mqtt = KeepaliveFigures.mqtt(keepAlive: .seconds(60))
        for _ in 0..<3 { learner.survived(.seconds(57), on: home, mqtt) }
        #expect(learner.interval(on: home, figures) == .seconds(120))
        learner.died(after: .seconds(57), sentAt: .seconds(600), on: home, mqtt)
        learner.died(after: .seconds(57), sentAt: .seconds(700), on: home, mqtt)
        #expect(learner.interval(on: home, figures) < .seconds(57))
    }

    @Test mutating func `the bounds of protocol and user are kept`() throws {
        let home = try #require(home)
        beat(3, on: home)
        while let trial = learner.trial(on: home, figures) { learner.survived(trial, on: home, figures) }
        #expect(learner.interval(on: home, figures) > figures.intervals.upperBound * 0.95)
        #expect(learner.interval(on: home, figures, within: .seconds(60)...(.seconds(300))) == .seconds(300))
        // What MQTT's server allows is less than what the network would.
        let mqtt = KeepaliveFigures.mqtt(keepAlive: .seconds(60))
        #expect(learner.interval(on: home, mqtt) == .seconds(57))
        #expect(learner.trial(on: home, mqtt) == nil)
        #expect(learner.interval(on: home, mqtt, within: .seconds(100)...(.seconds(300))) == .seconds(57))
        for death in 0..<20 { learner.died(after: .seconds(31), sentAt: .seconds(1000 * death), on: home, figures) }
        #expect(learner.interval(on: home, figures) == .seconds(30))
    }

    @Test mutating func `twenty networks are remembered`() throws {
        for number in 0..<25 { try climb(1, on: try network(number)) }
        beat(1, on: try network(5))
        try climb(1, on: try network(30))
        #expect(learner.networks.count == 20)
        #expect(learner.interval(on: try network(5), figures) == .seconds(150))
        #expect(learner.interval(on: try network(6), figures) == .seconds(120))
    }

    @Test mutating func `what was learned survives as text`() throws {
        let home = try #require(home)
        try climb(5, on: home)
        learner.died(after: .seconds(1900), sentAt: .seconds(9000), on: home, figures)
        beat(5, on: try network(7))
        let text = AdaptiveInterval.text(of: [.init(user: 1000, learner), .init(user: 0, AdaptiveInterval())])
        let users = AdaptiveInterval.users(in: text)
        #expect(AdaptiveInterval.text(of: users) == text)
        #expect(users.map(\.user) == [1000])
        let read = try #require(users.first?.learned)
        for network in [home, try network(7)] {
            let (before, after) = (learner.interval(on: network, figures), read.interval(on: network, figures))
            #expect((before - .milliseconds(1)...before).contains(after))
        }
    }

    @Test func `a spoilt file costs only what is spoilt`() {
        let good = "7 wifi 02005e100001 - - 150000 120000 - 3 0"
        let bad = [
            "", "x wifi 02005e100002 - - 150000 120000 - 3 0", "-1 wifi 02 - - 150000 120000 - 3 0",
            "4294967296 wifi 02 - - 150000 120000 - 3 0", "7", "7 wifi 02005e100001 - -",
            "7 wifi 02005e1000 - - x 0 - 0 0", "7 wifi - - - 150000 0 - 0 0",
            "7 moon 02 - - 150000 0 - 0 0", "7 wifi 0 - - 150000 0 - 0 0", "7 wifi 02 10.0.0.0/33 - 150000 0 - 0 0",
            "7 wifi 02 - - 0 0 - 0 0", "7 wifi 02 - - 150000 0 - -1 0", "7 wifi 02 - - 99999999999999999999 0 - 0 0",
            "7 wifi 02 - - 150000 0 0 0 0", good,
        ]
        let heading = "dialtone-keepalive-intervals 2\n"
        let text = heading + ([good] + bad).joined(separator: "\n") + "\n"
        let users = AdaptiveInterval.users(in: text)
        #expect(users.count == 1)
        #expect(users.first?.learned.networks.count == 1)
        #expect(AdaptiveInterval.users(in: "").isEmpty)
        #expect(AdaptiveInterval.users(in: "something else\n" + good).isEmpty)
        #expect(AdaptiveInterval.users(in: "dialtone-keepalive-intervals 1\n" + good.dropFirst(2)).isEmpty)
        let many = (10..<99).map { "7 wired 0200000000\($0) - - 150000 0 - 0 0" }.joined(separator: "\n")
        #expect(AdaptiveInterval.users(in: heading + many).map(\.learned.networks.count) == [20])
        let crowd = (0..<99).map { "\($0) wired 02 - - 150000 0 - 0 0" }.joined(separator: "\n")
        #expect(AdaptiveInterval.users(in: heading + crowd).count == AdaptiveInterval.mostUsers)
    }
}

@Suite struct NetworkIdentityTests {
    @Test func `a path has the identity of its network`() throws {
        let home = try #require(NetworkIdentity(.wifi, gatewayLinkAddress: [2, 0, 0, 0, 0, 1]))
        #expect(home.description == "wifi 020000000001 192.168.1.0/24 -")
        #expect(NetworkIdentity(home.description) == home)
        // Another lease in the same network is the same network; another router is another.
        var moved = Path.wifi
        let other = IPAddress(v4: 0xC0A8_0199)
        moved.source = other
        moved.interface?.addresses = [InterfaceAddress(other, prefixLength: 24)]
        #expect(NetworkIdentity(moved, gatewayLinkAddress: [2, 0, 0, 0, 0, 1]) == home)
        #expect(NetworkIdentity(.wifi, gatewayLinkAddress: [2, 0, 0, 0, 0, 2]) != home)
    }

    @Test func `a modem is known by its interface`() throws {
        let modem = try #require(NetworkIdentity(.modem, gatewayLinkAddress: []))
        #expect(modem.description == "cellular - 0.0.0.0/0 7777616e30")
        #expect(NetworkIdentity(modem.description) == modem)
        // Another address each time, and a made-up gateway.
        var again = Path.modem
        again.source = IPAddress(v4: 0x0A41_0102)
        #expect(NetworkIdentity(again, gatewayLinkAddress: [2, 9, 9, 9, 9, 9]) == modem)
    }

    @Test func `a network that nothing tells from others has none`() {
        #expect(NetworkIdentity(.wifi, gatewayLinkAddress: []) == nil)
        #expect(NetworkIdentity(.none, gatewayLinkAddress: [2, 0, 0, 0, 0, 1]) == nil)
        #expect(NetworkIdentity(kind: .wifi, gateway: [1], name: Array(repeating: 0, count: 33)) == nil)
    }

    @Test func `its text is read back`() throws {
        let name = Array("Café 5 - GHz".utf8)
        let prefix = IPPrefix(IPAddress(v6: 0x2001_0DB8 << 96 | 7), length: 61)
        let identity = try #require(NetworkIdentity(kind: .wifi, gateway: [255, 0], prefix: prefix, name: name))
        #expect(identity.prefix == IPPrefix(IPAddress(v6: 0x2001_0DB8 << 96), length: 61))
        #expect(NetworkIdentity(identity.description) == identity)
    }
}
