// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneResolver
import DialtoneTestSupport
import Dispatch
import Foundation
import Reachability
import Testing

/// Names on a real network: the name server is on the Lab's server, behind the router.
@Suite(.lab)
struct NameStories {
    private static let name = "sip.lab.example"
    private static let server = IPAddress(LabNetwork.serverAddress(.v4))
    private static let serverV6 = IPAddress(LabNetwork.serverAddress(.v6))

    /// Answers with the server's own addresses.
    private static let usual: @Sendable (NameServerStub.Question) -> NameServerStub.Reply = { question in
        guard let v4 = server, let v6 = serverV6 else { return .silence }
        return .addresses([question.isForV4 ? v4 : v6], ttl: 600)
    }

    @Test func `the hosts file, and then the name servers again, say where a name is`() async throws {
        try await NameFixture.run(answering: Self.usual) { fixture in
            let paths = fixture.watch(Self.name)
            let first = try await paths.next("the server's address") { $0.destination == Self.serverV6 }
            try fixture.write("192.0.2.1 \(Self.name)\n", to: "hosts")
            let path = try await paths.next("the pinned address") { $0.destination?.family == .v4 }
            #expect(path.destination?.description == "192.0.2.1" && path.generation > first.generation)
            try fixture.write("", to: "hosts")
            _ = try await paths.next("the server's address again") { $0.destination == Self.serverV6 }
        }
    }

    @Test func `other name servers are told as a change of dns, and asked for the name`() async throws {
        try await NameFixture.run(answering: Self.usual) { fixture in
            let paths = fixture.watch(Self.name)
            let first = try await paths.next("the server's address") { $0.destination == Self.serverV6 }
            // The answer to one question may be there before the other one is.
            try await fixture.asked(2)
            #expect(fixture.stub.asked.count == 2)
            // Another one beside it, which nobody can tell from the first by a verdict.
            try fixture.write("nameserver \(LabNetwork.serverAddress(.v4))\nnameserver 192.0.2.1\n", to: "resolv.conf")
            let report = try await paths.nextReport("the second server")
            #expect(report.changes == [.dns])
            #expect(report.path.supportsDNS && report.path.nameServers.count == 2)
            // The kernel said nothing; it is a change all the same.
            #expect(report.path.generation > first.generation)
            try await fixture.asked(4)

            try fixture.write("", to: "resolv.conf")
            let end = try await paths.nextReport("no server")
            #expect(end.changes == [.dns])
            #expect(!end.path.supportsDNS && end.path.generation > report.path.generation)
        }
    }

    /// The name server and the host are in this network; no first word of "no route" comes before the name's addresses.
    @Test func `a name is waited for where its server can be asked, though nothing leads to the Internet`()
        async throws
    {
        try await NameFixture.run(answering: { question in
            question.name == Self.name ? Self.usual(question) : .code(3)
        }) { fixture in
            for uplink in Uplink.allCases { try await fixture.lab.removeDefaultRoute(via: uplink) }
            for family in Family.allCases {
                let network = "\(LabNetwork.serverAddress(family))/\(family == .v4 ? 32 : 128)"
                try await fixture.lab.host.ip("route add \(network) via \(Uplink.wan0.gateway(family))")
            }
            let network = fixture.watchNetwork()
            _ = try await network.next("no way to the Internet") { $0.reason == .noRoute }
            let paths = fixture.watch(Self.name)
            let path = try await paths.nextReport("the first path").path
            #expect(path.status == .satisfied && path.destination == Self.serverV6, "\(path)")
            // Another network would not help this one.
            let gone = try await fixture.watch("gone.lab.example").nextReport("the first path").path
            #expect(gone.reason == .nameUnresolved, "\(gone)")
        }
    }

    @Test func `a name that nobody can be asked for is not waited for`() async throws {
        try await NameFixture.run(answering: { _ in .silence }) { fixture in
            for uplink in Uplink.allCases { try await fixture.lab.removeDefaultRoute(via: uplink) }
            let network = fixture.watchNetwork()
            _ = try await network.next("no way to the Internet") { $0.reason == .noRoute }
            let path = try await fixture.watch(Self.name).nextReport("the first path").path
            #expect(path.reason == .noRoute && fixture.stub.questions.isEmpty, "\(path)")
        }
    }

    @Test func `a resolver that is routed but dead is found out by the first question, and its return by the next`()
        async throws
    {
        try await NameFixture.run(answering: Self.usual) { fixture in
            let paths = fixture.watchNetwork()
            let first = try await paths.next("the present path") { $0.supportsDNS }
            fixture.stub.stop()
            await fixture.resolve("other.lab.example")
            let path = try await paths.next("the dead server") { !$0.supportsDNS }
            #expect(path.changes(from: first) == [.dns])

            // Nobody asks now; the engine asks again by itself.
            let port = fixture.stub.port
            let again = try await fixture.lab.server.run {
                NameServerStub(LabNetwork.serverAddress(.v4), port: port, reply: Self.usual)
            }
            _ = try await paths.next("the server's return") { $0.supportsDNS }
            #expect(again.asked.map(\.name) == ["other.lab.example"])
        }
    }

