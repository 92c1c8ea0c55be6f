// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneVarlink
import Foundation
import Testing

/// Clients that sleep until they are woken, and a server that sends each of them numbered lines.
///
/// A client does nothing by itself: only what the agent tells of its connection gets it to take the flow, read what is
/// there and park it. So a wake that is lost, or a byte, shows by a line that is never read.
final class SleepingClients: Sendable {
    /// What one client has read, and what it made of it.
    private struct Progress {
        var lines = 0
        var rest = ""
        var isWanted = false
        /// The number of the newest wake that it was called for.
        var wake: Int?
        var disorder: String?
    }

    /// So many lines each client has read at least when the traffic ends.
    private static let fewestLines = 11

    private let client: DialtoneClient
    private let network: Namespace
    private let listener: TCPSocket
    private let peers: [TCPSocket]
    private let names: [String]
    private let progress: Lock<[String: Progress]>
    private let told = Lock<(replies: Int, last: Int?, disorder: String?)>((0, nil, nil))
    private let changes = ChangeSignal()
    private let tasks = Lock<[Task<Void, Never>]>([])
    private let sending = Lock<(isOver: Bool, lines: Int)>((false, 0))
    private let sender = Lock<Task<Void, Never>?>(nil)

    /// What is between the clients and the server, with TLS.
    private let front: LabProcess?

    private init(
        _ client: DialtoneClient, _ network: Namespace, _ listener: TCPSocket, _ peers: [TCPSocket],
        _ front: LabProcess?
    ) {
        self.front = front
        self.client = client
        self.network = network
        self.listener = listener
        self.peers = peers
        names = peers.indices.map { Self.name($0, isSecured: front != nil) }
        progress = Lock(Dictionary(uniqueKeysWithValues: names.map { ($0, Progress()) }))
    }

    /// Those with TLS can follow those without on one machine: what served the first ones goes on looking.
    private static func name(_ index: Int, isSecured: Bool) -> String { "\(isSecured ? "secured" : "plain")-\(index)" }

    /// Opens `count` connections, parks them, and begins to send.
    static func start(_ count: Int, secured: Bool = false, on machine: BootedMachine) async throws -> SleepingClients {
        let (client, network) = (machine.client, machine.network)
        let listener = try await network.run { try TCPSocket.listening(on: 0) }
        let port = try listener.port()
        let front = secured ? try await machine.tlsFront(of: port) : nil
        let remote = front.map { "tls://127.0.0.1:\($0.port)" } ?? "tcp://127.0.0.1:\(port)"
        var peers: [TCPSocket] = []
        for index in 0..<count {
            let name = Self.name(index, isSecured: secured)
            let settings = ConnectionsAPI.Settings(tls: secured ? .init(verify: false) : nil)
            expect(try await client.open(.init(remote: remote, name: name, settings: settings)), is: name)
            peers.append(try await network.run { try listener.accept() })
        }
        // What the agent does not know yet to stand, it makes anew when it is killed.
        for try await event in client.connectionEvents() where event.reply != nil {
            let connections = try await client.connections()
            if connections.count == count, connections.allSatisfy({ $0.state == .ready }) { break }
        }
        let clients = SleepingClients(client, network, listener, peers, front?.process)
        clients.follow()
        for name in clients.names { clients.serve(name) }
        // Each is woken once to begin with: to take the new flow and park it.
        for name in clients.names { clients.want(name) }
        clients.send()
        return clients
    }

    // MARK: - The subscriber

    /// Hears what happens, across all restarts, and wakes the clients that it concerns.
    private func follow() {
        add { [self] in
            do {
                for try await event in client.connectionEvents() { event.reply.map(hear) }
            } catch { return }
        }
    }

    private func hear(_ reply: ConnectionsAPI.Monitor.Reply) {
        told.withLock { told in
            if let last = told.last {
                if reply.kind != .change { told.disorder = "\(reply.kind.rawValue) after \(last)" }
                if reply.sequence != last + 1 { told.disorder = "\(reply.sequence) after \(last)" }
            }
            (told.replies, told.last) = (told.replies + 1, reply.sequence)
        }
        // A client that came to each event of a wake would make more events than the subscriber reads: those that were
        // left of one wake would have it come for the next line, and the subscriber fall behind with each line.
        if let connection = reply.event?.connection, let wake = connection.wake {
            let isNew = progress.withLock { progress in
                defer { progress[connection.name]?.wake = wake }
                return progress[connection.name]?.wake != wake
            }
            if isNew { want(connection.name) }
        }
    }

    private func want(_ name: String) {
        progress.withLock { $0[name]?.isWanted = true }
        changes.notify()
    }

    // MARK: - The clients

    private func serve(_ name: String) {
        add { [self] in
            while !Task.isCancelled {
                let isWoken: Bool? = try? await changes.wait(for: "a wake of \(name)", within: .seconds(600)) {
                    takeWish(name) || Task.isCancelled ? true : nil
                }
                guard isWoken == true, !Task.isCancelled else { return }
                await readAndPark(name)
            }
        }
    }

