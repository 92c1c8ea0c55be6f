// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtonePrivilegedLauncher

/// A launcher that serves on a socket of the test's, with root's configuration as the test says, and the daemon's end.
@AgentQueue
final class LauncherFixture {
    let launcher: Launcher
    let client: LauncherClient
    private let service = VarlinkService(vendor: "", product: "", version: "", url: "")
    private var server: VarlinkServer
    private let place = TemporaryDirectory()
    private var directory: String { place.path }
    private(set) var ends: [ProgramEnd] = []
    private(set) var programs: [ProcessHandle] = []

    init(_ connections: [ConnectionSettings]) throws {
        var configuration = Configuration()
        configuration.connections = connections
        let loaded = configuration
        launcher = Launcher(
            Activator(bus: "unix:path=/nowhere"), socketPath: "\(place.path)/agent", Logger(label: "test"),
            load: { _ throws(ConfigurationError) in loaded }, onIdle: {})
        launcher.register(in: service)
        server = VarlinkServer(service)
        try server.listen(at: "\(place.path)/socket", mode: 0o600)
        client = LauncherClient(path: "\(place.path)/socket")
    }

    isolated deinit { server.close() }

    /// Its caller is gone, and the next one may come.
    func hangUp() throws {
        server.close()
        server = VarlinkServer(service)
        try server.listen(at: "\(directory)/socket", mode: 0o600)
    }

    /// Has a program launched by a daemon that is gone before it asks for its end.
    func launch(_ connection: String, epoch: Int, socket: CInt? = nil) async throws -> ProcessHandle {
        let daemon = try VarlinkConnection.connect(to: "\(directory)/socket")
        defer { daemon.close() }
        let descriptors = VarlinkDescriptors()
        let place = socket.map { descriptors.append(OwnedDescriptor(fcntl($0, F_DUPFD_CLOEXEC, 0))) }
        let parameters = LauncherAPI.Wake.Parameters(
            connection: connection, owner: Int(geteuid()), means: WakeMeans.exec.rawValue, wake: 41, attempt: 1,
            reasons: [], epoch: epoch, process: nil, fileDescriptor: place)
        let result: Result<VarlinkAnswer<LauncherAPI.Wake>, VarlinkCallError> =
            try await answer("the launcher's answer") { done in
                daemon.callWithDescriptors(LauncherAPI.Wake.self, parameters, descriptors, done)
            }
        let reply = try result.get()
        guard let place = reply.reply.process, let descriptor = reply.descriptors.take(place) else {
            throw NothingCame(description: "no program came")
        }
        return try ProcessHandle(descriptor)
    }

    func note(_ end: ProgramEnd) { ends.append(end) }

    /// Where the agent would serve.
    var agentPath: String { "\(directory)/agent" }

