// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Everything that can be said to the daemon, by several users at once, from a seed. It lives, it answers somebody who
/// is calm throughout, and when all have gone nothing of them is left.
///
/// `make fuzz TARGET=interface SECONDS=n` goes on for so long; `DIALTONE_SEED=n` repeats a run.
@Suite(.lab)
struct InterfaceFuzz {
    /// How long it goes on in `make test`: the number of sittings, each of which is some calls of one client.
    private static let sittings = 400

    /// What the daemon may have grown by at the end, in MiB.
    private static let mostGrowth = 48

    /// Runs that ended the daemon once: a client's process ended a turn before its watch was taken down.
    private static let kept: [UInt64] = [4_941_163_253_874_815_407]

    @Test(arguments: seeds(1) + kept)
    func `nothing that is said to it ends the daemon, or stays behind`(seed: UInt64) async throws {
        print("interface fuzz: DIALTONE_SEED=\(seed) repeats this run")
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, arguments: ["--socket", home.socket, "--config", home.file, "--log-level", "warning"])
        try await eventually("the daemon serves") { home.hasSocket }
        _ = try await home.client.connections()
        let (descriptors, memory) = (try Self.descriptors(of: daemon), try Self.memory(of: daemon))

        let length = ProcessInfo.processInfo.environment["FUZZ_SECONDS"].map { ["seconds", $0] }
        let users = AnotherUser.obstacle == nil ? [AnotherUser.number, AnotherUser.number - 1] : []
        // In a process of its own: a connection in whose queue its own other end lies ends with the process.
        let fuzzer = try await machine.spawn(
            [LabAgent.program("lab-fuzzer"), home.socket, "\(seed)"] + (length ?? ["sittings", "\(Self.sittings)"])
                + users.map { "\($0)" })
        // A calm client is answered all the while.
        while fuzzer.isRunning {
            _ = try await home.client.connections()
            try await Task.sleep(for: .milliseconds(20))
        }
        expect(try await fuzzer.exit(), is: .status(0), "seed \(seed): \(fuzzer.text(of: .error))")
        print("interface fuzz: \(fuzzer.text(of: .output))")
        try #require(daemon.isRunning, "seed \(seed): \(daemon.text(of: .error).suffix(2000))")
        for connection in try await home.client.connections() {
            do {
                try await home.client.close(connection.name, owner: connection.owner)
            } catch {
                // One that does not redial may have ended by itself.
                if error.code != .noSuchConnection { throw error }
            }
        }
        do {
            try await eventually("seed \(seed): no descriptor is left of them, of \(descriptors.count)") {
                try Self.descriptors(of: daemon).count <= descriptors.count + 8
            }
        } catch {
            Issue.record("\(error): \(try Self.descriptors(of: daemon))")
        }
        let growth = try Self.memory(of: daemon) - memory
        print("interface fuzz: the daemon has grown by \(growth) MiB")
        #expect(isBelow(growth, Self.mostGrowth), "seed \(seed)")
    }

    private static func descriptors(of daemon: LabProcess) throws -> [String] {
        let directory = "/proc/\(daemon.processID)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: directory).map { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(number)")
            return "\(number): \(target ?? "gone")"
        }
    }

    private static func memory(of daemon: LabProcess) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(daemon.processID)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return try #require(line?.split(separator: " ").compactMap { Int($0) }.first) / 1024
    }
}