    @Test func `a resolver that is silent is presumed alive again over another way`() async throws {
        try await NameFixture.run(answering: { _ in .silence }) { fixture in
            let paths = fixture.watchNetwork()
            _ = try await paths.next("the present path") { $0.supportsDNS }
            await fixture.resolve("other.lab.example")
            _ = try await paths.next("the silent server") { !$0.supportsDNS }
            try await fixture.lab.preferDefaultRoute(via: .wan1)
            let path = try await paths.next("another way") { $0.supportsDNS }
            #expect(path.interface?.name == "wan1")
        }
    }

    @Test func `kernel.md 21: a resume has everything asked for anew, and a step of the wall clock nothing`()
        async throws
    {
        try await NameFixture.run(answering: Self.usual) { fixture in
            let paths = fixture.watch(Self.name)
            _ = try await paths.next("the server's address") { $0.destination == Self.serverV6 }
            let told = Lock<[Duration]>([])
            let engine = fixture.engine
            await engine.onResume { slept in told.withLock { $0.append(slept) } }
            try await fixture.asked(2)
            let count = paths.count

            // What a step of the wall clock leads to: a look at the clocks, which agree.
            await fixture.pass(.seconds(3600), asleep: .zero)
            await fixture.pass(.seconds(3600), asleep: .seconds(3000))
            // Two questions more, not four: the step brought none.
            try await fixture.asked(4)
            #expect(told.withLock { $0 } == [.seconds(3000)])
            _ = await fixture.resolve("other.lab.example")
            #expect(fixture.stub.questions.count == 6)
            #expect(paths.count == count)
        }
    }
}

/// A host whose names come from a name server on the Lab's server, and the library's engine on it.
private final class NameFixture: Sendable {
    let lab: LabNetwork
    let stub: NameServerStub
    let engine: NetworkState
    private let directory = TemporaryDirectory()
    private let resumes: ResumeWatch
    private let clocks: Clocks
    private let changes: ChangeSignal

    @AgentQueue
    private final class Clocks {
        var boot = Duration.seconds(1000)
        var asleep = Duration.zero
    }

    static func run(
        answering reply: @escaping @Sendable (NameServerStub.Question) -> NameServerStub.Reply,
        _ body: (NameFixture) async throws -> Void
    ) async throws {
        try await LabNetwork.withThisProcessAsHost { lab in
            let fixture = try await NameFixture(lab, reply)
            try await body(fixture)
            fixture.stub.stop()
        }
    }

    private init(
        _ lab: LabNetwork, _ reply: @escaping @Sendable (NameServerStub.Question) -> NameServerStub.Reply
    ) async throws {
        self.lab = lab
        let changes = ChangeSignal()
        self.changes = changes
        let stub = try await lab.server.run {
            NameServerStub(LabNetwork.serverAddress(.v4)) { question in
                defer { changes.notify() }
                return reply(question)
            }
        }
        self.stub = stub
        try directory.write("nameserver \(LabNetwork.serverAddress(.v4))\n", to: "resolv.conf")
        let files = NameFiles(
            resolvConf: "\(directory.path)/resolv.conf", hosts: "\(directory.path)/hosts",
            nsswitch: "\(directory.path)/nsswitch")
        let clocks = Clocks()
        self.clocks = clocks
        let resumes = await ResumeWatch {
            .init(before: clocks.boot - clocks.asleep, boot: clocks.boot, after: clocks.boot - clocks.asleep)
        }
        self.resumes = resumes
        let sockets = try await lab.host.run { try KernelSockets() }
        engine = await NetworkState(sockets, nameFiles: files, nameServerPort: stub.port, resumes: resumes)
    }

    func write(_ text: String, to file: String) throws {
        try directory.write(text, to: file, atomically: true)
    }

    /// Watches the path to a name.
    func watch(_ name: String) -> PathRecorder {
        PathRecorder(Target(.name(name)), by: engine, hearsDNS: true)
    }

    /// Watches the network's path.
    func watchNetwork() -> PathRecorder {
        PathRecorder(network: .any, by: engine)
    }

    /// Resolves a name by the engine's resolver, whatever comes of it.
    @discardableResult
    func resolve(_ name: String) async -> Bool {
        await withCheckedContinuation { continuation in
            AgentQueue.async { [engine] in
                _ = engine.resolver.resolve(name) { result in
                    continuation.resume(returning: (try? result.get()) != nil)
                }
            }
        }
    }

    /// Waits until the name server was asked this many questions.
    func asked(_ count: Int) async throws {
        try await changes.wait(for: "\(count) questions", describe: { "\(self.stub.questions)" }) {
            stub.questions.count >= count ? () : nil
        }
    }

    /// Lets time pass on the clocks of the watch for resumes, some of it asleep, and has it look at them.
    @AgentQueue
    func pass(_ time: Duration, asleep: Duration) {
        clocks.boot += time
        clocks.asleep += asleep
        resumes.check()
    }
}
