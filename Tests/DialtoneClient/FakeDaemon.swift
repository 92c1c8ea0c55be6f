// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// A daemon with one connection whose events the test makes, and that can be stopped and started.
@AgentQueue
final class FakeDaemon {
    /// A subscriber's place in the log of events.
    final class Place: VarlinkSubscription {
        private let daemon: FakeDaemon
        private let stream: VarlinkStream
        private(set) var after: Int?
        private(set) var isOver = false

        init(_ daemon: FakeDaemon, _ stream: VarlinkStream, after: Int?) {
            self.daemon = daemon
            self.stream = stream
            self.after = after
        }

        func wake() { stream.wake() }

        func next() -> VarlinkMessage? {
            guard let sequence = after else {
                after = daemon.sequence
                return .reply(daemon.reply(.snapshot, daemon.sequence), continues: true)
            }
            guard sequence < daemon.sequence else { return nil }
            after = sequence + 1
            let isLast = sequence + 1 == daemon.lastSequence
            return .reply(daemon.reply(.change, sequence + 1), continues: !isLast)
        }

        func ended() { isOver = true }
    }

    nonisolated let path: String
    private nonisolated let place = TemporaryDirectory()
    nonisolated var directory: String { place.path }
    let service = VarlinkService(vendor: "Dialtone", product: "fake", version: "0", url: "https://example.org")
    private var server: VarlinkServer?
    private(set) var places: [Place] = []
    private(set) var exchanges: [VarlinkExchange<NetworkAPI.GetPath>] = []
    private(set) var cancellations = 0
    /// The event after which the streams end.
    var lastSequence: Int?
    var sequence = 0 {
        didSet { for place in places { place.wake() } }
    }

    init() throws {
        path = "\(place.path)/test.sock"
        service.add(interface: NetworkAPI.name, description: NetworkAPI.description)
        service.add(interface: ConnectionsAPI.name, description: ConnectionsAPI.description)
        service.handle(ConnectionsAPI.List.self) { [weak self] _, _ in
            .init(connections: self.map { [$0.connection] } ?? [])
        }
        service.handle(ConnectionsAPI.Close.self) { parameters, _ throws(VarlinkFailure) in
            throw VarlinkFailure(ConnectionsAPI.NoSuchConnection(name: parameters.name))
        }
        service.handleLater(NetworkAPI.GetPath.self) { [weak self] _, exchange in
            exchange.onCancel = { self?.cancellations += 1 }
            self?.exchanges.append(exchange)
        }
        service.handleStream(ConnectionsAPI.Monitor.self) { [weak self] parameters, stream throws(VarlinkFailure) in
            guard let self else { throw VarlinkFailure(ServiceAPI.PermissionDenied()) }
            let place = Place(self, stream, after: parameters.after)
            places.append(place)
            return place
        }
        try start()
    }

    var connectionCount: Int { server?.connectionCount ?? 0 }

    func start() throws {
        let server = VarlinkServer(service)
        try server.listen(at: path, mode: 0o600)
        self.server = server
    }

    func stop() {
        server?.close()
        server = nil
    }

    var connection: ConnectionsAPI.Connection {
        .init(
            name: "office", remote: "tcp://192.0.2.1:5060", epoch: 1, state: .ready, holder: .daemon, session: .none,
            since: Timestamp(milliseconds: 0), attempt: 0)
    }

    private func reply(_ kind: ConnectionsAPI.Monitor.Reply.Kind, _ sequence: Int) -> ConnectionsAPI.Monitor.Reply {
        .init(sequence: sequence, kind: kind, connections: [connection])
    }
}
