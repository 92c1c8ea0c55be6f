// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Reachability
import Testing

/// A change has only those targets looked at again whose verdict it may alter, and none is left out.
@Suite(.lab)
struct SelectiveEvaluationTests {
    /// kernel.md, 20: containers come and go on a bridge, and the kernel is asked about nobody.
    @Test func `containers that come and go have the kernel asked about no target`() async throws {
        try await LabNetwork.with { lab in
            // With an IPv6 host that has no route: the reason for that is read from all links.
            try await lab.removeDefaultRoute(via: .wan0, families: [.v6])
            try await lab.removeDefaultRoute(via: .wan1, families: [.v6])
            let recorder = try await EngineRecorder.start(on: lab.host)
            try await lab.host.ip(batch: [
                "link add br0 type bridge", "address add 172.17.0.1/16 dev br0", "link set br0 up",
            ])
            let hosts = (1...20).map { Question.address("203.0.113.\($0)") } + [.address("2001:db8:c::10")]
            try await recorder.watch(hosts + [.network(.any), .network(.requires(.wired))])
            try await recorder.rest()
            let before = await recorder.engine.lookupCount
            let generation = await recorder.engine.snapshot.generation
            for number in 1...10 {
                let link = "veth\(number)"
                try await lab.host.ip(batch: [
                    "link add \(link) type veth peer name in\(number)", "link set \(link) master br0",
                    "link set \(link) up", "link set in\(number) up", "link set in\(number) down",
                    "link delete \(link)",
                ])
            }
            // A change that concerns one of them, as a sign that those before it were taken in.
            try await lab.addRefusingRoute(.prohibit, "203.0.113.1/32")
            try await recorder.path(to: hosts[0], "the sign") { $0.reason == .prohibited }
            expect(await recorder.engine.snapshot.generation) { $0 > generation + 50 }
            expect(await recorder.engine.lookupCount, is: before + 1)
        }
    }

    /// What a network change does to the targets of one user must not keep everybody's calls waiting.
    @Test func `a change that concerns a thousand targets is evaluated in portions`() async throws {
        try await LabNetwork.with { lab in
            let recorder = try await EngineRecorder.start(on: lab.host)
            let hosts = (0..<1000).map { Question.address("203.0.\($0 / 250).\($0 % 250 + 1)") }
            try await recorder.watch(hosts)
            try await recorder.rest()
            let portions = await Portions(of: recorder.engine, hosts)
            try await lab.addRefusingRoute(.prohibit, "203.0.0.0/16")
            try await recorder.path(to: hosts[999], "the change") { $0.reason == .prohibited }
            try await recorder.rest()
            let told = await portions.told
            print("told in portions of \(told)")
            #expect(told.reduce(0, +) >= 1000)
            #expect(told.allSatisfy { $0 <= 256 }, "\(told)")
            expect(await recorder.engine.audit()) { $0.isEmpty }
        }
    }

