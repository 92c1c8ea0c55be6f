// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

/// A daemon in a control group that has no more memory than a small device gives it.
@Suite(.lab, .disabled(if: isSanitized, "a sanitizer takes more than the limit by itself"))
struct MemoryLimitStories {
    /// What the group may have, in MiB: what a daemon with all of its program read takes at rest, half as much again.
    private static let limit = 40
    /// More connections than fit into the group: at three kilobytes each and more they take sixty megabytes.
    private static let most = 20_000

    /// A daemon that listens, in a group with so much memory.
    private static func begin(
        mib: Int
    ) async throws -> (machine: Namespace, home: DaemonHome, group: LimitedGroup, daemon: LabProcess) {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let group = try LimitedGroup(bytes: mib << 20)
        // Not at the level of the other stories: each step of thousands of connections would be a line to be read.
        let daemon = try await home.launch(
            on: machine, by: group.launcher,
            arguments: ["--socket", home.socket, "--config", home.file, "--log-level", "info"])
        _ = try await daemon.line(containing: "listening")
        return (machine, home, group, daemon)
    }

    @Test(.limitedMemory)
    func `new connections are refused before the kernel kills the daemon, and opened again after some were closed`()
        async throws
    {
        let (machine, home, group, daemon) = try await Self.begin(mib: Self.limit)
        let listener = try await machine.run { try TCPSocket.listening(on: 7000) }
        let events = try await home.recorder()
        _ = try await home.client.open(.init(remote: "tcp://127.0.0.1:7000", name: "office"))
        _ = try await events.state(.ready, of: "office", after: 0)

        let (opened, reason, text) = try await fill(home.client)
        print("short addresses: \(opened) opened, \(try group.use() >> 10) KiB")
        #expect(opened > 100)
        #expect(reason.contains("of \(Self.limit) MiB of"), "\(reason)")
        #expect(text.contains("begins nothing new"), "\(text)")
        #expect(daemon.isRunning)
        var connections: [ConnectionsAPI.Connection] = []
        // What root opened last counts by its estimate for a moment, for root as well.
        try await eventually("root is shown all") {
            connections = (try? await home.client.connections()) ?? []
            return !connections.isEmpty
        }
        #expect(connections.count == opened + 1)
        #expect(connections.first { $0.name == "office" }?.state == .ready)
        let before = events.events.count
        try await eventually("root may redial") { (try? await home.client.redial("office")) != nil }
        let again = try await events.state(.ready, of: "office", after: before)
        #expect(again.connection.epoch == 2)

        for number in (opened / 2)..<opened { try await home.client.close("c\(number)") }
        // What was freed goes back to the kernel within a second.
        try await eventually("there is room again") {
            (try? await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "again"))) != nil
        }
        #expect(daemon.isRunning)
        try await daemon.terminate()
        withExtendedLifetime((listener, group)) {}
    }

    @Test(.limitedMemory, .anotherUser)
    func `answers that nobody reads do not have the kernel kill the daemon`() async throws {
        let (machine, home, group, daemon) = try await Self.begin(mib: 48)
        let neighbour = try await machine.spawn([LabAgent.program("lab-neighbour"), home.socket, "unread", "1000"])
        let line = try await neighbour.line(containing: "asked=").text
        print("unread: \(line) in \(try group.use() >> 10) KiB")
        #expect(!line.contains("waiting=0"))
        expect(try await home.client.connections()) { $0.isEmpty }
        #expect(daemon.isRunning)
        neighbour.closeInput()
        expect(try await neighbour.exit(), is: .status(0), "\(neighbour.text(of: .error))")
        try await daemon.terminate()
        withExtendedLifetime(group) {}
    }

    @Test(.limitedMemory, .anotherUser)
    func `connections with long addresses, their events and lists of them neither end the daemon nor lock root out`()
        async throws
    {
        let (machine, home, group, daemon) = try await Self.begin(mib: Self.limit)
        let socket = home.socket
        let opened = try await machine.run { try Self.fillWithLongAddresses(socket) }
        print("long addresses: \(opened) opened, \(try group.use() >> 10) KiB")
        #expect(opened > 100)
        var dialled = 0
        for round in 1...4 {
            let answered = try await machine.run { try Self.redialAll(opened, socket) }
            dialled += answered
            print("long addresses: \(answered) of \(opened) redialled, \(try group.use() >> 10) KiB")
            expect(try await home.client.connections().count, is: opened, "round \(round)")
        }
        #expect(dialled >= opened)
        #expect(daemon.isRunning)
        try await daemon.terminate()
        withExtendedLifetime(group) {}
    }

    private static let nobody: UInt32 = 65_534

    /// Opens connections as another user until one is refused for want of memory, and says how many there are.
    private static func fillWithLongAddresses(_ socket: String) throws -> Int {
        // A token in it, as of a WebSocket, can be so long. Nobody listens there: each dial makes events.
        let remote = "ws://127.0.0.1:1/?token=" + String(repeating: "t", count: 1500)
        let client = try UnixClient.connected(to: socket, as: nobody)
        for number in 0..<1024 {
            let parameters = "{\"remote\":\"\(remote)\",\"name\":\"c\(number)\"}"
            let answer = try ask(client, "Open", parameters)
            if answer.contains("OutOfResources") { return number }
            guard answer.contains("\"name\":\"c\(number)\"") else { throw SystemError(answer, code: EPROTO) }
        }
        return 1024
    }

    /// Dials so many of them anew and lists them, and says how many were dialled.
    private static func redialAll(_ count: Int, _ socket: String) throws -> Int {
        let client = try UnixClient.connected(to: socket, as: nobody)
        var dialled = 0
        for number in 0..<count {
            let answer = try ask(client, "Redial", "{\"name\":\"c\(number)\"}")
            // Others than root may come no more.
            if number == 0, answer.contains("OutOfResources") { return 0 }
            dialled += answer.contains("{}") ? 1 : 0
        }
        _ = try ask(client, "List", "{}")
        return dialled
    }

    private static func ask(_ client: UnixClient, _ method: String, _ parameters: String) throws -> String {
        try client.send("{\"method\":\"org.dialtone.Connections.\(method)\",\"parameters\":\(parameters)}\0")
        var answer: [UInt8] = []
        while answer.last != 0 {
            let more = try client.receive()
            if more.isEmpty { throw SystemError("waiting for the answer to \(method)", code: ECONNRESET) }
            answer += more
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Opens connections until one is refused for want of memory, and says how many there are, and why.
    private func fill(_ client: DialtoneClient) async throws -> (opened: Int, reason: String, text: String) {
        for number in 0..<Self.most {
            do throws(DialtoneError) {
                _ = try await client.open(.init(remote: "tcp://192.0.2.1:1", name: "c\(number)"))
            } catch {
                guard case .refused(_, let failure) = error,
                    let shortage = failure.decoded(as: ConnectionsAPI.OutOfResources.self)
                else { throw error }
                return (number, shortage.reason, "\(error)")
            }
        }
        return (Self.most, "nothing was refused", "")
    }
}

extension Trait where Self == ConditionTrait {
    fileprivate static var limitedMemory: Self {
        .enabled(if: LabSandbox.isInside && LimitedGroup.isPossible, "no group with a limit on memory can be made here")
    }
}
