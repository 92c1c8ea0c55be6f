// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// What it costs that TLS is done by a process of its own: a round trip through it beside one without TLS, and what a
/// call takes while it does thousands of handshakes.
enum RelayProbe {
    struct Figures: Sendable {
        /// How long round trips took, without and with TLS.
        var plain: [Int64] = []
        var secured: [Int64] = []
        /// How long a call took, alone and while handshakes were done.
        var alone: [Int64] = []
        var beside: [Int64] = []
    }

    /// A flow with TLS has four descriptors in the daemon, and a sandbox may allow 20,000.
    static let crowd = 4000
    private static let size = 64
    private static let rounds = 5000
    private static let port: UInt16 = 7000

    static func measure(_ daemon: String) async throws -> Figures {
        let certificate = "/tmp/dialtone-bench-\(getpid()).pem"
        defer { unlink(certificate) }
        let identity = try Identity(LabNetwork.serverAddress(.v4), savedTo: certificate)
        var figures = Figures()
        figures.plain = try await roundTrips(daemon, nil, nil)
        figures.secured = try await roundTrips(daemon, identity, certificate)
        try await LabNetwork.with { lab in
            let server = try await lab.server.run {
                try Stamper(accepting: opened("listening", bench_open_listener(port)), as: identity)
            }
            defer { bench_close_connections(server.handle) }
            let idle = try await Agent(daemon, on: lab.host)
            for _ in 0..<1000 { figures.alone.append(try call(idle)) }
            let text = Agent.configuration(crowd, port: port, certificate: certificate)
            let agent = try await Agent(daemon, on: lab.host, configuration: text)
            while server.count < crowd { figures.beside.append(try call(agent)) }
        }
        return figures
    }

    private static func call(_ agent: Agent) throws -> Int64 {
        let start = bench_now()
        guard bench_call(agent.socket, "org.varlink.service.GetInfo") == 0 else { throw SystemError.last("calling") }
        return bench_now() - start
    }

    private static func roundTrips(
        _ daemon: String, _ identity: Identity?, _ certificate: String?
    ) async throws -> [Int64] {
        try await LabNetwork.with { lab in
            try await lab.server.run {
                // The server's from here on, which lives as long as this process.
                let listener = try opened("listening", bench_open_listener(port)).release()
                guard bench_start_echo(listener, identity?.handle) == 0 else { throw SystemError.last("serving") }
            }
            let text = Agent.configuration(1, port: port, certificate: certificate)
            let agent = try await Agent(daemon, on: lab.host, configuration: text)
            try await agent.wait(for: .ready)
            let flow = OwnedDescriptor(try await agent.client.take("c0").release())
            var times = [Int64](repeating: 0, count: rounds)
            guard bench_round_trips(flow.number, size, rounds, &times) == 0 else {
                throw SystemError.last("asking and answering")
            }
            return times
        }
    }
}

extension Report {
    mutating func add(relay figures: RelayProbe.Figures) {
        for (what, times, others) in [
            ("round trip of a client over a flow without TLS", figures.plain, []),
            ("  with TLS, through dialtone-tls; over the other", figures.secured, figures.plain),
            ("a call, nobody else", figures.alone, []),
            ("  while \(RelayProbe.crowd) handshakes are done; over the other", figures.beside, figures.alone),
        ] as [(String, [Int64], [Int64])] {
            guard let median = times.median, let late = times.percentile(0.99) else { continue }
            let ratio = others.median.map { "; × \(decimal(Double(median) / Double($0)))" } ?? ""
            add(what, timeText(median) + ratio, p99: timeText(late), n: "\(times.count)")
        }
    }
}
