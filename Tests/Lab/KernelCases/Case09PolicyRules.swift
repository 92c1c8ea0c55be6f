// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// A lookup answers for one packet. Rules on its mark, owner, protocol or port flip the verdict.
@Suite(.lab)
struct Case09PolicyRules {
    @Test(arguments: Family.allCases)
    func `case 9: by mark, each for its own packets`(family: Family) async throws {
        try await KernelCase.play { it in
            try await it.lab.addRule(family, "fwmark 7 prohibit")
            try await it.expect([nil: nil, 7: .prohibited, 8: nil], family) { $0.mark = $1 }
        }
    }

    @Test(.anotherUser, arguments: Family.allCases)
    func `case 9: by user, each for that user's packets`(family: Family) async throws {
        try await KernelCase.play { it in
            try await it.lab.addRule(family, "uidrange 65534-65534 prohibit")
            try await it.expect([nil: nil, 65_534: .prohibited, 0: nil], family) { $0.user = $1 }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 9: by protocol, each for its own packets`(family: Family) async throws {
        try await KernelCase.play { it in
            try await it.lab.addRule(family, "ipproto udp prohibit")
            try await it.expect([.udp: .prohibited, .tcp: nil], family) { $0.transport = $1 }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 9: by port, each for its own packets`(family: Family) async throws {
        try await KernelCase.play { it in
            try await it.lab.addRule(family, "ipproto tcp dport 5060 prohibit")
            try await it.expect([nil: nil, 5060: .prohibited, 5061: nil], family) { $0.port = $1 }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 9: by source address, for packets that carry it`(family: Family) async throws {
        try await KernelCase.play { it in
            let (wan0, wan1) = (IPAddress(Uplink.wan0.address(family)), IPAddress(Uplink.wan1.address(family)))
            try await it.host.ip("route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 1000")
            try await it.lab.addRule(family, "from \(Uplink.wan1.address(family)) lookup 1000")
            for (source, interface) in [(wan0, "wan0"), (wan1, "wan1")] {
                let target = Target.server(family).with { $0.source = source }
                let path = await it.path(to: target)
                #expect(path.interface?.name == interface && path.source == source, "\(path)")
            }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 9: a rule that comes or goes flips a verdict that stands`(family: Family) async throws {
        try await KernelCase.play { it in
            let marked = Target.server(family).with { $0.mark = 7 }
            let paths = try await it.watch(marked)
            try await it.host.ip("route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 1000")
            try await it.lab.addRule(family, "fwmark 7 lookup 1000")
            let report = try await paths.nextReport("the rule")
            #expect(report.changes == [.interface, .addresses, .gateway, .source])
            try await it.expectAgreement(report.path, on: marked)
            try await it.lab.removeRule(family, "fwmark 7 lookup 1000")
            let path = try await paths.next("the rule's end") { $0.interface?.name == "wan0" }
            try await it.expectAgreement(path, on: marked)
        }
    }

    /// The daemon asks for its client's packets, not for its own.
    @Test(.anotherUser) func `case 9: the daemon answers each user for that user's packets`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addRule(.v4, "uidrange 65534-65534 to 203.0.113.0/24 prohibit")
            let home = try DaemonHome()
            _ = try await home.start(on: lab.host)
            let target = NetworkAPI.Target(host: LabNetwork.serverAddress(.v4))
            expect(try await home.client.path(to: target).status, is: .satisfied)
            let reply = try await lab.host.run {
                let client = try UnixClient.connected(to: home.socket, as: 65_534)
                let call = """
                    {"method": "org.dialtone.Network.GetPath", "parameters": {"target": {"host": "\(target.host)"}}}
                    """
                try client.send(call + "\0")
                return String(decoding: try client.receive(), as: UTF8.self)
            }
            #expect(reply.contains("\"reason\":\"prohibited\""), "\(reply)")
        }
    }

    @Test(.anotherUser) func `case 9: a user who asks without the daemon is told of their own packets`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addRule(.v4, "uidrange 65534-65534 to 203.0.113.0/24 prohibit")
            let home = try DaemonHome()
            let address = LabNetwork.serverAddress(.v4)
            expect(try await home.dialtone("check", address, on: lab.host).exit, is: .status(0))
            let refused = try await home.dialtone("check", address, on: lab.host, by: AnotherUser.command)
            #expect(refused.exit == .status(1), "\(refused)")
        }
    }
}

extension KernelCase {
    /// Holds the reason of the path to the server for packets that differ in one property, and the kernel's verdict.
    fileprivate func expect<Value: Hashable>(
        _ reasons: [Value?: Path.Reason?], _ family: Family, _ set: (inout Target, Value?) -> Void,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        for (value, reason) in reasons {
            var target = Target.server(family)
            target.port = nil
            set(&target, value)
            let path = await path(to: target)
            #expect(path.reason == reason, "\(String(describing: value))", sourceLocation: location)
            try await expectAgreement(path, on: target, location)
        }
    }
}
