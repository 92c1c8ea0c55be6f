// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneNetworkPath

extension FuzzTarget {
    /// What is told of a path, and of the same without an interface: links, rules and routes as no kernel would put
    /// them together.
    static let explanations = FuzzTarget(name: "explanations") { bytes in
        var draw = Draw(bytes)
        let destination = draw.address()
        let stack = draw.links()
        let rules = draw.several(4) { $0.rule(of: destination.family) }
        let entries = draw.several(4) { $0.entry(of: destination.family) }
        let answer = draw.answer()
        let packet = draw.packet(to: destination)
        let walk = RuleWalk(packet, through: rules) { table in
            TableReading(table: table, count: entries.count, entries: entries)
        }
        let finding = RouteFinding(
            packet: packet, answer: answer, walk: walk,
            neighbour: draw.maybe { draw in
                let states: [NeighbourEntry.State] = [.incomplete, .reachable, .stale, .probing, .failed, .fixed]
                return NeighbourEntry(draw.pick(states), age: draw.duration())
            }, silence: draw.maybe { $0.duration() })
        let path = Path(to: destination, by: answer, in: stack.snapshot)
        let steps = Explanation.steps(for: finding, path: path, on: stack)
        precondition(steps.filter(\.isDecisive).count <= 1)
        var basis = VerdictBasis(capacity: 1)
        basis.add(packet.query, answer, in: stack.snapshot)
        _ = path.changes(from: .unresolved(network: path))

        let loss = InterfaceLoss(of: 1 + draw.below(4), from: stack)
        precondition(loss.gone.isDisjoint(with: loss.rest.snapshot.interfaces.keys))
        for entry in entries { _ = loss.survivor(of: entry)?.text(loss.rest.name) }
        _ = loss.source(to: destination, by: 1 + draw.below(4))
    }
}

extension Draw {
    fileprivate mutating func address() -> IPAddress {
        switch byte() % 8 {
        case 0: IPAddress(v4: 0xC000_0201)
        case 1: IPAddress(v4: UInt32(truncatingIfNeeded: next()))
        case 2: IPAddress(v4: 0x7F00_0001)
        case 3: IPAddress(v6: 0x2001_0DB8 << 96 | UInt128(byte()))
        case 4: IPAddress(v6: 0xFE80 << 112 | UInt128(byte()))
        case 5: IPAddress(v6: UInt128(byte()))
        case 6: IPAddress(v6: UInt128(next()) << 64 | UInt128(next()))
        default: IPAddress(v4: 0xC000_0200 | UInt32(byte()))
        }
    }

    /// An index of one of a few interfaces, or of none.
    private mutating func link() -> Int { below(6) }

    fileprivate mutating func links() -> LinkStack {
        var (snapshot, details) = (NetworkSnapshot(), [Int: LinkDetail]())
        let drivers = ["vlan", "macvlan", "veth", "bridge", "bond", "gre", "vrf", "dummy", "", "tun"]
        for index in 1...(1 + below(4)) {
            let flags = byte()
            snapshot.interfaces[index] = Interface(
                index: index, name: "eth\(index)", kind: pick(InterfaceKind.allCases), isUp: flags & 1 == 0,
                hasCarrier: flags & 2 == 0,
                addresses: several(2) { draw in
                    InterfaceAddress(
                        draw.address(), prefixLength: Int(draw.byte()), isTentative: draw.chance(),
                        isDuplicate: draw.chance(), isDeprecated: draw.chance())
                })
            details[index] = maybe { draw in
                LinkDetail(
                    driver: draw.maybe { $0.pick(drivers) }, lower: draw.maybe { $0.link() },
                    master: draw.maybe { $0.link() }, group: UInt32(draw.byte()), resolvesNeighbours: draw.chance(),
                    table: draw.maybe { UInt32($0.byte()) })
            }
        }
        snapshot.isCoherent = chance()
        return LinkStack(snapshot, details: details)
    }

    private mutating func prefix(_ family: IPAddress.Family) -> IPPrefix {
        chance() ? .all(family) : IPPrefix(address(), length: Int(byte()))
    }

    fileprivate mutating func rule(of family: IPAddress.Family) -> PolicyRule {
        let number = UInt32(byte())
        var rule = PolicyRule(
            family, priority: UInt32(byte()),
            pick([.table(254), .table(number), .goto(number), .nop, .blackhole, .unreachable, .prohibit, .other(9)]))
        rule.isInverted = byte() > 200
        rule.source = maybe { $0.prefix(family) }
        rule.destination = maybe { $0.prefix(family) }
        rule.outbound = maybe { $0.pick(["eth1", "lo", ""]) }
        (rule.mark, rule.markMask) = (UInt32(byte()), UInt32(byte()))
        rule.users = maybe {
            let user = UInt32($0.byte()); return user...(.max)
        }
        rule.destinationPorts = maybe {
            PolicyRule.Ports(UInt16($0.byte())...(.max), mask: $0.maybe { UInt16($0.byte()) })
        }
        rule.isForVRF = chance()
        rule.suppressedLength = maybe { $0.number() }
        rule.suppressedGroup = maybe { UInt32($0.byte()) }
        return rule
    }

    fileprivate mutating func entry(of family: IPAddress.Family) -> RouteEntry {
        var entry = RouteEntry(
            pick([.unicast, .local, .group, .blackhole, .unreachable, .prohibit, .throw, .other(11)]),
            to: prefix(family), table: pick([254, 255, 253, 100]), metric: UInt32(truncatingIfNeeded: number()),
            nextHops: several(3) { draw in
                RouteEntry.NextHop(
                    interfaceIndex: draw.link(), gateway: draw.maybe { $0.address() }, weight: draw.number(),
                    isDead: draw.chance(), isLinkDown: draw.chance())
            })
        entry.origin = byte()
        entry.sourcePrefix = maybe { $0.prefix(family) }
        entry.preferredSource = maybe { $0.address() }
        entry.nextHopObject = maybe { UInt32($0.byte()) }
        return entry
    }

    fileprivate mutating func answer() -> RouteAnswer {
        if chance() {
            return .route(
                Route(
                    scope: pick([.remote, .local, .group]), interfaceIndex: link(), gateway: maybe { $0.address() },
                    source: maybe { $0.address() }, table: UInt32(byte())))
        }
        return .refused(
            pick([
                .noRoute, .unreachable, .prohibited, .blackhole, .familyUnsupported,
                .other(code: Int32(truncatingIfNeeded: number())),
            ]))
    }

    fileprivate mutating func packet(to destination: IPAddress) -> RulePacket {
        var query = RouteQuery(destination)
        query.port = maybe { UInt16($0.byte()) }
        query.mark = maybe { UInt32($0.byte()) }
        query.interfaceIndex = maybe { $0.link() }
        query.source = maybe { $0.address() }
        return RulePacket(
            query, user: UInt32(byte()), outbound: maybe { $0.pick(["eth1", "lo"]) },
            tableOfVRF: maybe { UInt32($0.byte()) })
    }
}
