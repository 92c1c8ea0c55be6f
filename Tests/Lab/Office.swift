// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import Testing

/// A daemon with the connection "office" to a server that the test plays.
struct Office {
    let machine: Namespace
    let home: DaemonHome
    let daemon: LabProcess
    let listener: TCPSocket
    let port: UInt16
    let server: TCPSocket
    let events: EventRecorder

    /// One whose connection stands.
    ///
    /// - Parameter configuration: what the daemon's file says of the connection at this remote; by default it is opened
    ///   over the socket.
    static func open(_ configuration: ((_ remote: String) -> String)? = nil) async throws -> Office {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        let port = try listener.port()
        let remote = "tcp://127.0.0.1:\(port)"
        if let configuration { try home.configure("[[connection]]\nname = 'office'\n\(configuration(remote))") }
        let daemon = try await home.start(on: machine)
        let events = try await EventRecorder.start(by: home.client)
        if configuration == nil { _ = try await home.client.open(.init(remote: remote, name: "office")) }
        let server = try await machine.run { try listener.accept() }
        while try await home.client.connections().first?.state != .ready {}
        return Office(
            machine: machine, home: home, daemon: daemon, listener: listener, port: port, server: server,
            events: events)
    }

    var connection: ConnectionsAPI.Connection {
        get async throws { try #require(try await home.client.connections().first { $0.name == "office" }) }
    }

    /// Starts `dialtone`.
    func start(_ arguments: [String]) async throws -> LabProcess {
        try await run([LabAgent.program("dialtone")] + arguments)
    }

    /// Starts a program that finds the daemon.
    func run(_ command: [String]) async throws -> LabProcess {
        try await machine.spawn(
            command, environment: DaemonHome.quietCrashes.merging(["DIALTONE_SOCKET": home.socket]) { $1 })
    }

    /// Takes the connection for a shell that runs `script`.
    func take(_ options: [String] = [], _ script: String) async throws -> LabProcess {
        try await start(["take", "office"] + options + ["--", "sh", "-c", script])
    }

    func parked(after count: Int = 0) async throws -> ConnectionsAPI.Connection {
        try await events.event("parked", after: count) { $0.kind == .parked }.connection
    }
}
