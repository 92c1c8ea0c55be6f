// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneAPI
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import FoundationEssentials
internal import Glibc

/// What a parked connection takes, without and with TLS: daemons with none, some and many side by side, at rest.
enum MemoryProbe {
    /// How many connections stand.
    static let loads = [0, 100, 1000, 10_000]
    /// With TLS, where each has four descriptors in the daemon: a sandbox may allow 20,000.
    static let securedLoads = [0, 100, 1000, 4000]
    private static let port: UInt16 = 7000

    /// One daemon at rest.
    struct Rest: Sendable {
        let connections: Int
        let memory: ProcessCost.Memory
        /// That of `dialtone-tls`, which is the daemon's child here; `nil` where there is none.
        let relay: ProcessCost.Memory?
        /// From the daemon's start until the server had the last connection.
        let ready: Int64
    }

    /// Daemons without TLS, and with it.
    static func measure(_ daemon: String) async throws -> (plain: [Rest], secured: [Rest]) {
        let certificate = "/tmp/dialtone-bench-\(getpid()).pem"
        defer { unlink(certificate) }
        let identity = try Identity(LabNetwork.serverAddress(.v4), savedTo: certificate)
        return (
            try await measure(daemon, as: nil, certificate: nil),
            try await measure(daemon, as: identity, certificate: certificate)
        )
    }

    private static func measure(
        _ daemon: String, as identity: Identity?, certificate: String?
    ) async throws -> [Rest] {
        try await LabNetwork.with { lab in
            let server = try await lab.server.run {
                try Stamper(accepting: opened("listening", bench_open_listener(port)), as: identity)
            }
            defer { bench_close_connections(server.handle) }
            var agents: [(agent: Agent, ready: Int64)] = []
            let loads = identity == nil ? loads : securedLoads
            for count in loads {
                let text = Agent.configuration(count, port: port, certificate: certificate)
                agents.append(try await start(daemon, count, text, on: lab.host, server))
            }
            try await Task.sleep(for: IdleProbe.settling)
            return try zip(loads, agents).map { count, started in
                let process = started.agent.process.processID
                return Rest(
                    connections: count, memory: try ProcessCost.memory(of: process),
                    relay: try ProcessCost.children(of: process).first.map { try ProcessCost.memory(of: $0) },
                    ready: started.ready)
            }
        }
    }

    /// Starts a daemon with connections to the server and waits until all are ready.
    static func start(
        _ daemon: String, _ count: Int, _ configuration: String, on machine: Namespace, _ server: Stamper
    ) async throws -> (agent: Agent, ready: Int64) {
        let last = server.count + count
        let start = bench_now()
        let agent = try await Agent(daemon, on: machine, configuration: configuration)
        try await wait(for: server, toReach: last)
        let ready = count == 0 ? 0 : server[last - 1] - start
        try await agent.wait(for: .ready, of: count)
        return (agent, ready)
    }

    /// Waits until a stamper has so many stamps.
    static func wait(for stamper: Stamper, toReach count: Int) async throws {
        for _ in 0..<18_000 {
            if stamper.count >= count { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw LabError.timedOut(
            awaited: "\(count) connections at the server", limit: .seconds(180), state: "\(stamper.count) came")
    }
}
