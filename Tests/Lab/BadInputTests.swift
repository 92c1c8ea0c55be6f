// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// What a client does wrong is told to that client, and costs no other one anything.
@Suite(.lab)
struct BadInputTests {
    /// A daemon, and a subscriber that must go on getting its events.
    private struct Fixture {
        let machine: Namespace
        let home: DaemonHome
        let daemon: LabProcess
        let bystander: EventRecorder

        static func start() async throws -> Fixture {
            let (machine, home) = (try await Namespace.island(), try DaemonHome())
            let daemon = try await home.start(on: machine)
            return Fixture(machine: machine, home: home, daemon: daemon, bystander: try await home.recorder())
        }

        /// The daemon lives, answers new clients, and the subscriber hears of what they do.
        func expectNobodyElseNoticed(sourceLocation: SourceLocation = #_sourceLocation) async throws {
            let name = try await home.client.open(.init(remote: "tcp://192.0.2.1:1"))
            _ = try await bystander.event("\(name) to be opened") { $0.kind == .opened && $0.connection.name == name }
            try await home.client.close(name)
            try await bystander.state(.closed, of: name)
            #expect(bystander.disorder == nil, sourceLocation: sourceLocation)
            #expect(daemon.isRunning, sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [("not JSON", "is not JSON"), ("{}", "is not a call")])
    func `a message that is not Varlink ends its connection`(message: String, reason: String) async throws {
        let fixture = try await Fixture.start()
        let path = fixture.home.socket
        let rest = try await fixture.machine.run {
            let client = try UnixClient.connected(to: path)
            try client.send(message + "\0")
            return try client.receiveAll()
        }
        #expect(rest.isEmpty, "who spoke another language is not answered")
        let line = try await fixture.daemon.line(containing: "a client was turned away")
        #expect(line.text.contains(reason), "\(line.text)")
        try await fixture.expectNobodyElseNoticed()
    }

    @Test(arguments: [
        #"{"method":"org.dialtone.Connections.Op"#,
        #"{"method":"org.dialtone.Connections.Monitor","more":true}"# + "\0",
        #"{"method":"org.dialtone.Network.GetPath","parameters":{"target":{"host":"dialtone.invalid"}}}"# + "\0",
        "",
    ])
    func `a client that vanishes in the middle leaves nothing behind`(message: String) async throws {
        let fixture = try await Fixture.start()
        let descriptors = "/proc/\(fixture.daemon.processID)/fd"
        let before = try FileManager.default.contentsOfDirectory(atPath: descriptors).count
        let path = fixture.home.socket
        for _ in 1...20 {
            try await fixture.machine.run { try UnixClient.connected(to: path).send(message) }
        }
        try await fixture.expectNobodyElseNoticed()
        // Looking up a name may hold a socket of the resolver's for a while.
        let after = try FileManager.default.contentsOfDirectory(atPath: descriptors).count
        #expect(after < before + 10)
    }

    @Test func `a name that nobody can resolve is a path without an address, and a connection that waits`() async throws
    {
        let machine = try await Namespace.island()
        try await machine.landBridge()
        let home = try DaemonHome()
        // A name server that the kernel refuses to ask, at once. The mount is seen by this machine alone.
        try await machine.ip("route add prohibit 203.0.113.53")
        try Data("nameserver 203.0.113.53\n".utf8).write(to: URL(filePath: "\(home.directory)/resolv.conf"))
        try await machine.command(["mount", "--bind", "\(home.directory)/resolv.conf", "/etc/resolv.conf"])
        _ = try await home.start(on: machine)
        let path = try await home.client.path(to: .init(host: "dialtone.example", port: 5060))
        #expect(path.status == .unsatisfied)
        #expect(path.reason == .nameUnresolved)
        // The daemon knows that no name server can be reached: it waits for one, instead of asking again and again.
        let name = try await home.client.open(.init(remote: "tcp://dialtone.example:5060"))
        let waiting = try await home.recorder().connection(name, in: .waiting)
        #expect(waiting.nextAttemptAt == nil)
        let check = try await home.dialtone("check", "dialtone.example:5060", on: machine)
        #expect(check.exit == .status(1), "\(check)")
        #expect(check.output == "Not reachable: the name is not found, or no name server answers.")
    }
}
