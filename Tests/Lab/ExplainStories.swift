// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// `dialtone check --explain` in broken networks: the whole answer, as whoever runs the command reads it.
@Suite(.lab)
struct ExplainStories {
    private static let server = LabNetwork.serverAddress(.v4)

    @Test func `of a good network names what the path rests on, and nothing decided`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip("neigh replace 192.0.2.1 lladdr 02:00:00:00:00:01 dev wan0 nud reachable")
            let answer = try await lab.explain("\(Self.server):1883")
            #expect(answer.exit == .status(0))
            #expect(
                answer.output == """
                    Route available: 203.0.113.10:1883 over wan0 (virtual) via 192.0.2.1 from 192.0.2.2 \
                    (nothing was sent).

                      rule       32766: from all lookup main
                      route      default via 192.0.2.1 dev wan0 metric 100
                      link       wan0 (virtual) is up, carrier present
                      neighbour  192.0.2.1 answers on wan0 (REACHABLE)
                      source     192.0.2.2
                    """)
        }
    }

    @Test func `of a dead gateway`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip("neigh replace 192.0.2.1 dev wan0 nud failed \(Namespace.isKept)")
            let answer = try await lab.explain("\(Self.server):1883")
            #expect(answer.exit == .status(1))
            // How long ago is the kernel's to say.
            #expect(
                answer.output.replacing(/asked .* ago/, with: "asked 12 s ago") == """
                    Not reachable: the gateway 192.0.2.1 does not answer.

                      rule       32766: from all lookup main
                      route      default via 192.0.2.1 dev wan0 metric 100
                      link       wan0 (virtual) is up, carrier present
                      neighbour  192.0.2.1 is FAILED on wan0: no answer, last asked 12 s ago  <- decided
                      source     192.0.2.2
                    """)
        }
    }

    @Test func `of a cable that is out`() async throws {
        try await LabNetwork.with { lab in
            try await lab.cut(.wan0)
            expect(
                try await lab.explain(Self.server).output,
                is: """
                    Not reachable: wan0 has no carrier.

                      rule       32766: from all lookup main
                      route      default via 192.0.2.1 dev wan0 linkdown metric 100
                      link       wan0 (virtual) is up, but has no carrier; the kernel keeps using the route, \
                    ignore_routes_with_linkdown is off  <- decided
                      source     192.0.2.2
                    """)
        }
    }

    @Test func `of links on links that have no carrier`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip(batch: [
                "link add mac0 link wan0 type macvlan mode bridge", "address add 10.9.0.2/24 dev mac0",
                "link set mac0 up", "link add br0 type bridge", "link set br0 up", "address add 10.8.0.2/24 dev br0",
                "link set wan1 master br0",
            ])
            for uplink in Uplink.allCases { try await lab.cut(uplink) }
            for link in ["mac0", "br0"] { try await lab.host.link(link, "without carrier") { !$0.hasCarrier } }
            let onMAC = try await lab.explain("10.9.0.9").output
            #expect(
                onMAC.contains(
                    "link       mac0 (macvlan on wan0) is up, but has no carrier: wan0 (virtual) is up, but has no "
                        + "carrier; the kernel keeps using"), "\(onMAC)")
            let onBridge = try await lab.explain("10.8.0.9").output
            #expect(
                onBridge.contains(
                    "link       br0 (bridge) is up, but has no carrier: wan1 (virtual) is up, but has no carrier; "),
                "\(onBridge)")
        }
    }

    @Test func `of a rule by mark that leads to an empty table`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addRule(.v4, "pref 100 fwmark 7 lookup 100")
            try await lab.addRule(.v4, "pref 101 fwmark 7 unreachable")
            expect(
                try await lab.explain(Self.server, "--mark", "7").output,
                is: """
                    Not reachable: no route to 203.0.113.10.

                      rule       101: from all fwmark 0x7 unreachable  <- decided
                      table      100 is empty; the search went on
                    """)
            // A packet without the mark is none of the rule's.
            expect(try await lab.explain(Self.server).exit, is: .status(0))
            try await lab.removeRule(.v4, "pref 101")
            #expect(
                try await lab.explain(Self.server, "--mark", "7").output.contains(
                    "  rule       32766: from all lookup main\n  table      100 is empty; the search went on\n"))
        }
    }

    @Test(.anotherUser) func `of a rule that prohibits a user's packets, to that user`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addRule(.v4, "pref 90 uidrange 65534-65534 prohibit")
            let answer = """
                Not reachable: a rule or route prohibits packets to 203.0.113.10.

                  rule       90: from all uidrange 65534-65534 prohibit  <- decided
                """
            expect(try await lab.explain(Self.server, by: AnotherUser.command).output, is: answer)
            expect(try await lab.explain(Self.server, "--uid", "65534").output, is: answer)
            expect(try await lab.explain(Self.server).exit, is: .status(0))
        }
    }

    @Test(arguments: [
        (RefusingRoute.blackhole, "a rule or route swallows packets to 203.0.113.10", "route"),
        (.unreachable, "a route declares 203.0.113.10 unreachable", "route"),
        (.prohibit, "a rule or route prohibits packets to 203.0.113.10", "route"),
    ])
    func `of a route that refuses`(kind: RefusingRoute, headline: String, subject: String) async throws {
        try await LabNetwork.with { lab in
            try await lab.addRefusingRoute(kind, "203.0.113.0/24")
            expect(
                try await lab.explain(Self.server).output,
                is: """
                    Not reachable: \(headline).

                      rule       32766: from all lookup main
                      route      \(kind.rawValue) 203.0.113.0/24  <- decided
                    """)
        }
    }

    @Test func `of tables without a route`() async throws {
        try await LabNetwork.with { lab in
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v4]) }
            try await lab.addRefusingRoute(.throw, "203.0.113.0/24", table: 100)
            try await lab.addRule(.v4, "pref 100 to 203.0.113.0/24 lookup 100")
            expect(
                try await lab.explain(Self.server).output,
                is: """
                    Not reachable: no route to 203.0.113.10.

                      rule       100: from all to 203.0.113.0/24 lookup 100; 32766: from all lookup main
                      table      100 ends the search: throw 203.0.113.0/24 table 100; main has no route to \
                    203.0.113.10: 2 routes, no default  <- decided
                    """)
            // Bound to an interface, the kernel takes any host for a neighbour there.
            let bound = try await lab.explain(Self.server, "--interface", "wan1")
            #expect(
                bound.output == """
                    Route available: 203.0.113.10 over wan1 (virtual) from 198.51.100.2, on the link itself \
                    (nothing was sent).

                      route      none by wan1: bound to it, the kernel takes 203.0.113.10 for a host on that link
                      link       wan1 (virtual) is up, carrier present
                      neighbour  203.0.113.10 was not asked for yet on wan1
                      source     198.51.100.2
                    """)
        }
    }

    @Test func `of a machine that has only the other family`() async throws {
        try await LabNetwork.with { lab in
            for uplink in Uplink.allCases { try await lab.removeAddress(uplink.prefix(.v4), from: uplink) }
            expect(
                try await lab.explain(Self.server).output.withoutLinkLocals,
                is: """
                    Not reachable: no usable source address.

                      rule       32766: from all lookup main
                      table      main is empty
                      source     this machine has no IPv4 address; there is only IPv6: 2001:db8:a::2 on wan0, \
                    2001:db8:b::2 on wan1  <- decided
                    """)
        }
    }

    @Test func `of an address that is still tentative`() async throws {
        try await LabNetwork.with { lab in
            try await lab.takeDown(.wan1)
            // Long enough to be looked at: a minute of asking for duplicates.
            try await lab.host.sysctl([
                ("net.ipv6.conf.wan0.dad_transmits", "60"), ("net.ipv6.conf.wan0.accept_dad", "1"),
            ])
            try await lab.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0)
            try await lab.host.ip(batch: [
                "address flush dev wan0 scope link", "address add 2001:db8:a::2/64 dev wan0",
                "route replace default via 2001:db8:a::1 dev wan0 onlink metric 100",
            ])
            expect(
                try await lab.explain(LabNetwork.serverAddress(.v6)).output,
                is: """
                    Not reachable: no usable source address on wan0.

                      rule       32766: from all lookup main
                      route      default via 2001:db8:a::1 dev wan0 metric 100
                      link       wan0 (virtual) is up, carrier present
                      neighbour  2001:db8:a::1 was not asked for yet on wan0
                      source     no usable IPv6 address on wan0: 2001:db8:a::2 is tentative, duplicates of it are \
                    still looked for  <- decided
                    """)
        }
    }

    @Test func `of a name: its addresses and where they are from, and the way to the better one`() async throws {
        try await LabNetwork.with { lab in
            let files = try NameFiles(hosts: "203.0.113.10 sip.example.com\n2001:db8:c::10 sip.example.com\n")
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v6]) }
            expect(
                try await lab.explain("sip.example.com:5061", by: files.command).output,
                is: """
                    Route available: sip.example.com:5061 is 203.0.113.10, over wan0 (virtual) via 192.0.2.1 \
                    from 192.0.2.2 (nothing was sent).

                      name       sip.example.com is 2001:db8:c::10 and 203.0.113.10, by the hosts file
                      rule       32766: from all lookup main
                      route      default via 192.0.2.1 dev wan0 metric 100
                      link       wan0 (virtual) is up, carrier present
                      neighbour  192.0.2.1 was not asked for yet on wan0
                      source     192.0.2.2
                      also       2001:db8:c::10: no route
                    """)
        }
    }

    @Test func `of a name that nobody answers for, and of the way to who should`() async throws {
        try await LabNetwork.with { lab in
            // The server's machine is there, and no name server on it.
            let files = try NameFiles(hosts: "", servers: "nameserver 203.0.113.10\n")
            let unanswered = try await lab.explain("sip.example.com", by: files.command).output
            // The words between are the resolver's; which, depends on whether it was refused or waited.
            let words = /is: .* \(asked/
            #expect(
                unanswered.replacing(words, with: "is: Timeout (asked") == """
                    Not reachable: the name is not found, or no name server answers.

                      name       nobody said what sip.example.com is: Timeout (asked 203.0.113.10)  <- decided
                    """)
            try await lab.addRefusingRoute(.prohibit, "203.0.113.0/24")
            let refused = try await lab.explain("sip.example.com", by: files.command).output
            #expect(
                refused.replacing(words, with: "is: Timeout (asked") == """
                    Not reachable: the name is not found, or no name server answers.

                      name       nobody said what sip.example.com is: Timeout (asked 203.0.113.10)
                      rule       32766: from all lookup main
                      route      prohibit 203.0.113.0/24  <- decided
                    """)
        }
    }

    @Test func `of next hops: an object, a group, and IPv4 by way of an IPv6 router`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip(batch: [
                "nexthop add id 7 via 192.0.2.1 dev wan0", "nexthop add id 8 via 198.51.100.1 dev wan1",
                "nexthop add id 9 group 7/8", "route add 10.1.0.0/16 nhid 7", "route add 10.2.0.0/16 nhid 9",
                "route add 10.3.0.0/16 via inet6 2001:db8:a::1 dev wan0",
            ])
            let object = try await lab.explain("10.1.0.1").output
            #expect(object.contains("  nexthop    next-hop object 7: via 192.0.2.1 dev wan0\n"), "\(object)")
            let group = try await lab.explain("10.2.0.1").output
            #expect(
                group.contains(
                    "  nexthop    next-hop object 9, a group: one of via 192.0.2.1 dev wan0 weight 1, "
                        + "via 198.51.100.1 dev wan1 weight 1; this packet goes via "), "\(group)")
            let other = try await lab.explain("10.3.0.1").output
            #expect(other.contains("  nexthop    IPv4 by way of a router's IPv6 address\n"), "\(other)")
        }
    }

    @Test func `of what would be without an interface`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip(batch: ["link add mac0 link wan0 type macvlan", "link set mac0 up"])
            let answer = try await lab.explain(Self.server, "--without", "wan0")
            #expect(answer.exit == .status(0))
            #expect(
                answer.output == """
                    Route available without wan0: 203.0.113.10 over wan1 (virtual) via 198.51.100.1 from 198.51.100.2 \
                    (nothing was sent).

                      without    wan0, and with it mac0
                      rule       32766: from all lookup main
                      route      default via 198.51.100.1 dev wan1 metric 200
                      link       wan1 (virtual) is up, carrier present
                      neighbour  198.51.100.1 was not asked for yet on wan1
                      source     198.51.100.2
                    """)
            try await lab.removeDefaultRoute(via: .wan1, families: [.v4])
            let none = try await lab.check(Self.server, "--without", "wan0")
            #expect(none.exit == .status(1))
            #expect(none.output == "Not reachable without wan0: no route to 203.0.113.10.")
            let json = try await lab.check(Self.server, "--without", "wan0", "--json")
            let path = try #require(NetworkAPI.Path(json: json.output.utf8))
            #expect(path.status == .unsatisfied && path.reason == .noRoute && path.supportsIPv6 && !path.supportsIPv4)
            let typo = try await lab.check(Self.server, "--without", "wlan0")
            #expect(typo.exit == .status(EX_USAGE))
            #expect(
                typo.error
                    == "dialtone: --without: there is no interface \"wlan0\" here; there are lo, mac0, wan0, wan1")
        }
    }

    @Test func `is the same by --json and from the agent`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addRefusingRoute(.blackhole, "203.0.113.0/24")
            let json = try await lab.explain(Self.server, "--json")
            let byCommand = try #require(NetworkAPI.Explain.Reply(json: json.output.utf8))
            #expect(byCommand.steps.map(\.subject) == [.rule, .route])
            #expect(byCommand.steps.map(\.decisive) == [false, true])
            let agent = try await LabAgent.start(on: lab.host)
            let byAgent = try await agent.client.call(
                NetworkAPI.Explain.self, .init(target: .init(host: Self.server)))
            #expect(byAgent.steps == byCommand.steps)
            #expect(byAgent.path.reason == .blackhole)
            let without = try await agent.client.call(
                NetworkAPI.GetPath.self, .init(target: .init(host: "198.51.100.9"), without: "wan0"))
            #expect(without.path.interface?.name == "wan1")
            let network = try await agent.client.call(NetworkAPI.GetPath.self, .init(without: "wan0"))
            #expect(network.path.interface?.name == "wan1" && network.path.destination == nil)
        }
    }

    @Test func `has its colours on a terminal alone`() async throws {
        try await LabNetwork.with { lab in
            let command = "\(LabAgent.program("dialtone")) check --explain \(Self.server)"
            let plain = try await lab.host.outcome(["sh", "-c", command]).output
            let terminal = ["script", "-qec", command, "/dev/null"]
            let painted = try await lab.host.outcome(terminal, environment: ["TERM": "xterm", "NO_COLOR": ""]).output
            let unpainted = try await lab.host.outcome(terminal, environment: ["TERM": "xterm", "NO_COLOR": "1"]).output
            let escape = "\u{1B}["
            #expect([plain, painted, unpainted].map { $0.contains(escape) } == [false, true, false])
            // A terminal ends its lines with a carriage return besides.
            let bare = painted.replacing(/\u{1B}\[\d+m/, with: "").unicodeScalars.filter { $0 != "\r" }
            #expect(String(String.UnicodeScalarView(bare)) == plain)
        }
    }
}

