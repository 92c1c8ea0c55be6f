// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import Glibc
import Testing

@Suite("The Lab's network", .lab)
struct LabNetworkTests {
    @Test(arguments: Uplink.allCases, Family.allCases)
    func `each uplink reaches the server, in each family`(uplink: Uplink, family: Family) async throws {
        try await LabNetwork.with { lab in
            // The other uplink's routes are gone, so that only this one can carry the greeting.
            for other in Uplink.allCases where other != uplink { try await lab.takeDown(other) }
            let (client, server) = try await lab.connect(from: uplink, family)
            try client.send("hello")
            #expect(try server.receive() == "hello")
            let seen = try await lab.server.connections()
            #expect(seen.map(\.peerAddress) == [uplink.address(family)])
            #expect(seen.map(\.state) == ["ESTAB"])
        }
    }

    @Test func `packets to the server leave by the uplink with the lower metric`() async throws {
        try await LabNetwork.with { lab in
            for family in Family.allCases {
                expect(try await lab.uplinkToServer(family), is: .wan0)
            }
            try await lab.preferDefaultRoute(via: .wan1)
            for family in Family.allCases {
                expect(try await lab.uplinkToServer(family), is: .wan1)
            }
        }
    }

    @Test func `a cut cable leaves the link up without carrier, and its routes in place`() async throws {
        try await LabNetwork.with { lab in
            try await lab.cut(.wan0)
            let link = try await lab.host.link("wan0")
            #expect(link.isUp)
            #expect(link.flags.contains("NO-CARRIER"))
            #expect(link.addresses.map(\.local).contains(Uplink.wan0.address(.v4)))
            expect(try await lab.host.ip("route show default dev wan0")) { $0.contains("linkdown") }
            #expect(try await lab.host.link("wan1").hasCarrier)

            try await lab.plug(.wan0)
            let (client, server) = try await lab.connect(from: .wan0, .v6)
            try client.send("back")
            #expect(try server.receive() == "back")
        }
    }

    @Test func `a link taken down loses its routes, and has them again when it is brought up`() async throws {
        try await LabNetwork.with { lab in
            try await lab.takeDown(.wan0)
            expect(try await lab.host.link("wan0").isUp, is: false)
            for family in Family.allCases {
                expect(try await lab.uplinkToServer(family), is: .wan1)
            }
            try await lab.bringUp(.wan0)
            for family in Family.allCases {
                expect(try await lab.uplinkToServer(family), is: .wan0)
            }
        }
    }

    @Test func `an address can be added, removed and replaced`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addAddress("192.0.2.9/24", to: .wan0)
            #expect(try await lab.host.hasAddress("192.0.2.9", on: .wan0))
            try await lab.removeAddress("192.0.2.9/24", from: .wan0)
            #expect(try await !lab.host.hasAddress("192.0.2.9", on: .wan0))
            try await lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.77/24")
            #expect(try await !lab.host.hasAddress(Uplink.wan0.address(.v4), on: .wan0))
            expect(try await lab.uplinkToServer(.v4), is: .wan0)
            expect(try await lab.host.ip("route get \(LabNetwork.serverAddress(.v4))")) {
                $0.contains("src 192.0.2.77")
            }
        }
    }

    @Test func `an address is tentative while duplicates are looked for, and not otherwise`() async throws {
        try await LabNetwork.with { lab in
            try await lab.addAddress("2001:db8:a::8/64", to: .wan0)
            try await lab.setDuplicateAddressDetection(true, on: .wan0)
            try await lab.addAddress("2001:db8:a::9/64", to: .wan0)
            let addresses = try await lab.host.link("wan0").addresses
            #expect(addresses.first { $0.local == "2001:db8:a::8" }.map(\.tentative) == .some(nil))
            #expect(addresses.first { $0.local == "2001:db8:a::9" }?.tentative == true)
            try await lab.host.link("wan0", "no address is tentative") { link in
                link.addresses.allSatisfy { $0.tentative != true }
            }
        }
    }

    @Test(arguments: [
        (RefusingRoute.blackhole, EINVAL), (.unreachable, EHOSTUNREACH), (.prohibit, EACCES), (.throw, ENETUNREACH),
    ])
    func `a refusing route refuses with its own error`(kind: RefusingRoute, code: CInt) async throws {
        try await LabNetwork.with { lab in
            // A throw route ends the search in its table, and no other has a way.
            try await lab.addRefusingRoute(kind, "203.0.113.0/24")
            await #expect { try await lab.connect(from: .wan0, .v4) } throws: { error in
                (error as? SystemError)?.code == code
            }
            try await lab.removeRefusingRoute(kind, "203.0.113.0/24")
            _ = try await lab.connect(from: .wan0, .v4)
        }
    }

    @Test func `a rule refuses what it selects, and nothing when it is gone`() async throws {
        try await LabNetwork.with { lab in
            let rule = "from \(Uplink.wan1.address(.v6)) prohibit"
            try await lab.addRule(.v6, rule)
            await #expect { try await lab.connect(from: .wan1, .v6) } throws: { error in
                (error as? SystemError)?.code == EACCES
            }
            _ = try await lab.connect(from: .wan0, .v6)
            try await lab.removeRule(.v6, rule)
            _ = try await lab.connect(from: .wan1, .v6)
        }
    }

    @Test func `networks do not see each other`() async throws {
        try await LabNetwork.with { one in
            try await LabNetwork.with { other in
                try await one.cut(.wan0)
                #expect(try await other.host.link("wan0").hasCarrier)
                #expect(try await !one.host.link("wan0").hasCarrier)
            }
        }
    }

    @Test func `a failed command tells its words, its status and its complaint`() async throws {
        try await LabNetwork.with { lab in
            await #expect { try await lab.host.ip("link set nosuch up") } throws: { error in
                "\(error)" == "`ip link set nosuch up` ended with status 1: Cannot find device \"nosuch\""
            }
        }
    }
}
