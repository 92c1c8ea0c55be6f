// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

struct PacketOwnerTests {
    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `root gives a connection's packets to its owner`() {
        #expect(PacketOwner.user(for: Client.nobodysNumber) == Client.nobodysNumber)
        #expect(PacketOwner.user(for: 0) == nil)
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `a daemon without privileges keeps the packets, and serves other users all the same`() async {
        await #expect(processExitsWith: .success) {
            try #require(seteuid(Client.nobodysNumber) == 0)
            #expect(PacketOwner.user(for: 4711) == nil)
            let policy = try ConnectionPolicy(.init(remote: "tcp://192.0.2.7:1"), user: Client.nobodysNumber)
            #expect(policy.user == nil)
        }
    }

    @Test func `files of TLS are for root and the daemon's own user alone`() throws {
        let files = [
            ConnectionsAPI.TLS(ca: "/ca.pem"),
            ConnectionsAPI.TLS(certificate: "/own.pem", key: "/key.pem", passwordFile: "/password"),
        ]
        for tls in files {
            let parameters = ConnectionsAPI.Open.Parameters(remote: "tls://192.0.2.7:1", settings: .init(tls: tls))
            for user in [0, geteuid()] {
                let policy = try ConnectionPolicy(parameters, user: user).tls
                #expect(policy.authorities == tls.ca)
                #expect(policy.identity?.certificate == tls.certificate)
                #expect(policy.identity?.key == tls.key)
                #expect(policy.identity?.passwordFile == tls.passwordFile)
            }
            #expect {
                try ConnectionPolicy(parameters, user: geteuid() + 1)
            } throws: { error in
                "\(error)".contains("can be named in the configuration alone")
            }
        }
        let harmless = ConnectionsAPI.TLS(
            pins: ["d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="], verify: false, minVersion: "1.3",
            serverName: "office.example.com", alpn: ["sip/2"])
        let policy = try ConnectionPolicy(
            .init(remote: "tls://192.0.2.7:1", settings: .init(tls: harmless)), user: geteuid() + 1
        ).tls
        #expect(policy.pins.map(\.digest) == harmless.pins)
        #expect(!policy.verifiesCertificate)
        #expect(policy.minimumVersion == .v13)
        #expect(policy.serverName == "office.example.com")
        #expect(policy.applicationProtocols == ["sip/2"])
    }

    @Test func `a mark is for root and the daemon's own user alone`() throws {
        let parameters = ConnectionsAPI.Open.Parameters(remote: "tcp://192.0.2.7:1", settings: .init(mark: 7))
        #expect(try ConnectionPolicy(parameters, user: 0).mark == 7)
        #expect(try ConnectionPolicy(parameters, user: geteuid()).mark == 7)
        #expect(throws: VarlinkFailure(ServiceAPI.PermissionDenied())) {
            try ConnectionPolicy(parameters, user: geteuid() + 1)
        }
    }
}