extension LabNetwork {
    fileprivate func check(_ arguments: String..., by launcher: [String] = []) async throws -> Outcome {
        try await host.outcome(launcher + [LabAgent.program("dialtone"), "check"] + arguments)
    }

    fileprivate func explain(_ arguments: String..., by launcher: [String] = []) async throws -> Outcome {
        try await host.outcome(launcher + [LabAgent.program("dialtone"), "check", "--explain"] + arguments)
    }
}

extension String {
    /// The same without the addresses that each link makes up for itself.
    fileprivate var withoutLinkLocals: String { replacing(/(, )?fe80::\S+ on \w+/, with: "") }
}

/// A hosts file and a resolv.conf in the place of the machine's, for one command.
private final class NameFiles: Sendable {
    private let folder = TemporaryDirectory()

    /// What becomes the command that follows, with these files.
    let command: [String]

    init(hosts: String, servers: String = "nameserver 127.0.0.1\n") throws {
        let folder = folder
        let files = ["hosts": hosts, "resolv.conf": servers]
        for (name, text) in files { try folder.write(text, to: name) }
        let binds = files.keys.sorted().map { "mount --bind \(folder.path)/\($0) /etc/\($0)" }
        command = ["unshare", "--mount", "sh", "-c", binds.joined(separator: " && ") + " && exec \"$@\"", "sh"]
    }
}
