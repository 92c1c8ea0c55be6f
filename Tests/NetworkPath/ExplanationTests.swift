// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

/// The words of each step. How they read together is told by the stories in `Tests/Lab`.
@Suite struct ExplanationTests {
    private static let entry: RouteEntry = {
        var entry = RouteEntry(
            to: .all(.v4), metric: 100,
            nextHops: [.init(interfaceIndex: Sample.wiredIndex, gateway: Sample.gateway4)])
        entry.origin = 16
        return entry
    }()
    private static let rule = PolicyRule(.v4, priority: 32_766, .table(254))

    /// The steps for the usual way out with one thing different.
    private func steps(
        _ answer: RouteAnswer = .route(Sample.route4), in snapshot: NetworkSnapshot = Sample.network,
        details: [Int: LinkDetail] = [:], _ change: (inout RouteFinding) -> Void = { _ in }
    ) -> [Explanation.Step] {
        let packet = RulePacket(RouteQuery(Sample.remote4), user: 0)
        let walk =
            if case .route = answer { RuleWalk(end: .entries([Self.entry]), rule: Self.rule) } else {
                RuleWalk(end: .nothing)
            }
        var finding = RouteFinding(packet: packet, answer: answer, walk: walk)
        change(&finding)
        let path = Path(to: Sample.remote4, by: answer, in: snapshot)
        return Explanation.steps(for: finding, path: path, on: LinkStack(snapshot, details: details))
    }

    private func text(_ subject: Explanation.Step.Subject, _ steps: [Explanation.Step]) -> String? {
        steps.first { $0.subject == subject }.map { $0.text + ($0.isDecisive ? " !" : "") }
    }

