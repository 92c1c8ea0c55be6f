// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation

/// Both interfaces with canned answers, on a socket of its own.
@AgentQueue
final class SampleService {
    let path: String
    private let server: VarlinkServer
    private let directory = TemporaryDirectory()

    private final class Changes: VarlinkSubscription {
        var messages: [VarlinkMessage]
        init(_ messages: [VarlinkMessage]) { self.messages = messages }
        func next() -> VarlinkMessage? { messages.isEmpty ? nil : messages.removeFirst() }
        func ended() {}
    }

    init() throws {
        path = "\(directory.path)/test.sock"
        let service = VarlinkService(vendor: "Dialtone", product: "dialtoned", version: "0", url: "https://example.org")
        Self.addNetwork(to: service)
        Self.addConnections(to: service)
        server = VarlinkServer(service)
        try server.listen(at: path, mode: 0o600)
    }

    private static func addNetwork(to service: VarlinkService) {
        service.add(interface: NetworkAPI.name, description: NetworkAPI.description)
        let interface = NetworkAPI.Interface(
            index: 3, name: "wlan0", kind: .wifi, up: true, carrier: true, addresses: ["192.0.2.7/24"],
            expensive: false, constrained: false)
        func path(to destination: String?) -> NetworkAPI.Path {
            NetworkAPI.Path(
                generation: 1, status: .satisfied, coherent: true, interface: interface, gateway: "192.0.2.254",
                source: "192.0.2.7", destination: destination, isDirect: false, isLocalAddress: false,
                supportsIPv4: true, supportsIPv6: false, supportsDNS: true, expensive: false, constrained: false)
        }
        service.handle(NetworkAPI.GetPath.self) { parameters, _ in .init(path: path(to: parameters.target?.host)) }
        service.handle(NetworkAPI.ListInterfaces.self) { _, _ in .init(interfaces: [interface]) }
        service.handleStream(NetworkAPI.MonitorPath.self) { parameters, _ in
            let path = path(to: parameters.target?.host)
            return Changes([
                .reply(NetworkAPI.MonitorPath.Reply(path: path, changes: []), continues: true),
                .reply(NetworkAPI.MonitorPath.Reply(path: path, changes: ["gateway"])),
            ])
        }
    }

    private static func addConnections(to service: VarlinkService) {
        service.add(interface: ConnectionsAPI.name, description: ConnectionsAPI.description)
        let office = ConnectionsAPI.Connection(
            name: "office", remote: "tcp://sip.example.com:5060", epoch: 2, state: .backingOff, reason: "refused",
            holder: .daemon, session: .none, since: .now(), attempt: 4, nextAttemptAt: .now(), lastFailure: "refused")
        service.handle(ConnectionsAPI.List.self) { _, _ in .init(connections: [office]) }
        service.handle(ConnectionsAPI.Open.self) { parameters, _ in .init(name: parameters.name ?? "made") }
        service.handle(ConnectionsAPI.Redial.self) { _, _ in .init() }
        service.handle(ConnectionsAPI.Close.self) { parameters, _ throws(VarlinkFailure) in
            guard parameters.name == "office" else {
                throw VarlinkFailure(ConnectionsAPI.NoSuchConnection(name: parameters.name))
            }
            return .init()
        }
        service.handleStream(ConnectionsAPI.Monitor.self) { _, _ in
            let snapshot = ConnectionsAPI.Monitor.Reply(sequence: 1, kind: .snapshot, connections: [office])
            let changes = (2...3).map { sequence in
                ConnectionsAPI.Monitor.Reply(
                    sequence: sequence, kind: .change, connections: [office],
                    event: .init(sequence: sequence, time: .now(), kind: .state, connection: office, reason: "refused"))
            }
            return Changes([
                .reply(snapshot, continues: true), .reply(changes[0], continues: true), .reply(changes[1]),
            ])
        }
    }
}
