// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Glibc

/// A machine's agent with one connection, whose sockets are pairs: the test is the server, and the network.
@AgentQueue
final class StandInAgent {
    /// What a socket of it is.
    private struct Line {
        var epoch: Int
        var session: ConnectionsAPI.Connection.Session
        var isTaken = false
        var unread = 0
        /// The end that clients get, and the server's.
        var (client, server): (CInt, CInt)
    }

    /// A subscriber.
    private final class Place: VarlinkSubscription {
        var replies: [ConnectionsAPI.Monitor.Reply]
        let stream: VarlinkStream
        private let gone: @AgentQueue () -> Void

        init(_ first: ConnectionsAPI.Monitor.Reply, _ stream: VarlinkStream, gone: @escaping @AgentQueue () -> Void) {
            (replies, self.stream, self.gone) = ([first], stream, gone)
        }

        func next() -> VarlinkMessage? {
            replies.isEmpty ? nil : .reply(replies.removeFirst(), continues: true)
        }

        func ended() { gone() }
    }

    private nonisolated let place = TemporaryDirectory()
    nonisolated var directory: String { place.path }
    nonisolated var path: String { "\(directory)/agent.sock" }
    /// What clients called, in its order.
    private(set) var calls: [String] = []
    /// How many steps the opening has that was left.
    private(set) var left = 0
    private var line: Line?
    /// One that broke with bytes on it, until it is taken.
    private var ended: Line?
    private var server: VarlinkServer?
    private var places: [ObjectIdentifier: Place] = [:]

    init() throws {
        try start()
    }

    /// Ends. Until then its server has it: a call may come at any moment.
    func stop() {
        server?.close()
        server = nil
        hangUp()
    }

    /// Begins anew, with nothing of what was before.
    func restart() throws {
        server?.close()
        hangUp()
        line = nil
        left = 0
        try start()
    }

    private func start() throws {
        let service = VarlinkService(vendor: "Dialtone", product: "fake", version: "0", url: "https://example.org")
        service.add(interface: ConnectionsAPI.name, description: ConnectionsAPI.description)
        service.handle(ConnectionsAPI.List.self) { [self] _, _ in
            .init(connections: connection.map { [$0] } ?? [])
        }
        service.handle(ConnectionsAPI.Open.self) { [self] parameters, _ throws(VarlinkFailure) in
            guard line == nil else { throw VarlinkFailure(ConnectionsAPI.NameTaken(name: parameters.name ?? "")) }
            calls.append("open")
            left = 0
            connect(epoch: 1)
            return .init(name: parameters.name ?? "")
        }
        service.handle(ConnectionsAPI.Close.self) { [self] parameters, _ throws(VarlinkFailure) in
            guard line != nil else { throw VarlinkFailure(ConnectionsAPI.NoSuchConnection(name: parameters.name)) }
            calls.append("close")
            hangUp()
            line = nil
            return VarlinkEmpty()
        }
        service.handle(ConnectionsAPI.Park.self) { [self] parameters, _ throws(VarlinkFailure) in
            guard let line, line.epoch == parameters.epoch else {
                throw VarlinkFailure(ConnectionsAPI.StaleEpoch(name: parameters.name, epoch: line?.epoch ?? 0))
            }
            left = parameters.opening?.count ?? left
            calls.append("park \(line.epoch) leaving \(left)")
            self.line?.isTaken = false
            self.line?.session = .open
            return VarlinkEmpty()
        }
        service.handleLater(ConnectionsAPI.Take.self) { [self] parameters, exchange throws(VarlinkFailure) in
            guard line != nil else {
                throw VarlinkFailure(ConnectionsAPI.NotReady(name: parameters.name, state: .waiting))
            }
            let over = ended.take()
            if over == nil {
                line?.isTaken = true
                line?.unread = 0
            }
            guard let connection, let line = over ?? line else { return }
            calls.append("take \(line.epoch)")
            let descriptors = VarlinkDescriptors()
            let place = descriptors.append(OwnedDescriptor(over == nil ? dup(line.client) : line.client))
            exchange.reply(
                .init(connection: connection, fileDescriptor: place, epoch: line.epoch, isOver: over != nil),
                descriptors)
        }
        service.handleStream(ConnectionsAPI.Monitor.self) { [self] _, stream in
            let snapshot = ConnectionsAPI.Monitor.Reply(
                sequence: 0, kind: .snapshot, connections: connection.map { [$0] } ?? [])
            let key = ObjectIdentifier(stream)
            let place = Place(snapshot, stream) { [weak self] in self?.places[key] = nil }
            places[key] = place
            return place
        }
        let server = VarlinkServer(service)
        try server.listen(at: path, mode: 0o600)
        self.server = server
    }

