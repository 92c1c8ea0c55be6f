// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Dispatch
import Glibc
import Reachability
import Testing

/// One route, several gateways: a packet goes by the one that its addresses select, and by another while that one's
/// neighbour entry is no good (`nexthop_is_good_nh` in net/ipv4/nexthop.c, `fib_good_nh` in net/ipv4/fib_semantics.c,
/// `rt6_score_route` in net/ipv6/route.c). One of which there is no entry is as good as any.
@Suite(.lab)
struct Case10SeveralGateways {
    /// How the kernel is told of them.
    enum Form: CaseIterable {
        case nextHops
        case objects
        case metrics

        /// A route over both uplinks.
        func commands(_ family: Family, to destination: String) -> [String] {
            let hops = Uplink.allCases.map { "via \($0.gateway(family)) dev \($0.name)" }
            let route = "\(family.rawValue) route add \(destination)"
            return switch self {
            case .nextHops: ["\(route) nexthop \(hops[0]) nexthop \(hops[1])"]
            case .objects:
                [
                    "nexthop add id 1 \(hops[0])", "nexthop add id 2 \(hops[1])", "nexthop add id 3 group 1/2",
                    "\(route) nhid 3",
                ]
            case .metrics: ["\(route) \(hops[0]) metric 100", "\(route) \(hops[1]) metric 200"]
            }
        }
    }

    /// A form for a family. IPv4 goes by the metric alone, whether the gateway lives or not.
    struct Shape: CustomTestStringConvertible {
        let form: Form
        let family: Family

        static let all = Family.allCases.flatMap { family in Form.allCases.map { Shape(form: $0, family: family) } }
            .filter { $0.form != .metrics || $0.family == .v6 }

        var testDescription: String { "\(form) \(family)" }
    }

    /// The kernel tells of a removed entry as of a failed one, and then of its removal.
    @Test(arguments: Shape.all)
    func `case 10: the kernel goes round a gateway that dies after its entry was flushed`(shape: Shape) async throws {
        try await play(shape) { it in
            try await it.lab.drop(.gateway, on: it.used)
            try await it.host.ip("neighbour flush dev \(it.used.name)")
            try await it.host.ip("neighbour replace \(it.entry) use")
            try await it.askUntilDead()
            try await it.agreement(on: it.spare, "the flush")
            // The flush alone was no failure.
            #expect(it.paths.all.allSatisfy { $0.status == .satisfied }, "\(it.paths.all)")
        }
    }

    /// The failure and the removal are read together, when the kernel asks for the gateway again.
    @Test(arguments: Shape.all)
    func `case 10: an entry that was flushed before anybody looked has not failed`(shape: Shape) async throws {
        try await play(shape) { it in
            try await it.lab.drop(.gateway, on: it.used)
            let (device, entry) = (it.used.name, it.entry)
            let isRead = DispatchSemaphore(value: 0)
            AgentQueue.async { isRead.wait() }
            defer { isRead.signal() }
            let status = try await it.host.run {
                system("ip neighbour flush dev \(device) && ip neighbour replace \(entry) use")
            }
            isRead.signal()
            #expect(status == 0)
            try await it.askUntilDead()
            try await it.agreement(on: it.spare, "the flush")
            #expect(it.paths.all.allSatisfy { $0.status == .satisfied }, "\(it.paths.all)")
        }
    }

    @Test(arguments: Shape.all)
    func `case 10: a dead gateway's entry that is removed does not bring it back to life`(shape: Shape) async throws {
        try await play(shape) { it in
            try await it.die()
            try await it.agreement(on: it.spare, "the death")
            try await it.host.ip("neighbour delete \(it.entry)")
            // It concerns nobody, and everybody has to look again.
            try await it.lab.addRule(shape.family, "pref 77 fwmark 99 prohibit")
            try await it.host.neighbour(it.entry, "asked for, and dead") { $0.contains("FAILED") }
            try await it.agreement(on: it.spare, "the removal")
        }
    }