    /// The way over the bridge is not asked for again when the Internet's gateway dies; the word on it still holds.
    @Test func `a network that works proves its family, whatever becomes of the others`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip(batch: [
                "link add br0 type bridge", "link add port0 type veth peer name port1", "link set port0 master br0",
                "link set port1 up", "link set port0 up", "link set br0 addrgenmode none", "link set br0 up",
                "address add 172.17.0.1/16 dev br0", "route add default dev br0 metric 4000",
            ])
            let recorder = try await EngineRecorder.start(on: lab.host)
            let (whole, bridges) = (Question.network(.any), Question.network(.requires(.bridge)))
            try await recorder.watch([whole, bridges])
            try await recorder.path(to: bridges, "the bridge") { $0.status == .satisfied && $0.source?.family == .v4 }
            try await recorder.rest()
            try await lab.host.failNeighbour("\(Uplink.wan0.gateway(.v4)) dev wan0")
            try await recorder.path(to: whole, "the dead gateway") { !$0.supportsIPv4 }
            expect(await recorder.paths()[bridges]?.supportsIPv4, is: true)
            expect(await recorder.engine.audit().map(\.description), is: [])
        }
    }

    /// Asked for, such a neighbour is good at once, and nothing is told of it: there is nobody to be waited for.
    @Test func `a gateway on a link without address resolution is back when its failure is forgotten`() async throws {
        try await LabNetwork.with { lab in
            let gateway = "fe80::99 dev noarp0"
            try await lab.host.ip(batch: [
                "link add noarp0 type ifb", "link set noarp0 up", "address add 2001:db8:99::2/64 dev noarp0 nodad",
                "route add 2001:db8:9900::/48 via \(gateway)",
            ])
            // With another way, IPv6 would take it for the time being.
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v6]) }
            let recorder = try await EngineRecorder.start(on: lab.host)
            let beyond = Question.address("2001:db8:9900::1")
            try await recorder.watch([beyond])
            try await recorder.path(to: beyond, "the way") { $0.status == .satisfied }
            try await lab.host.ip("neighbour replace \(gateway) nud failed \(Namespace.isKept)")
            try await recorder.path(to: beyond, "the failure") { $0.reason == .gatewayUnreachable }
            try await lab.host.ip("neighbour flush dev noarp0")
            try await recorder.path(to: beyond, "the way again") { $0.status == .satisfied }
        }
    }

    /// The kernel passes it over at once, and says so when it next sweeps: with this setting, after an hour.
    @Test(arguments: [true, false])
    func `an IPv6 route is left when its lifetime ends, made before the start or after it`(isEarly: Bool) async throws {
        try await LabNetwork.with { lab in
            try await lab.host.sysctl([("net.ipv6.route.gc_interval", "3600")])
            let server = Question.address(LabNetwork.serverAddress(.v6))
            let expiring = "-6 route add ::/0 via \(Uplink.wan1.gateway(.v6)) dev wan1 metric 10 expires 2"
            if isEarly { try await lab.host.ip(expiring) }
            let recorder = try await EngineRecorder.start(on: lab.host)
            try await recorder.watch([server])
            if !isEarly { try await lab.host.ip(expiring) }
            try await recorder.path(to: server, "the way that ends") { $0.interface?.name == "wan1" }
            try await recorder.path(to: server, "the way that stays") { $0.interface?.name == "wan0" }
            expect(try await lab.host.ip("-6 route show default")) { $0.contains("wan1 metric 10 expires") }
        }
    }

    /// The change concerns what all paths say of the network, and not the way to this target.
    @Test func `a path that only the network's facts make another is of the generation of the change`() async throws {
        try await LabNetwork.with { lab in
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(.v4))
            try await recorder.watch([server])
            try await recorder.rest()
            let before = try #require(await recorder.paths()[server])
            #expect(before.supportsIPv6)
            try await lab.removeDefaultRoute(via: .wan0, families: [.v6])
            try await lab.removeDefaultRoute(via: .wan1, families: [.v6])
            let path = try await recorder.path(to: server, "the loss of IPv6") { !$0.supportsIPv6 }
            #expect(path.generation > before.generation)
            #expect(path.changes(from: before) == [.ipv6])
        }
    }

    /// `suppress_ifgroup`. No message tells of it but the link's.
    @Test(arguments: Family.allCases)
    func `a link's group, by which a rule passes over its routes, is followed`(family: Family) async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip("route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 1000")
            try await lab.addRule(family, "pref 1000 lookup main suppress_ifgroup 7")
            try await lab.addRule(family, "pref 2000 lookup 1000")
            try await lab.removeRule(family, "pref 32766")
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(family))
            try await recorder.watch([server])
            for (group, uplink) in [(7, Uplink.wan1), (0, .wan0)] {
                try await recorder.rest()
                try await lab.host.ip("link set wan0 group \(group)")
                try await recorder.path(to: server, "group \(group)") { $0.interface?.name == uplink.name }
                let kernel = try await lab.host.kernelRoute(LabNetwork.serverAddress(family))
                #expect(kernel.found?.device == uplink.name)
            }
        }
    }

    /// kernel.md, 10: beyond `gc_thresh1` entries the kernel sweeps its table, and failures go first.
    @Test func `a dead gateway that the kernel forgot is still dead, and probed until it is back`() async throws {
        try await LabNetwork.with { lab in
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(.v4))
            try await recorder.watch([server])
            try await lab.drop(.gateway, on: .wan0)
            let gateway = "\(Uplink.wan0.gateway(.v4)) dev wan0"
            try await lab.host.failNeighbour(gateway)
            try await recorder.path(to: server, "the dead gateway") { $0.reason == .gatewayUnreachable }
            let generation = await recorder.engine.snapshot.generation
            try await lab.host.ip("neighbour delete \(gateway)")
            // That nothing is known of it makes it no better; and it is asked for at once, which makes a new entry.
            try await lab.host.neighbour(gateway, "is asked for") { !$0.isEmpty }
            expect(await recorder.engine.snapshot.generation, is: generation)
            expect(await recorder.paths()[server]?.reason, is: .gatewayUnreachable)
            try await lab.restore(.wan0)
            try await recorder.path(to: server, "the gateway's return") { $0.status == .satisfied }
        }
    }

    /// The setting alone leaves each destination with its next hop; the next address on any link of the route does not
    /// (`fib_sync_up` in net/ipv4/fib_semantics.c).
    @Test func `an address that comes deals the packets of a multipath route anew`() async throws {
        try await LabNetwork.with { lab in
            let hops = Uplink.allCases.map { "nexthop via \($0.gateway(.v4)) dev \($0.name)" }.joined(separator: " ")
            try await lab.host.ip("route add 203.0.113.0/24 \(hops)")
            let recorder = try await EngineRecorder.start(on: lab.host)
            let beyond = (1...16).map { Question.address("203.0.113.\($0)") }
            try await recorder.watch(beyond)
            try await lab.cut(.wan1)
            try await recorder.changes.wait(for: "some to lose their carrier") {
                await recorder.paths().values.contains { $0.reason == .noCarrier } ? () : nil
            }
            try await lab.host.sysctl([("net.ipv4.conf.wan1.ignore_routes_with_linkdown", "1")])
            try await recorder.settle(after: "the setting")
            try await recorder.rest()
            try await lab.host.ip("address add 192.0.2.9/24 dev wan0")
            for target in beyond {
                try await recorder.path(to: target, "the hop that is left") { $0.interface?.name == "wan0" }
            }
        }
    }

    /// The kernel says that a link goes down before it takes its routes out, and with IPv6 off nothing more.
    @Test func `a link that goes down is left for the next, though the kernel tells too early`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.sysctl([("net.ipv6.conf.all.disable_ipv6", "1")])
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(.v4))
            try await recorder.watch([server])
            for _ in 1...40 {
                try await lab.host.ip("link set wan0 down")
                try await recorder.path(to: server, "the second uplink") {
                    $0.status == .satisfied && $0.interface?.name == "wan1"
                }
                try await lab.host.ip(batch: [
                    "link set wan0 up", "route add default via \(Uplink.wan0.gateway(.v4)) metric 100",
                ])
                try await recorder.path(to: server, "the first again") { $0.interface?.name == "wan0" }
            }
        }
    }
}

