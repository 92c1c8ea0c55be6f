// SPDX-License-Identifier: Apache-2.0

internal import CAsking
internal import CBench
internal import DialtoneAPI
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// From the server's send to the return of its client's read, where the client has to be got to run first. Beside each,
/// in the same minute, the same client of a bare C program that does nothing else than wait for its socket.
enum WakeProbe {
    /// By what the client is got to run.
    enum Kind: CaseIterable {
        /// It runs, and subscribes. Bare: it is blocked in the read itself.
        case event
        /// It has stopped itself.
        case signal
        /// Its control group is frozen.
        case thaw
        /// It is launched, with the socket as descriptor 3. Bare: with the socket as its standard input.
        case descriptor
        /// It is launched, with the socket as its standard input.
        case streams

        /// As the table has it.
        var text: String {
            switch self {
            case .event: "event, client takes"
            case .signal: "SIGCONT, client takes"
            case .thaw: "thaw, client takes"
            case .descriptor: "launch, socket as descriptor 3"
            case .streams: "launch, socket as standard input"
            }
        }

        /// A program that is launched again and again is slowed down after thirty times.
        fileprivate var connections: Int { isLaunch ? 8 : 1 }
        fileprivate var rounds: Int { isLaunch ? 160 : 200 }

        fileprivate var isLaunch: Bool { self == .descriptor || self == .streams }

        /// The configuration's `wake`.
        fileprivate func wake(_ sleeper: String) -> String {
            switch self {
            case .event: "{}"
            case .signal: "{ signal = true }"
            case .thaw: "{ thaw = true }"
            case .descriptor: "{ exec = [\"\(sleeper)\", \"answer\", \"3\"] }"
            case .streams: "{ exec = [\"\(sleeper)\", \"answer\", \"0\"], stdio = true }"
            }
        }

        /// The words for `sleeper` that wake without an agent.
        fileprivate func bare(_ sleeper: String, _ group: String) -> [String] {
            switch self {
            case .event: ["read"]
            case .signal: ["wake", "signal"]
            case .thaw: ["wake", "thaw", group]
            case .descriptor, .streams: ["wake", "launch", sleeper]
            }
        }
    }

    /// What one kind was measured to take.
    struct Figures: Sendable {
        let kind: Kind
        /// `nil` where it cannot be had here.
        var measurement: Measurement?
        /// The agent's own for one wake, on average, all of its threads; `nil` where strace may not.
        var systemCalls: Double?
    }

    private static let warmUp = 8
    /// Wakes that are traced.
    private static let traced = 16
    /// Longer than until everything sleeps again, for programs that strace slows down.
    private static let tracedPause = Duration.milliseconds(200)
    /// Longer than until everything sleeps again.
    private static let pause = Duration.milliseconds(20)

    /// All kinds.
    static func measure(_ daemon: String) async throws -> [Figures] {
        var all: [Figures] = []
        for kind in Kind.allCases {
            let groups = kind == .thaw ? ControlGroups(["agent", "bare"]) : nil
            guard kind != .thaw || groups != nil else {
                all.append(Figures(kind: kind))
                continue
            }
            Output.note("  \(kind.text)")
            all.append(
                try await LabNetwork.with { lab in
                    try await measure(try await Ends(daemon, kind, in: lab, groups), on: lab.host, freezing: groups)
                })
        }
        return all
    }

    private static func measure(
        _ ends: Ends, on machine: Namespace, freezing groups: ControlGroups?
    ) async throws -> Figures {
        var measurement = Measurement()
        let rounds = warmUp + ends.kind.rounds
        for round in 0..<rounds {
            try await rest(ends, before: round, freezing: groups)
            usleep(UInt32(pause.nanoseconds / 1000))
            let bare = ask(ends.bare.number, UInt32(round + 1))
            usleep(UInt32(pause.nanoseconds / 1000))
            let own = ask(ends.flow(of: round), UInt32(round + 1))
            guard round >= warmUp else { continue }
            if let bare, let own {
                measurement.samples.append(Sample(bare: bare, difference: own - bare))
            } else {
                measurement.missed += 1
            }
        }
        try await rest(ends, before: rounds, freezing: groups)
        let calls = try? await SystemCalls.count(of: ends.agent.process.processID, on: machine) {
            for round in rounds..<(rounds + traced) {
                _ = ask(ends.flow(of: round), UInt32(round + 1))
                // Whether it is parked again is not asked here: the answer would be system calls too.
                usleep(UInt32(tracedPause.nanoseconds / 1000))
                try groups?.freeze("agent")
            }
        }
        return Figures(
            kind: ends.kind, measurement: measurement, systemCalls: calls.map { Double($0) / Double(traced) })
    }

