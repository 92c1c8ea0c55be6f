// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform

/// What daemons cost while nothing happens: one for each number of connections, side by side.
enum IdleProbe {
    /// How many connections stand.
    static let loads = [0, 1, 100, 1000]
    /// After this long nothing of the start is left: Dispatch lets go of its idle threads after five seconds.
    static let settling = Duration.seconds(10)
    /// How long switches are counted.
    static let window = Duration.seconds(30)
    /// How long system calls are counted, afterwards: being traced is not idle.
    static let traced = Duration.seconds(10)

    /// Both, for the table.
    static let windows = "\(traced.components.seconds) s, \(window.components.seconds) s"

    /// What `count` in a window is in a minute.
    static func aMinute(_ count: Int, of window: Duration) -> Int {
        Int((Double(count) * Double(60) / Double(window.components.seconds)).rounded())
    }

    /// One daemon at rest.
    struct Rest: Sendable {
        /// How many connections it has.
        var connections = 0
        /// In the whole window.
        var switches: Int
        /// While traced; `nil` where strace may not.
        var systemCalls: Int?
        var memory: ProcessCost.Memory
    }

    /// All of them, and the peer if it runs here.
    static func measure(_ daemon: String) async throws -> (rests: [Rest], peer: Rest?) {
        try await LabNetwork.with { lab in
            let port: UInt16 = 7000
            // The server's kernel completes the handshakes; nobody accepts, nobody says a word.
            let listener = try await lab.server.run { try opened("listening", bench_open_listener(port)) }
            defer { withExtendedLifetime(listener) {} }
            var agents: [Agent] = []
            for connections in loads {
                let agent = try await Agent(daemon, on: lab.host)
                try await agent.open(connections, port: port)
                agents.append(agent)
            }
            let machine = try await Namespace.create("the peer's machine")
            let peer = try? await startPeer(on: machine)
            try await Task.sleep(for: settling)
            let running = [peer].compactMap(\.self).filter(\.isRunning)
            var rests = try await rest(of: agents.map(\.process) + running)
            for (index, connections) in loads.enumerated() { rests[index].connections = connections }
            for (index, agent) in agents.enumerated() {
                rests[index].systemCalls = try? await SystemCalls.count(
                    of: agent.process.processID, within: traced, on: lab.host)
            }
            if let peer, peer.isRunning { try await peer.terminate() }
            return (Array(rests.prefix(agents.count)), rests.dropFirst(agents.count).first)
        }
    }

    /// One daemon by itself.
    static func rest(of agent: Agent, with connections: Int, on machine: Namespace) async throws -> Rest {
        try await Task.sleep(for: settling)
        var rest = try await rest(of: [agent.process])[0]
        rest.connections = connections
        rest.systemCalls = try? await SystemCalls.count(of: agent.process.processID, within: traced, on: machine)
        return rest
    }

    /// Counts switches in one window for all.
    private static func rest(of processes: [LabProcess]) async throws -> [Rest] {
        let before = try processes.map { try ProcessCost.switches(of: $0.processID) }
        try await Task.sleep(for: window)
        return try zip(processes, before).map { process, before in
            Rest(
                switches: try ProcessCost.switches(of: process.processID) - before,
                memory: try ProcessCost.memory(of: process.processID))
        }
    }

    /// The peer's program.
    static let peer = "/lib/systemd/systemd-networkd"

    /// Starts networkd on a machine with one link that is none of its business, if this system has it and lets it run.
    private static func startPeer(on machine: Namespace) async throws -> LabProcess {
        for command in [
            "link set lo up", "link add wan0 type veth peer name far0", "link set wan0 up", "link set far0 up",
        ] { try await machine.ip(command) }
        // It expects what its unit would make for it. /run is the Lab's own.
        try await machine.command(["mkdir", "-p"] + ["links", "leases", "lldp"].map { "/run/systemd/netif/\($0)" })
        _ = try? await machine.command(["chown", "-R", "systemd-network:", "/run/systemd/netif"])
        return try await machine.spawn([peer])
    }
}