    private func takeWish(_ name: String) -> Bool {
        progress.withLock { progress in
            defer { progress[name]?.isWanted = false }
            return progress[name]?.isWanted ?? false
        }
    }

    private func readAndPark(_ name: String) async {
        var epoch: Int?
        while epoch == nil, !Task.isCancelled {
            do {
                let flow = try await client.take(name)
                if flow.isOver || flow.epoch != 1 { note(name, "was given flow \(flow.epoch), over: \(flow.isOver)") }
                epoch = flow.epoch
                read(name, flow.descriptor)
            } catch {
                await passOver(name, error)
            }
        }
        while let number = epoch, !Task.isCancelled {
            do {
                try await client.park(name, epoch: number)
                epoch = nil
            } catch {
                // The answer to an earlier try was lost, and the flow is parked.
                if error.code == .notTaken { return }
                await passOver(name, error)
            }
        }
    }

    /// An agent that was killed is back in a moment; every other trouble is one.
    private func passOver(_ name: String, _ error: DialtoneError) async {
        if !error.isPassing { note(name, "\(error)") }
        try? await Task.sleep(for: .milliseconds(20))
    }

    private func read(_ name: String, _ socket: borrowing OwnedDescriptor) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(socket.number, &bytes, bytes.count, CInt(MSG_DONTWAIT))
            guard count > 0 else {
                if count == 0 { note(name, "read the end") }
                return
            }
            let text = String(decoding: bytes[..<count], as: UTF8.self)
            progress.withLock { progress in
                let all = (progress[name]?.rest ?? "") + text
                var lines = all.split(separator: "\n", omittingEmptySubsequences: false)
                progress[name]?.rest = lines.popLast().map(String.init) ?? ""
                for line in lines {
                    let expected = progress[name]?.lines ?? 0
                    if line != "\(expected)" { progress[name]?.disorder = "read \(line) in place of \(expected)" }
                    progress[name]?.lines += 1
                }
            }
            changes.notify()
        }
    }

    private func note(_ name: String, _ trouble: String) {
        progress.withLock { $0[name]?.disorder = trouble }
    }

    // MARK: - The server

    /// Sends each client a line, again and again; the next one when it has read the one before.
    private func send() {
        let task = Task { [self] in
            var count = 0
            while !sending.withLock(\.isOver) {
                let line = "\(count)\n"
                do {
                    try await network.run { [peers] in for peer in peers { try peer.send(line) } }
                    count += 1
                    sending.withLock { $0.lines = count }
                    try await allHaveRead(count)
                } catch {
                    for name in names { note(name, "the server: \(error)") }
                    return
                }
            }
        }
        sender.withLock { $0 = task }
        tasks.withLock { $0.append(task) }
    }

    private func allHaveRead(_ count: Int) async throws {
        _ = try await changes.wait(for: "line \(count) to be read", within: .seconds(60), describe: summary) {
            progress.withLock { $0.values.allSatisfy { $0.lines >= count || $0.disorder != nil } } ? true : nil
        }
    }

    private func summary() -> String {
        progress.withLock { progress in
            progress.map { "\($0): \($1.lines) lines, \($1.disorder ?? "in order")" }.sorted().joined(separator: "; ")
        }
    }

    /// Sends no more, once everybody has read what was sent.
    func finish() async throws {
        // However slow the machine is, there is something to be lost.
        try await allHaveRead(Self.fewestLines)
        sending.withLock { $0.isOver = true }
        // A line that was on its way may be sent after that; unread, it would turn the end of its socket into a reset.
        await sender.withLock { $0 }?.value
        try await allHaveRead(sending.withLock(\.lines))
    }

    // MARK: - What came of it

    /// Holds that nothing was lost, doubled or out of order.
    func check(_ machine: BootedMachine) async {
        let (replies, disorder) = told.withLock { ($0.replies, $0.disorder) }
        #expect(disorder == nil, "what the subscriber was told")
        let all = progress.withLock { $0 }
        for (name, progress) in all { #expect(progress.disorder == nil, "\(name)") }
        let connections = (try? await machine.client.connections()) ?? []
        #expect(connections.map(\.epoch) == peers.map { _ in 1 }, "no flow was made anew")
        let stray = try? await network.connections().count { $0.port == (try? listener.port()) ?? 0 }
        #expect(stray == peers.count, "the server has them, and no others")
        let lines = sending.withLock(\.lines)
        #expect(
            lines >= Self.fewestLines && replies > Self.fewestLines * peers.count, "there was something to be lost")
        print("\(peers.count) clients, \(lines) lines each, \(replies) events in order")
        if disorder != nil || all.contains(where: { $0.value.disorder != nil }) { print(await machine.journal()) }
    }

    /// Whether the server has seen the end of each.
    func haveEnded() async throws -> Bool {
        try await network.run { [peers] in
            for peer in peers where try !peer.receive().isEmpty { return false }
            return true
        }
    }

    private func add(_ body: @escaping @Sendable () async -> Void) {
        tasks.withLock { $0.append(Task(operation: body)) }
    }

    deinit { tasks.withLock { for task in $0 { task.cancel() } } }
}