    /// Waits until the last message is dealt with, and has the clients sleep again.
    private static func rest(_ ends: Ends, before round: Int, freezing groups: ControlGroups?) async throws {
        guard round > 0 else { return }
        try await ends.settle()
        try groups?.freeze("agent")
        try groups?.freeze("bare")
    }

    /// From the send to the return of the read; `nil` where no answer came in time.
    private static func ask(_ connection: CInt, _ number: UInt32) -> Int64? {
        var sent: Int64 = 0
        var answer = asking_answer()
        let outcome = asking_ask(connection, number, 5, &sent, &answer)
        return outcome == ASKING_ANSWERED ? answer.read_at - sent : nil
    }
}

/// The server's ends of the connections, and the programs at the others.
private struct Ends {
    private static let port: UInt16 = 7000
    private static let barePort: UInt16 = 7001

    let kind: WakeProbe.Kind
    /// To whoever wakes without an agent.
    let bare: OwnedEnd
    let flows: [OwnedEnd]

    let agent: Agent
    private let client: LabProcess?

    init(_ daemon: String, _ kind: WakeProbe.Kind, in lab: LabNetwork, _ groups: ControlGroups?) async throws {
        self.kind = kind
        let server = LabNetwork.serverAddress(.v4)
        let sleeper = LabAgent.program("sleeper")
        let (port, barePort) = (Self.port, Self.barePort)
        let (listener, bareListener) = try await lab.server.run {
            (
                OwnedEnd(try opened("listening", bench_open_listener(port))),
                OwnedEnd(try opened("listening", bench_open_listener(barePort)))
            )
        }
        let waker = [sleeper] + kind.bare(sleeper, groups?.directory("bare") ?? "") + [server, "\(barePort)"]
        _ = try await lab.host.spawn(waker)
        bare = try bareListener.accept()
        let text = (0..<kind.connections).map { number in
            """
            [[connection]]
            name = "c\(number)"
            remote = "tcp://\(server):\(port)"
            owner = "root"
            wake = \(kind.wake(sleeper))

            """
        }.joined()
        agent = try await Agent(daemon, on: lab.host, configuration: text)
        flows = try (0..<kind.connections).map { _ in try listener.accept() }
        try await agent.wait(for: .ready, of: flows.count)
        client = try await Self.startClient(kind, on: lab.host, agent.socket, groups)
    }

    private static func startClient(
        _ kind: WakeProbe.Kind, on machine: Namespace, _ socket: String, _ groups: ControlGroups?
    ) async throws -> LabProcess? {
        let command = [LabAgent.program("sleeper"), "take", socket, "c0"]
        switch kind {
        case .descriptor, .streams: return nil
        case .signal: return try await machine.spawn(command + ["stop"])
        case .event, .thaw:
            let group = groups.map { "echo $$ >\($0.directory("agent"))/cgroup.procs && " } ?? ""
            let client = try await machine.spawn(["sh", "-c", "\(group)exec \(command.joined(separator: " "))"])
            _ = try await client.line(containing: "following")
            return client
        }
    }

    /// The one whose turn it is.
    func flow(of round: Int) -> CInt { flows[round % flows.count].number }

    /// Waits until the last message is dealt with.
    func settle() async throws {
        try await agent.waitUntilParked()
        guard kind == .signal, let client else { return }
        for _ in 0..<5000 {
            if try ProcessCost.isStopped(client.processID) { return }
            usleep(1000)
        }
        throw LabError.timedOut(awaited: "the client to stop", limit: .seconds(5), state: "it runs")
    }
}