    private func connect(epoch: Int) {
        let (client, server) = socketPair()
        line = Line(epoch: epoch, session: left > 0 ? .open : .none, client: client, server: server)
    }

    private func hangUp() {
        guard let line else { return }
        close(line.client)
        close(line.server)
    }

    private var connection: ConnectionsAPI.Connection? {
        line.map { line in
            .init(
                name: "dialtone-push", remote: "tcp://192.0.2.1:1", epoch: line.epoch, state: .ready,
                holder: line.isTaken ? .client : .daemon, session: line.session, since: Timestamp(milliseconds: 0),
                attempt: 0, unreadBytes: line.unread)
        }
    }

    // MARK: What happens

    /// Tells the subscribers how it stands, as each event does.
    func tell() {
        guard let connection else { return }
        for place in places.values {
            place.replies.append(.init(sequence: 1, kind: .change, connections: [connection]))
            place.stream.wake()
        }
    }

    /// The socket breaks, and another one takes its place: with a session, where an opening was left.
    func breakSocket() {
        guard let epoch = line?.epoch else { return }
        hangUp()
        connect(epoch: epoch + 1)
        tell()
    }

    /// As before, while bytes wait on the socket that broke.
    func breakSocket(leaving text: String) {
        guard let line else { return }
        say(text)
        (ended, self.line) = (line, nil)
        close(line.server)
        connect(epoch: line.epoch + 1)
        tell()
    }

    /// The server says something; on a parked socket its client is woken.
    func say(_ text: String) {
        guard let line else { return }
        _ = Array(text.utf8).withUnsafeBytes { write(line.server, $0.baseAddress, $0.count) }
        guard !line.isTaken else { return }
        self.line?.unread = text.utf8.count
        tell()
    }

    /// What the server has read so far of the present socket.
    func heard() -> String {
        guard let line else { return "" }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(line.server, &bytes, bytes.count, CInt(MSG_DONTWAIT) | CInt(MSG_PEEK))
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }
}

/// What a scripted server's value was told, and what it says.
final class PushScript: Sendable {
    struct State: Sendable {
        var inputs: [PushServerInput] = []
        var parking: PushParking?
        var answer: @Sendable (PushServerInput) -> PushServerTurn = { _ in PushServerTurn() }
    }

    private let state: Lock<State>

    /// A value that answers so, and is parked by this word.
    init(
        parking: PushParking? = .some(.init(opening: [.init(send: [1], begins: [2])], answers: .webSocket)),
        _ answer: @escaping @Sendable (PushServerInput) -> PushServerTurn
    ) {
        state = Lock(State(parking: parking, answer: answer))
    }

    var inputs: [PushServerInput] { state.withLock { $0.inputs } }

    /// The inputs up to the latest login, without those that followed it.
    var inputsToLogin: [PushServerInput] {
        let inputs = inputs
        return Array(inputs.prefix((inputs.lastIndex(of: .connected) ?? -1) + 1))
    }

    var parking: PushParking? {
        get { state.withLock { $0.parking } }
        set { state.withLock { $0.parking = newValue } }
    }

    func take(_ input: PushServerInput) -> PushServerTurn {
        let answer = state.withLock { state in
            state.inputs.append(input)
            return state.answer
        }
        return answer(input)
    }
}

/// A server's value that does what a script says.
struct ScriptedServer: PushServer {
    let script: PushScript
    var remote: String { "tcp://192.0.2.1:1" }
    var deadline: Duration? { nil }
    var parking: PushParking? { script.parking }

    mutating func take(_ input: PushServerInput, at now: Moment) -> PushServerTurn { script.take(input) }
}
