// SPDX-License-Identifier: Apache-2.0

import DialtoneConfiguration
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtoneAgent

@Suite struct NetworkBoundaryTests {
    @Test(
        arguments: [
            (true, false, false), (nil, false, false), (false, false, true), (false, true, false), (true, true, false),
        ] as [(Bool?, Bool, Bool)])
    func `who is elsewhere is refused unless admitted`(isInSameNetwork: Bool?, isAdmitted: Bool, isRefused: Bool) async
    {
        let reason = await onQueue { () -> String? in
            let boundary = NetworkBoundary()
            if isAdmitted { boundary.admitted = [1000] }
            var peer = VarlinkPeer(uid: 1000, gid: 1000, pid: 1)
            peer.isInSameNetwork = isInSameNetwork
            return boundary.refusal(of: peer)
        }
        #expect((reason != nil) == isRefused, "\(reason ?? "admitted")")
        if let reason { #expect(reason.contains(#"other_namespaces = ["1000"]"#), "\(reason)") }
    }

    @Test(arguments: [false, true])
    func `the users of containers are refused unless admitted`(isAdmitted: Bool) async {
        let reasons = await onQueue { () -> [String?] in
            let boundary = NetworkBoundary()
            boundary.subordinates = SubordinateUsers("anna:100000:65536\n")
            if isAdmitted { boundary.admitted = [100_999] }
            return [100_999, 1000].map { boundary.refusal(of: VarlinkPeer(uid: $0, gid: 1000, pid: 1)) }
        }
        #expect((reasons[0] == nil) == isAdmitted, "\(reasons)")
        if let reason = reasons[0] {
            #expect(reason.contains("anna's") && reason.contains(#"other_namespaces = ["100999"]"#), "\(reason)")
        }
        #expect(reasons[1] == nil, "\(reasons)")
    }

    @Test func `all of a range are one account`() {
        let users = SubordinateUsers(
            "anna:100000:65536\n1001:165536:65536\nroot:0:1000\n\nx:1\ny:-1:2\nz:4294967295:9\n")
        #expect([100_000, 100_001, 165_535].map(users.account) == [100_000, 100_000, 100_000])
        #expect([165_536, 231_071].map(users.account) == [165_536, 165_536])
        let others: [UInt32] = [0, 1, 999, 1000, 99_999, 231_072, .max]
        #expect(others.map(users.account) == others)
        #expect([100_000, 165_536, 0, 1000].map(users.owner) == ["anna", "1001", nil, nil])
    }

    @Test func `a number of an account is nobody's subordinate`() {
        // The first line is of LXD's guides.
        let users = SubordinateUsers("root:1000:1\nmia:1001:1\nmia:99990:20\n")
        let accounts: [UInt32] = [0, 1000, 1001, 99_995, 100_010, 165_000]
        #expect(accounts.map(users.account) == accounts)
        #expect(accounts.map(users.owner).allSatisfy { $0 == nil })
        #expect(users.account(of: 100_009) == 100_000 && users.owner(of: 100_009) == "mia")
    }

    @Test func `root is no exception and numbers and names are read`() throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[clients]\nother_namespaces = [\"0\", \"kiosk\", \"1002\"]\n"
        ])
        #expect(try fixture.load().configuration.clients.otherNamespaces == [0, 1001, 1002])
        try fixture.write("[clients]\nother_namespaces = [\"nobody-here\"]\n")
        #expect(fixture.errors().contains { $0.contains("there is no user \"nobody-here\"") }, "\(fixture.errors())")
    }
}