extension Namespace {
    /// Has the kernel find a neighbour dead. It tells so only of one that it held for alive.
    func failNeighbour(_ neighbour: String) async throws {
        try await ip(batch: [
            "neighbour replace \(neighbour) lladdr 02:00:00:00:00:01 nud reachable",
            "neighbour replace \(neighbour) nud failed \(Namespace.isKept)",
        ])
    }

    /// Waits until the kernel's entry of a neighbour, as `ip neighbour show` has it, is as it should; the messages of
    /// the kernel are the occasions to look.
    func neighbour(_ neighbour: String, _ awaited: String, where holds: (String) -> Bool) async throws {
        try await changes.wait(for: "\(neighbour) \(awaited)") {
            holds(try await ip("neighbour show \(neighbour)")) ? () : nil
        }
    }
}

/// How many verdicts are told in one turn of the queue.
@AgentQueue
private final class Portions {
    private(set) var told: [Int] = []
    private var observations: [PathObservation] = []
    private var isCounting = false

    init(of engine: NetworkState, _ questions: [Question]) {
        for question in questions {
            observations.append(
                engine.observe(question) { [weak self] _, changes in
                    if !changes.isEmpty { self?.count() }
                })
        }
    }

    private func count() {
        if !isCounting {
            isCounting = true
            told.append(0)
            AgentQueue.async { [weak self] in self?.isCounting = false }
        }
        told[told.count - 1] += 1
    }
}