    @Test func `a good path has its steps in order, and none is decisive`() {
        let steps = steps()
        #expect(
            steps == [
                .init(.rule, "32766: from all lookup main"),
                .init(.route, "default via 192.0.2.1 dev eth0 proto dhcp metric 100"),
                .init(.link, "eth0 (wired) is up, carrier present"),
                .init(.neighbour, "192.0.2.1 was not asked for yet on eth0"),
                .init(.source, "192.0.2.10"),
            ])
    }

    @Test(arguments: [
        (NeighbourEntry.State.incomplete, "is being asked for on eth0, no answer so far (INCOMPLETE)"),
        (.reachable, "answers on eth0 (REACHABLE)"), (.stale, "has answered on eth0, not lately (STALE)"),
        (.probing, "has answered on eth0 and is asked again (PROBE)"),
        (.fixed, "has a fixed entry on eth0, nobody asks it"), (.failed, "is FAILED on eth0: it does not answer"),
    ])
    func `a neighbour is told by its state`(state: NeighbourEntry.State, words: String) {
        #expect(text(.neighbour, steps { $0.neighbour = .init(state) }) == "192.0.2.1 \(words)")
    }

    @Test func `a silent gateway is told with how long, by whoever knows it longer`() {
        let snapshot = Sample.network.with {
            $0.failedNeighbours = [.init(interfaceIndex: Sample.wiredIndex, address: Sample.gateway4)]
        }
        let asked = steps(in: snapshot) { $0.neighbour = .init(.failed, age: .seconds(12)) }
        #expect(text(.neighbour, asked) == "192.0.2.1 is FAILED on eth0: no answer, last asked 12 s ago !")
        let followed = steps(in: snapshot) {
            $0.neighbour = .init(.failed, age: .seconds(12))
            $0.silence = .seconds(130)
        }
        #expect(text(.neighbour, followed) == "192.0.2.1 is FAILED on eth0 for 2 m 10 s: it does not answer !")
    }

    @Test func `a link that needs no neighbours has no such step`() {
        let details = [Sample.wiredIndex: LinkDetail(resolvesNeighbours: false)]
        #expect(text(.neighbour, steps(details: details)) == nil)
    }

    @Test func `a link is told with what it stands on where that is why it does not work`() {
        let noCarrier = Sample.network.wired { $0.hasCarrier = false }
        #expect(
            text(.link, steps(in: noCarrier)) == "eth0 (wired) is up, but has no carrier; the kernel keeps using the "
                + "route, ignore_routes_with_linkdown is off !")
        #expect(text(.link, steps(in: Sample.network.wired { $0.isUp = false })) == "eth0 (wired) is down !")
        let bridge = [Sample.wiredIndex: LinkDetail(driver: "bridge")]
        #expect(text(.link, steps(in: noCarrier, details: bridge))?.contains("no carrier: it has no ports;") == true)
        var below = noCarrier
        below.interfaces[9] = Interface(index: 9, name: "eth9", kind: .wired, isUp: false)
        let vlan = [Sample.wiredIndex: LinkDetail(driver: "vlan", lower: 9)]
        #expect(
            text(.link, steps(in: below, details: vlan))?.hasPrefix(
                "eth0 (vlan on eth9) is up, but has no carrier: eth9 (wired) is down;") == true)
        #expect(
            text(.link, steps(in: Sample.network.with { $0.interfaces[2] = nil }))
                == "the interface of the route is gone !")
    }

    /// The kernel lets two tunnels name each other, and links may have changed between two parts of a dump.
    @Test func `links that stand on each other are told once`() {
        var snapshot = Sample.network.wired { $0.hasCarrier = false }
        snapshot.interfaces[9] = Interface(index: 9, name: "eth9", kind: .wired, hasCarrier: false)
        let details = [
            Sample.wiredIndex: LinkDetail(driver: "gre", lower: 9), 9: LinkDetail(driver: "gre", lower: 2),
        ]
        #expect(
            text(.link, steps(in: snapshot, details: details))?.hasPrefix(
                "eth0 (gre on eth9) is up, but has no carrier: eth9 (gre on eth0) is up, but has no carrier: "
                    + "eth0 (gre on eth9) is up, but has no carrier;") == true)
    }

    @Test func `a source is told with why it is not good`() {
        let tentative = Sample.network.address(Sample.own4) { $0.isTentative = true }
        #expect(
            text(.source, steps(in: tentative))
                == "no usable IPv4 address on eth0: 192.0.2.10 is tentative, duplicates "
                + "of it are still looked for !")
        let duplicate = Sample.network.address(Sample.own4) { $0.isDuplicate = true }
        #expect(
            text(.source, steps(in: duplicate))
                == "no usable IPv4 address on eth0: 192.0.2.10 is a duplicate of another host's !")
        let deprecated = Sample.network.address(Sample.own4) { $0.isDeprecated = true }
        #expect(text(.source, steps(in: deprecated)) == "192.0.2.10, which is deprecated: there is no better")
        let none = Sample.network.wired { $0.addresses.removeFirst() }
        let route = Route(interfaceIndex: Sample.wiredIndex, gateway: Sample.gateway4, source: nil)
        #expect(text(.source, steps(.route(route), in: none)) == "eth0 has no IPv4 address !")
    }

    @Test func `a refusal that cannot be traced says so, with the rules that it may be`() {
        let rules = [UInt32(100), 101].map { PolicyRule(.v4, priority: $0, .table($0)) }
        let steps = steps(.refused(.blackhole)) { finding in
            finding.walk.passed = rules.map { rule in
                .init(rule: rule, reading: .init(table: rule.priority, count: 10_000, isComplete: false))
            }
            finding.walk.isCertain = false
        }
        #expect(text(.rule, steps) == "one of 100: from all lookup 100; 101: from all lookup 101")
        #expect(
            text(.route, steps)
                == "a blackhole route or rule; which one cannot be told: not all routes were looked at !")
    }

    @Test func `tables are told with what they have`() {
        func table(_ reading: TableReading, _ entry: RouteEntry? = nil) -> String? {
            let rule = PolicyRule(.v4, priority: 9, .table(reading.table))
            return text(
                .table,
                steps(.refused(.noRoute)) { $0.walk.passed = [.init(rule: rule, reading: reading, entry: entry)] })
        }
        #expect(table(.init(table: 254, count: 0)) == "main is empty !")
        #expect(table(.init(table: 254, count: 1)) == "main has no route to 198.51.100.7: 1 route, no default !")
        #expect(table(.init(table: 254, count: 2)) == "main has no route to 198.51.100.7: 2 routes, no default !")
        #expect(
            table(.init(table: 254, count: 9, isComplete: false)) == "main has more routes than were looked at (9) !")
        #expect(
            table(.init(table: 254, count: 1, entries: [Self.entry]))
                == "main has default via 192.0.2.1 dev eth0 proto dhcp metric 100, which cannot be used !")
        #expect(
            table(.init(table: 254, count: 1), Self.entry)
                == "main has default via 192.0.2.1 dev eth0 proto dhcp metric 100, suppressed by the rule !")
        #expect(
            table(.init(table: 100, count: 1), RouteEntry(.throw, to: .all(.v4), table: 100))
                == "100 ends the search: throw default table 100; no rule leads the packet to main !")
    }

    /// Whatever the kernel answers and whatever the state of the machine.
    @Test func `one step is decisive where the path is not satisfied, and none where it is`() {
        let answers: [RouteAnswer] = [
            .route(Sample.route4), .route(Route(interfaceIndex: 99, source: nil)), .refused(.noRoute),
            .refused(.unreachable), .refused(.prohibited), .refused(.blackhole), .refused(.familyUnsupported),
            .refused(.other(code: 5)),
        ]
        let snapshots = [
            Sample.network, NetworkSnapshot(), Sample.network.wired { $0.hasCarrier = false },
            Sample.network.wired { $0.isUp = false }, Sample.network.wired { $0.addresses = [] },
            Sample.network.with {
                $0.failedNeighbours = [.init(interfaceIndex: Sample.wiredIndex, address: Sample.gateway4)]
            },
        ]
        for (answer, snapshot) in answers.flatMap({ answer in snapshots.map { (answer, $0) } }) {
            let status = Path(to: Sample.remote4, by: answer, in: snapshot).status
            let decisive = steps(answer, in: snapshot).filter(\.isDecisive)
            #expect(decisive.count == (status == .satisfied ? 0 : 1), "\(answer) \(snapshot)")
        }
    }

    @Test(arguments: [
        (
            NameFinding.Answer.addresses([Sample.remote4], .hostsFile),
            "sip.example.com is 198.51.100.7, by the hosts file"
        ),
        (
            .addresses([Sample.remote4, Sample.own4, IPAddress.loopbackV6], .server(timeLeft: .milliseconds(280_900))),
            "sip.example.com is 198.51.100.7, 192.0.2.10 and ::1, by DNS (280 s left)"
        ),
        (
            .addresses([Sample.remote4], .server(timeLeft: .seconds(-3))),
            "sip.example.com is 198.51.100.7, by DNS (0 s left)"
        ),
        (.none("Domain name not found"), "sip.example.com has no address: Domain name not found (asked 192.0.2.1)"),
        (.silence("Timeout"), "nobody said what sip.example.com is: Timeout (asked 192.0.2.1)"),
    ])
    func `a name is told with its addresses, or with who was asked`(answer: NameFinding.Answer, text: String) {
        let finding = NameFinding("sip.example.com", answer, servers: [Sample.gateway4])
        #expect(Explanation.Step(finding) == .init(.name, text))
    }

    @Test func `a machine without name servers says so`() {
        let step = Explanation.Step(NameFinding("h", .silence("Timeout")), isDecisive: true)
        #expect(step == .init(.name, "nobody said what h is: Timeout (no name server is configured)", isDecisive: true))
    }

    @Test func `packets that cannot be asked about at all are told why`() {
        let stack = LinkStack(Sample.network)
        func step(_ change: (inout Target) -> Void) -> Explanation.Step {
            var target = Target(.address(Sample.remote4))
            change(&target)
            return .foregone(target, on: stack)
        }
        #expect(step { $0.interface = "wlan9" } == .init(.link, "there is no interface wlan9", isDecisive: true))
        #expect(
            step { $0.source = Sample.remote4 }.text
                == "198.51.100.7 is no address of this machine that packets can leave from now")
        #expect(step { $0.source = Sample.own6 }.text.hasSuffix("is of another family than the host's addresses"))
    }
}