    /// IPv6 has its own way to find that out.
    @Test(arguments: Shape.all.filter { $0.family == .v4 })
    func `case 10: a gateway that the kernel goes round is asked for until it answers`(shape: Shape) async throws {
        try await play(shape) { it in
            try await it.die()
            try await it.agreement(on: it.spare, "the death")
            try await it.lab.restore(it.used)
            try await it.agreement(on: it.used, "the return")
        }
    }

    /// The kernel goes round a router that failed before anybody asked for a path, and never names it; nor do the
    /// verdicts on the network as such, since the default routes are others. One that was dead from the start has never
    /// said that it is a router.
    @Test(arguments: Shape.all.filter { $0.family == .v6 }, [true, false])
    func `case 10: a router that was dead before the start is used when it answers`(shape: Shape, isKnown: Bool)
        async throws
    {
        try await play(shape, to: LabNetwork.serverAddress(shape.family)) { it in
            try await it.die()
            if !isKnown {
                try await it.host.ip("neighbour delete \(it.entry)")
                try await it.host.ip("neighbour replace \(it.entry) use \(Namespace.isKept)")
                try await it.host.neighbour(it.entry, "dead") { $0.contains("FAILED") && !$0.contains("router") }
            }
            let late = try await it.startedNow()
            try await late.agreement(on: it.spare, "the start")
            try await late.recorder.rest()
            // It is listened to and not asked: IPv6 asks by itself.
            expect(await late.engine.probedGateways, is: [])
            expect(await late.engine.snapshot.failedNeighbours, is: [])
            try await it.lab.restore(it.used)
            try await it.host.ip("neighbour replace \(it.entry) use")
            try await late.agreement(on: it.used, "the return")
        }
    }

    /// With sixteen addresses the filter of the notices is full (`NeighbourFilter.mostAddresses`).
    @Test(arguments: 13...16)
    func `case 10: a dead router's return is heard beside many gateways in use`(count: Int) async throws {
        try await play(Shape(form: .metrics, family: .v6), to: LabNetwork.serverAddress(.v6)) { it in
            try await it.die()
            let others = (1...count).map { "2001:db8:77::\($0)" }
            try await it.host.ip(
                batch: others.enumerated().map { "route add \($1) via fe80::77:\($0) dev \(it.spare.name)" })
            let late = try await it.startedNow()
            try await late.recorder.watch(others.map { .address($0) })
            try await late.agreement(on: it.spare, "the start")
            try await late.recorder.rest()
            try await it.lab.restore(it.used)
            try await it.host.ip("neighbour replace \(it.entry) use")
            try await late.agreement(on: it.used, "the return")
        }
    }

    /// A route whose gateway the kernel knows nothing of is as good as any (`rt6_check_neigh` in net/ipv6/route.c).
    @Test func `case 10: a dead router that the kernel forgets is used again`() async throws {
        try await play(Shape(form: .metrics, family: .v6), to: LabNetwork.serverAddress(.v6)) { it in
            try await it.die()
            let late = try await it.startedNow()
            try await late.agreement(on: it.spare, "the start")
            try await late.recorder.rest()
            // The next packet has it asked for again; it is not to fail before anybody has looked.
            try await it.host.sysctl([("net.ipv6.neigh.\(it.used.name).retrans_time_ms", "60000")])
            try await it.host.ip("neighbour delete \(it.entry)")
            try await late.agreement(on: it.used, "the removal")
        }
    }

    /// To ask for a dead gateway makes IPv6 go by it until it has failed again; where another one lives, that would
    /// cost packets.
    @Test func `case 10: no question leads IPv6 back to a dead gateway`() async throws {
        try await play(Shape(form: .metrics, family: .v6)) { it in
            try await it.die()
            try await it.agreement(on: it.spare, "the death")
            expect(await it.engine.probedGateways, is: [])
        }
    }

