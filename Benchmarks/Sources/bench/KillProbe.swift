// SPDX-License-Identifier: Apache-2.0

internal import CAsking
internal import CBench
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// The daemon is killed again and again while its clients are woken for one message after the other. What starts it
/// anew and keeps its descriptors is a small program of the benchmark's (`sleeper manage`); under a real systemd the
/// same is a test.
enum KillProbe {
    struct Figures: Sendable {
        /// What the server sent and saw answered.
        var messages = 0
        /// Flows that ended, or were made anew.
        var dropped = 0
        /// Messages that nobody answered within ten seconds.
        var lost = 0
        /// Answers to another message than the last.
        var disordered = 0
        /// From the signal to the answer to a call that was made at once.
        var outages: [Int64] = []
    }

    static let flows = 8
    static let kills = 60
    private static let port: UInt16 = 7000
    private static let patience: UInt32 = 10
    /// In the middle of the start, right after it, and under way.
    private static let lives: [Duration] = [
        .milliseconds(20), .milliseconds(150), .milliseconds(300), .milliseconds(450),
    ]

    static func measure(_ daemon: String) async throws -> Figures {
        try await LabNetwork.with { lab in
            let files = try AgentFiles()
            let listener = try await lab.server.run { OwnedEnd(try opened("listening", bench_open_listener(port))) }
            let sleeper = LabAgent.program("sleeper")
            let manager = try await lab.host.spawn([sleeper, "manage", files.socket] + files.managedCommand(daemon))
            _ = try await manager.line(containing: "ready")
            let agent = Agent(manager, files)
            try await agent.open(flows, port: port)
            let ends = try (0..<flows).map { _ in try listener.accept() }
            for number in 0..<flows {
                let client = try await lab.host.spawn([sleeper, "take", files.socket, "c\(number)"])
                _ = try await client.line(containing: "following")
            }
            defer { withExtendedLifetime(ends) {} }
            let askers = ends.map { asking_start($0.number, patience) }
            var figures = Figures()
            for number in 0..<kills {
                figures.outages.append(try await kill(manager, files.socket, after: number))
                usleep(UInt32(lives[number % lives.count].nanoseconds / 1000))
            }
            for asker in askers {
                asking_stop(asker)
                figures.count(asking_count(asker), asking_last(asker))
            }
            figures.dropped += try await agent.client.connections().count { $0.epoch != 1 }
            if figures.dropped > 0 { Output.note(manager.text(of: .error)) }
            return figures
        }
    }

    /// Kills it and calls; when the answer came.
    private static func kill(_ manager: LabProcess, _ socket: String, after kills: Int) async throws -> Int64 {
        try manager.send("k")
        let line = try await manager.line("its \(kills + 1)th kill") { line in
            line.text.hasPrefix("killed") && manager.lines.count { $0.text.hasPrefix("killed") } > kills
                && line == manager.lines.last { $0.text.hasPrefix("killed") }
        }
        guard let killed = line.text.split(separator: " ").last.flatMap({ Int64($0) }) else {
            throw LabError.unexpectedOutput(command: manager.command, output: line.text)
        }
        // The first call may be in the hands of the one that dies.
        for _ in 0..<1000 {
            if bench_call(socket, "org.dialtone.Connections.List") == 0 { return bench_now() - killed }
            usleep(1000)
        }
        throw SystemError.last("calling the next agent")
    }
}

extension KillProbe.Figures {
    fileprivate mutating func count(_ answered: UInt32, _ last: asking_outcome) {
        messages += Int(answered)
        switch last {
        case ASKING_ENDED: dropped += 1
        case ASKING_SILENT: lost += 1
        case ASKING_DISORDERED: disordered += 1
        default: break
        }
    }
}
