// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport

@testable import DialtoneBus

/// A connection of a test's, and what it told.
@AgentQueue
final class Peer {
    private(set) var connection: BusConnection?
    var news: [String] = []

    init(_ address: String) {
        connection = BusConnection(address: address) { [weak self] in
            self?.news.append("connected")
        } lost: { [weak self] in
            self?.news.append("lost")
        }
    }

    /// Leaves the bus.
    func leave() { connection = nil }

    func connected() async throws { try await eventually("a connection") { self.connection?.isConnected == true } }

    /// What a method answers, or why it does not.
    func call(
        _ service: String, _ method: String, _ values: [BusValue] = [], isStarting: Bool = false,
        limit: Duration? = nil
    ) async throws -> Result<[BusValue], BusFailure> {
        var answer: Result<[BusValue], BusFailure>?
        let write: @AgentQueue (BusArguments) -> Void = { for value in values { $0.value(value) } }
        connection?.call(
            service, "/test", "org.example.Test", method, isStarting: isStarting, limit: limit, filling: write
        ) { answer = $0.map { $0.values() ?? [.other("unreadable")] } }
        try await eventually("an answer to \(method)") { answer != nil }
        return answer ?? .failure(.disconnected)
    }
}

/// A bus, one who serves and one who calls.
final class Line: Sendable {
    let bus: PrivateBus
    let server: Peer
    let caller: Peer

    init(_ kind: PrivateBus.Kind) async throws {
        bus = try PrivateBus(kind)
        try await bus.start()
        (server, caller) = (await Peer(bus.address), await Peer(bus.address))
        try await server.connected()
        try await caller.connected()
    }

    /// Serves an object, and returns when it is found under the name `org.example.Server`.
    @AgentQueue
    func serve(_ methods: [BusInterface.Method]) async throws {
        var states: [BusConnection.NameState] = []
        server.connection?.serve("/test", [BusInterface("org.example.Test", methods)])
        server.connection?.own("org.example.Server") { states.append($0) }
        try await eventually("the server's name") { states == [.owned] }
    }
}
