// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneLabSupport
internal import DialtonePlatform

/// A daemon on the Lab's host that supervises connections to its server.
final class Agent: Sendable {
    let process: LabProcess
    let client: DialtoneClient

    private let files: AgentFiles

    /// Where it listens.
    var socket: String { files.socket }

    /// One that serves already.
    init(_ process: LabProcess, _ files: AgentFiles) {
        (self.process, self.files) = (process, files)
        client = DialtoneClient(path: files.socket)
    }

    /// Starts a daemon with this configuration and returns when it serves.
    convenience init(_ daemon: String, on machine: Namespace, configuration: String = "") async throws {
        let files = try AgentFiles(configuration)
        self.init(try await machine.spawn(files.command(daemon)), files)
        do {
            _ = try files.connect()
        } catch {
            // Why it does not serve, it says itself.
            throw LabError.unexpectedOutput(command: process.command, output: process.text(of: .error))
        }
    }

    /// Has it supervise connections to a port of the server, and waits until all are ready.
    func open(_ count: Int, port: UInt16) async throws {
        for number in 0..<count { try await open("c\(number)", port: port) }
        try await wait(for: .ready, of: count)
    }

    /// The configuration of a daemon with so many connections to a port of the server; with TLS if that is the
    /// certificate of.
    static func configuration(_ count: Int, port: UInt16, certificate: String? = nil) -> String {
        let scheme = certificate == nil ? "tcp" : "tls"
        let tls = certificate.map { "tls={ca=\"\($0)\"}\n" } ?? ""
        // Close, since a file may have a megabyte. The kernel's keepalive, which is on, wakes no process.
        return (0..<count).map { number in
            """
            [[connection]]
            name="c\(number)"
            remote="\(scheme)://\(LabNetwork.serverAddress(.v4)):\(port)"
            \(tls)
            """
        }.joined()
    }

    /// Has it supervise one new connection in place of the last. A connection dials ten times in a row and then once in
    /// two seconds, so that a link that flaps does not make a storm: measured is one that has dials left.
    func reopen(port: UInt16, makeBeforeBreak: Bool = true, grace: Duration? = nil) async throws {
        for connection in try await client.connections() { try await client.close(connection.name) }
        try await open("c0", port: port, makeBeforeBreak: makeBeforeBreak, grace: grace)
        try await wait(for: .ready)
    }

    private func open(
        _ name: String, port: UInt16, makeBeforeBreak: Bool = true, grace: Duration? = nil
    ) async throws {
        _ = try await client.open(
            .init(
                remote: "tcp://\(LabNetwork.serverAddress(.v4)):\(port)", name: name,
                settings: .init(keepalive: .init(protocol: "none"), grace: grace, makeBeforeBreak: makeBeforeBreak)))
    }

    /// Waits until so many connections are in a state.
    func wait(for state: ConnectionsAPI.State, of count: Int = 1) async throws {
        try await wait(for: "\(count) connections to be \(state)", of: count) { $0.state == state }
    }

    /// Waits until no client has a connection or is woken.
    func waitUntilParked() async throws {
        try await wait(for: "all connections to be parked", of: 0) {
            $0.state != .ready || $0.holder == .client || $0.unreadBytes ?? 0 > 0 || $0.wake != nil
        }
    }

    private func wait(
        for awaited: String, of count: Int, where matches: (ConnectionsAPI.Connection) -> Bool
    ) async throws {
        for _ in 0..<3000 {
            if try await client.connections().count(where: matches) == count { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        let state = "\(try await client.connections().prefix(3))"
        throw LabError.timedOut(awaited: awaited, limit: .seconds(30), state: state)
    }
}
