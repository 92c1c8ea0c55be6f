// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneResolver

/// Which source a name's addresses come from.
@AgentQueue
@Suite(.timeLimit(.minutes(2)))
struct SourcesTests {
    private let pinned = IPAddress(v4: 0xC000_0209)

    @Test(arguments: ["localhost", "LocalHost", "localhost.", "phone.localhost"])
    func `localhost is the loopback and no server is asked for it`(name: String) async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server) { resolver, configuration in
            for order in ["", "hosts: dns\n"] {
                configuration.writeNsswitch(order)
                let answer = try await resolver.resolve(name).get()
                #expect(answer.addresses.map(\.description) == ["::1", "127.0.0.1"])
                #expect(answer.source == .definition)
                #expect(answer.expires == nil)
            }
            #expect(server.questions.isEmpty)
        }
    }

    @Test(arguments: ["pbx.example.com", "PBX.example.com", "pbx.example.com."])
    func `the hosts file is authoritative for both families`(name: String) async throws {
        let server = NameServerStub { _ in .addresses([v6], ttl: 60) }
        try await withResolver(asking: server) { resolver, configuration in
            configuration.writeHosts("192.0.2.9 pbx.example.com\n")
            resolver.onEvidence = { evidence, _ in Issue.record("the file's word shows \(evidence) of the servers") }
            let answer = try await resolver.resolve(name).get()
            #expect(answer.addresses == [pinned])
            #expect(answer.source == .hostsFile)
            #expect(answer.expires == nil)
            expect(await resolver.resolve(name, [.v6]).error?.kind, is: .noRecord)
            #expect(server.questions.isEmpty)
        }
    }

    @Test func `the hosts file is read as it is at the question`() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server) { resolver, configuration in
            expect(await resolver.resolve("pbx.example.com", [.v4]).addresses, is: [v4])
            #expect(!resolver.isInHostsFile("pbx.example.com"))
            configuration.writeHosts("192.0.2.9 pbx.example.com\n")
            #expect(resolver.isInHostsFile("pbx.example.com"))
            expect(await resolver.resolve("pbx.example.com", [.v4]).addresses, is: [pinned])
            configuration.writeHosts("\n")
            expect(await resolver.resolve("pbx.example.com", [.v4]).addresses, is: [v4])
        }
    }

    @Test func `nsswitch says which source is asked first`() async throws {
        let server = NameServerStub { $0.name == "both.example.com" ? .addresses([v4], ttl: 60) : .code(3) }
        try await withResolver(asking: server) { resolver, configuration in
            configuration.writeHosts("192.0.2.9 both.example.com file.example.com\n")
            configuration.writeNsswitch("passwd: files\nhosts: dns files\n")
            expect(await resolver.resolve("both.example.com", [.v4]).addresses, is: [v4])
            expect(await resolver.resolve("file.example.com", [.v4]).addresses, is: [pinned])
            #expect(!resolver.isInHostsFile("both.example.com"))

            configuration.writeNsswitch("hosts: files\n")
            expect(await resolver.resolve("both.example.com", [.v4]).addresses, is: [pinned])
            let asked = server.questions.count
            expect(await resolver.resolve("other.example.com", [.v4]).error?.kind, is: .noSuchName)
            #expect(server.questions.count == asked)

            configuration.writeNsswitch("hosts: dns\n")
            expect(await resolver.resolve("file.example.com", [.v4]).error?.kind, is: .noSuchName)
        }
    }

    @Test(arguments: [
        ("", [NameOrder.Source.hostsFile, .nameServers]),
        ("# hosts: dns\npasswd: dns\n", [.hostsFile, .nameServers]),
        ("hosts: files dns", [.hostsFile, .nameServers]),
        ("hosts:\tdns files # as ever", [.nameServers, .hostsFile]),
        ("hosts: dns # files", [.nameServers]),
        ("hosts: files mdns4_minimal [NOTFOUND=return] dns mymachines", [.hostsFile, .nameServers]),
        ("hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns", [.hostsFile, .nameServers]),
        ("hosts: mymachines myhostname", [.hostsFile, .nameServers]),
    ])
    func `the order of a configuration`(text: String, sources: [NameOrder.Source]) {
        #expect(NameOrder(inConfiguration: text).sources == sources)
    }

    @Test(arguments: [
        ("192.0.2.9 a", ["192.0.2.9"]), ("192.0.2.9\ta b\n2001:db8::9 b a\n", ["2001:db8::9", "192.0.2.9"]),
        ("192.0.2.9 b A", ["192.0.2.9"]), ("  192.0.2.9 a\r\n", ["192.0.2.9"]),
        ("192.0.2.9 a\n192.0.2.9 a\n192.0.2.10 a#c", ["192.0.2.9", "192.0.2.10"]),
        ("192.0.2.9 ab ba a.b a-b #a\n# 192.0.2.9 a\n192.0.2.9 b # a\n", []), ("a 192.0.2.9\nx a\n\na\n a", []),
        ("fe80::9%eth0 a", ["fe80::9"]), ("", []),
    ])
    func `the addresses beside a name in a hosts file`(text: String, addresses: [String]) {
        let found = HostsFile(Array(text.utf8)).addresses(of: "a")
        #expect([.v6, .v4].flatMap { found?[$0] ?? [] }.map(\.description) == addresses)
        #expect((found == nil) == addresses.isEmpty)
    }
}