    /// This process, as one that connected to a socket of this name: the agent's, if nothing else is said.
    func visitor(of name: String = "agent") throws -> ProcessHandle {
        let listener = OwnedDescriptor(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let client = OwnedDescriptor(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory)/\(name)".utf8) }
        let numbers = (listener.number, client.number)
        let accepted = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> CInt in
                let length = socklen_t(MemoryLayout<sockaddr_un>.size)
                guard bind(numbers.0, address, length) == 0, listen(numbers.0, 1) == 0,
                    connect(numbers.1, address, length) == 0
                else { return -1 }
                return accept(numbers.0, nil, nil)
            }
        }
        try #require(accepted >= 0)
        return try ProcessHandle(connectedBy: OwnedDescriptor(accepted))
    }

    /// A socket with the name `own` that connected to the socket of another name, whose process counts as its peer.
    func connector(from own: String, to service: String) throws -> ProcessHandle {
        let listener = OwnedDescriptor(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let client = OwnedDescriptor(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        func named<Value>(_ name: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory)/\(name)".utf8) }
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        unlink("\(directory)/\(own)")
        let numbers = (listener.number, client.number)
        try #require(named(service) { bind(numbers.0, $0, $1) } == 0 && listen(numbers.0, 1) == 0)
        try #require(named(own) { bind(numbers.1, $0, $1) } == 0)
        try #require(named(service) { connect(numbers.1, $0, $1) } == 0)
        return try ProcessHandle(connectedBy: client)
    }

    /// What is known of an attempt, in words.
    func find(_ connection: String, of owner: UInt32 = geteuid(), attempt: Int = 1) async throws -> String {
        let order = WakeOrder(
            WakeAttempt(wake: 41, attempt: attempt, means: .exec, reasons: []), WakeTargets(),
            connection: connection, owner: owner, epoch: 0, socketPath: "/elsewhere")
        return try await answer("the launcher's answer") { completion in
            client.find(order, ended: { [weak self] in self?.ends.append($0) }) { completion(self.word(for: $0)) }
        }
    }

    private func word(for outcome: Activator.Outcome) -> String {
        switch outcome {
        case .done: return "done"
        case .launched(let process):
            programs.append(process)
            return process.number > 1 ? "launched" : "launched nothing"
        case .failed(let reason): return reason
        }
    }

    /// What came of an attempt, in words.
    func wake(
        _ connection: String, of owner: UInt32 = geteuid(), by means: WakeMeans, process: ProcessHandle? = nil,
        socket: CInt? = nil
    ) async throws -> String {
        // The daemon's own idea of the targets counts for nothing.
        let order = WakeOrder(
            WakeAttempt(wake: 41, attempt: 1, means: means, reasons: [.data, .reconnected]), WakeTargets(),
            connection: connection, owner: owner, epoch: 3, socketPath: "/elsewhere")
        return try await answer("the launcher's answer") { completion in
            client.perform(order, process: process, socket: socket, ended: { [weak self] in self?.ends.append($0) }) {
                completion(self.word(for: $0))
            }
        }
    }
}

private func connection(
    _ name: String, of owner: UInt32 = geteuid(), _ change: (inout WakeSettings) -> Void
) -> ConnectionSettings {
    var settings = ConnectionSettings(name: name, remote: "tcp://192.0.2.7:1")
    settings.owner = owner
    var wake = WakeSettings()
    change(&wake)
    settings.wake = wake
    return settings
}

private func script(_ text: String) -> (inout WakeSettings) -> Void {
    { wake in
        wake.command = ["/bin/sh", "-c", text]
        wake.identity = thisUser
    }
}

/// The launcher.
@Suite @AgentQueue
struct LauncherTests {
    @Test func `it launches what root wrote down, with the socket that the daemon gave, and tells its end`()
        async throws
    {
        let text = "echo $DIALTONE_NAME $DIALTONE_EPOCH $DIALTONE_WAKE $DIALTONE_REASON $DIALTONE_SOCKET >&3; exit 5"
        let fixture = try LauncherFixture([connection("office", script(text))])
        let ends = socketPair()
        defer { for end in [ends.0, ends.1] { close(end) } }
        expect(try await fixture.wake("office", by: .exec, socket: ends.0), is: "launched")
        try await eventually("its end is told") { fixture.ends == [.exited(status: 5)] }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = recv(ends.1, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        #expect(
            String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
                == "office 3 41 data,reconnected \(fixture.agentPath)\n", "the socket's path is root's word, too")
    }

    @Test func `it does nothing that root has not written down`() async throws {
        let fixture = try LauncherFixture([
            connection("office") { $0.signal = SIGCONT }, connection("van", script("exit 0")),
        ])
        expect(try await fixture.wake("office", by: .exec), is: "root's configuration names no exec for office")
        expect(try await fixture.wake("van", by: .signal), is: "root's configuration names no signal for van")
        expect(try await fixture.wake("door", by: .exec), is: "root's configuration names no exec for door")
        expect(try await fixture.wake("office", by: .event)) { $0.contains("InvalidParameter") }
    }

    @Test func `one program at a time runs for a connection`() async throws {
        let fixture = try LauncherFixture([
            connection("office", script("read line <&3")), connection("van", script("exit 0")),
        ])
        let ends = socketPair()
        expect(try await fixture.wake("office", by: .exec, socket: ends.0), is: "launched")
        expect(try await fixture.wake("office", by: .exec), is: "the program that was launched before still runs")
        expect(try await fixture.wake("van", by: .exec), is: "launched", "another connection's")
        for end in [ends.0, ends.1] { close(end) }
        try await eventually("both have ended") { fixture.ends.count == 2 }
        expect(try await fixture.wake("office", by: .exec), is: "launched")
    }

    @Test func `a program that is being launched is one that runs`() async throws {
        let fixture = try LauncherFixture([connection("office", script("exec sleep 1000"))])
        async let first = fixture.wake("office", by: .exec)
        async let second = fixture.wake("office", by: .exec)
        let answers = try await [first, second]
        #expect(answers == ["launched", "launched"])
        #expect(Set(fixture.programs.map(\.number)).count == 1, "the same one")
        try fixture.programs.first?.signal(SIGKILL)
    }

    @Test func `a program that nobody heard of is told to who asks next, for the same flow`() async throws {
        let fixture = try LauncherFixture([connection("office", script("exec sleep 1000"))])
        let program = try await fixture.launch("office", epoch: 3)
        expect(try await fixture.wake("office", by: .exec), is: "launched")
        #expect(fixture.programs.map(\.number) == [program.number])
        expect(try await fixture.wake("office", by: .exec), is: "the program that was launched before still runs")
        try program.signal(SIGKILL)
        try await eventually("its end is told") { fixture.ends == [.killed(signal: SIGKILL)] }
        let other = try await fixture.launch("office", epoch: 2)
        expect(try await fixture.wake("office", by: .exec), is: "the program that was launched before still runs")
        try other.signal(SIGKILL)
    }

    @Test func `a program that nobody heard of is found by its attempt, and by nothing else`() async throws {
        let fixture = try LauncherFixture([connection("office", script("exec sleep 1000"))])
        let none = "the launcher knows of no program"
        expect(try await fixture.find("office"), is: none)
        let program = try await fixture.launch("office", epoch: 3)
        expect(try await fixture.find("office", attempt: 2), is: none)
        expect(try await fixture.find("office", of: 4711), is: none)
        expect(try await fixture.find("van"), is: none)
        #expect(fixture.programs.isEmpty)
        expect(try await fixture.find("office"), is: "launched")
        #expect(fixture.programs.map(\.number) == [program.number])
        try program.signal(SIGKILL)
        try await eventually("its end is told") { fixture.ends == [.killed(signal: SIGKILL)] }
        expect(try await fixture.find("office"), is: none, "its end was told")
    }

    @Test func `a program that is being launched is found when it runs`() async throws {
        let fixture = try LauncherFixture([connection("office", script("exec sleep 1000"))])
        async let launched = fixture.wake("office", by: .exec)
        async let found = fixture.find("office")
        let answers = try await [launched, found]
        #expect(answers == ["launched", "launched"])
        #expect(Set(fixture.programs.map(\.number)).count == 1, "the same one")
        try fixture.programs.first?.signal(SIGKILL)
    }

    @Test func `a program that ended before anybody heard of it is found with how it ended`() async throws {
        let fixture = try LauncherFixture([connection("office", script("read line <&3; exit 7"))])
        let ends = socketPair()
        _ = try await fixture.launch("office", epoch: 3, socket: ends.0)
        for end in [ends.0, ends.1] { close(end) }
        try await eventually("it has ended") { fixture.launcher.isIdle }
        expect(try await fixture.find("office"), is: "launched")
        try await eventually("its end is told") { fixture.ends == [.exited(status: 7)] }
    }

    @Test func `a program's end is told to the daemon's next process, as far as it is known`()
        async throws
    {
        let fixture = try LauncherFixture([connection("office", script("exec sleep 1000"))])
        let program = try await fixture.launch("office", epoch: 3)
        fixture.client.follow(program) { [weak fixture] in fixture?.note($0) }
        try program.signal(SIGTERM)
        try await eventually("its end is told") { fixture.ends == [.killed(signal: SIGTERM)] }
        // One that it did not launch: nobody knows how that ends.
        let sleeper = try Sleeper()
        let stranger = try ProcessHandle(sleeper.process)
        fixture.client.follow(stranger) { [weak fixture] in fixture?.note($0) }
        sleeper.end()
        try await eventually("its end is told") { fixture.ends.last == .unseen }
    }

    @Test func `a program is not launched again and again without a pause`() async throws {
        let fixture = try LauncherFixture([connection("office", script("exit 0"))])
        let began = BootClock.now()
        for count in 1...31 {
            expect(try await fixture.wake("office", by: .exec), is: "launched")
            try await eventually("it has ended") { fixture.ends.count == count }
        }
        // Thirty at once, and the next one when two seconds have earned it.
        expect(BootClock.now() - began) { $0 >= .seconds(2) }
    }

    @Test func `another user's connection of a configured name is not the configured one`() async throws {
        let fixture = try LauncherFixture([connection("office") { $0.signal = SIGUSR1 }])
        let box = try Sleeping()
        let refusal = "root's configuration gives office to user \(geteuid())"
        expect(try await fixture.wake("office", of: 4711, by: .signal, process: box.process), is: refusal)
        #expect(box.process.isAlive)
    }

    @Test func `it signals a process of the owner's that connected to the agent`() async throws {
        // Without effect on a process that says nothing of it: this one.
        let fixture = try LauncherFixture([
            connection("office") { $0.signal = SIGWINCH }, connection("others", of: 4711) { $0.signal = SIGWINCH },
        ])
        let visitor = try fixture.visitor()
        #expect(visitor.number == getpid())
        expect(try await fixture.wake("others", of: 4711, by: .signal, process: visitor)) {
            $0.contains("another user's")
        }
        expect(try await fixture.wake("office", by: .signal, process: visitor), is: "done")
        // The connection may have ended since.
        visitor.hangUp()
        expect(try await fixture.wake("office", by: .signal, process: visitor), is: "done")
    }

    @Test func `a process that never connected to the agent is not signalled, whatever the agent says`() async throws {
        let fixture = try LauncherFixture([connection("office") { $0.signal = SIGUSR1 }])
        let box = try Sleeping()
        let refusal = "nothing shows that the process took the connection from the agent"
        expect(try await fixture.wake("office", by: .signal, process: box.process), is: refusal)
        // Nor by a socket of the agent's own making.
        let ends = socketPair()
        defer { close(ends.1) }
        let pair = try ProcessHandle(connectedBy: OwnedDescriptor(ends.0))
        expect(try await fixture.wake("office", by: .signal, process: pair), is: refusal)
        let elsewhere = try fixture.visitor(of: "elsewhere")
        expect(try await fixture.wake("office", by: .signal, process: elsewhere), is: refusal)
        // Nor by one that connected to somebody else, under the agent's name.
        let forged = try fixture.connector(from: "agent", to: "service")
        expect(try await fixture.wake("office", by: .signal, process: forged), is: refusal)
        #expect(box.process.isAlive)
    }

    @Test func `a program that it launched is signalled without having connected`() async throws {
        let fixture = try LauncherFixture([
            connection("office") {
                script("exec sleep 1000")(&$0)
                $0.signal = SIGUSR1
            }
        ])
        expect(try await fixture.wake("office", by: .exec), is: "launched")
        expect(try await fixture.wake("office", by: .signal, process: fixture.programs[0]), is: "done")
        try await eventually("it got the signal") { fixture.ends == [.killed(signal: SIGUSR1)] }
    }

    @Test func `a file below a directory that others can write is not root's word`() throws {
        let directory = TemporaryDirectory()
        #expect(RootsPath.obstacle(to: "\(directory.path)/dialtone.toml") != nil, "/tmp is everybody's")
        #expect(RootsPath.obstacle(to: "/etc/dialtone.toml") == nil)
    }
}

/// A process of this user's that waits.
@AgentQueue
private final class Sleeping {
    private var launched: LaunchedProgram?
    private(set) var end: ProgramEnd?

    var process: ProcessHandle {
        guard let launched else { preconditionFailure("it was launched") }
        return launched.process
    }

    init() throws {
        var settings = WakeSettings()
        script("exec sleep 1000")(&settings)
        let program = try #require(settings.targets.program)
        launched = try LaunchedProgram(
            ProgramRequest(
                command: program.command, identity: program.identity, streams: .passed, connection: "office"),
            socket: nil, output: STDERR_FILENO, started: { _ in }, ended: { [weak self] in self?.end = $0 })
    }

    isolated deinit { try? launched?.process.signal(SIGKILL) }
}