    private func play(
        _ shape: Shape, to destination: String = "default", _ body: (SeveralGateways) async throws -> Void
    ) async throws {
        try await LabNetwork.with { lab in
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink) }
            // Without it the kernel shares IPv4's packets out without a look at the neighbours.
            try await lab.host.sysctl([("net.ipv4.fib_multipath_use_neigh", "1")])
            try await lab.host.sysctl(
                Uplink.allCases.flatMap { uplink in
                    ["ipv4", "ipv6"].flatMap { family in
                        let folder = "net.\(family).neigh.\(uplink.name)"
                        return [
                            ("\(folder).retrans_time_ms", "50"), ("\(folder).mcast_solicit", "1"),
                            ("\(folder).ucast_solicit", "1"),
                        ]
                    }
                })
            for command in shape.form.commands(shape.family, to: destination) { try await lab.host.ip(command) }
            try await body(SeveralGateways(lab, shape.family))
        }
    }
}

/// A host with several gateways, and a target by one of them.
private struct SeveralGateways {
    let lab: LabNetwork
    let family: Family
    private(set) var paths: PathRecorder
    private(set) var recorder: EngineRecorder
    /// The uplink that the kernel uses while both gateways live, and the other one.
    let used: Uplink
    let spare: Uplink

    var host: Namespace { lab.host }
    var engine: NetworkState { recorder.engine }
    /// The gateway of the uplink that is used, as `ip neighbour` names it.
    var entry: String { "\(used.gateway(family)) dev \(used.name)" }

    init(_ lab: LabNetwork, _ family: Family) async throws {
        self.lab = lab
        self.family = family
        for uplink in Uplink.allCases {
            let entry = "\(uplink.gateway(family)) dev \(uplink.name)"
            try await lab.host.ip("neighbour replace \(entry) use")
            try await lab.host.neighbour(entry, "alive") { $0.contains("REACHABLE") }
        }
        (recorder, paths) = try await Self.engine(in: lab, family)
        let path = try await paths.next("the present path") { $0.status == .satisfied }
        used = try #require(path.interface.flatMap { Uplink(rawValue: $0.name) })
        spare = used == .wan0 ? .wan1 : .wan0
    }

    /// The same host, seen by an engine that begins now.
    func startedNow() async throws -> SeveralGateways {
        var it = self
        (it.recorder, it.paths) = try await Self.engine(in: lab, family)
        return it
    }

    private static func engine(in lab: LabNetwork, _ family: Family) async throws -> (EngineRecorder, PathRecorder) {
        let recorder = try await EngineRecorder.start(on: lab.host)
        try await recorder.watch([.address(LabNetwork.serverAddress(family))])
        return (recorder, PathRecorder(.server(family), by: recorder.engine))
    }

    /// Waits until the kernel has asked for the gateway in vain. If the gateway asks for this machine in that moment,
    /// its entry becomes stale, and the kernel asks again only if somebody uses it.
    func askUntilDead() async throws {
        try await eventually("the gateway \(entry) to be dead") {
            let shown = try await host.ip("neighbour show \(entry)")
            if shown.contains("STALE") { try await host.ip("neighbour replace \(entry) use") }
            return shown.contains("FAILED")
        }
    }

    /// Has the gateway hang, and the kernel and the engine find out.
    func die() async throws {
        try await lab.drop(.gateway, on: used)
        try await host.ip("neighbour replace \(entry) lladdr 02:00:00:00:00:01 router nud probe \(Namespace.isKept)")
        try await host.neighbour(entry, "dead") { $0.contains("FAILED") }
        let gateway = used.gateway(family)
        try await eventually("the engine to know") {
            engine.snapshot.failedNeighbours.contains { $0.address.description == gateway }
        }
    }

    /// Waits until the verdict is the kernel's, which is to go by `uplink`.
    func agreement(on uplink: Uplink, _ event: String) async throws {
        let question = Question.address(LabNetwork.serverAddress(family))
        try await recorder.path(to: question, "\(uplink) after \(event)") {
            $0.status == .satisfied && $0.interface?.name == uplink.name
        }
        try await recorder.settle(after: event)
        let kernel = try await host.kernelRoute("\(LabNetwork.serverAddress(family)) ipproto tcp dport 1883")
        #expect(kernel.found?.device == uplink.name)
    }
}
