// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// One user of the socket wants too much; what that costs the others, in answers, in memory and in descriptors. Each
/// story prints the other user's latencies beside.
@Suite(.lab, .anotherUser, .serialized)
struct HostileNeighbourStories {
    /// What `lab-neighbour` is beside its attack, from a line that it printed.
    private struct Stay: CustomStringConvertible {
        let description: String
        /// How many calls the other user made, and how many of them were answered.
        let (calls, served): (Int, Int)
        /// How many answers the greedy user got during one call of the other's, at the median.
        let between: Int

        init?(_ line: String) {
            let words = line.split(separator: " ").dropFirst().map { $0.split(separator: "=") }
            let values = Dictionary(uniqueKeysWithValues: words.map { ($0[0], Double($0[1]) ?? .nan) })
            guard let calls = values["calls"], let served = values["served"], let between = values["between"] else {
                return nil
            }
            (description, self.calls, self.served) = (line, Int(calls), Int(served))
            self.between = Int(between)
        }
    }

    /// An agent on a machine of its own, and what it has taken.
    private struct Fixture {
        let machine: Namespace
        let home: DaemonHome
        let daemon: LabProcess

        static func start(_ configuration: String = "") async throws -> Fixture {
            let (machine, home) = (try await Namespace.island(), try DaemonHome(configuration))
            // Not at the level of the other stories: a log of every step is no user's doing.
            let daemon = try await home.launch(
                on: machine, arguments: ["--socket", home.socket, "--config", home.file, "--log-level", "info"])
            _ = try await daemon.line(containing: "listening")
            return Fixture(machine: machine, home: home, daemon: daemon)
        }

        /// The memory that is the daemon's alone, in MiB.
        func memory() throws -> Int {
            let status = try String(contentsOfFile: "/proc/\(daemon.processID)/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
            return try #require(line?.split(separator: " ").compactMap { Int($0) }.first) / 1024
        }

        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.processID)/fd").count
        }

        func neighbour(_ arguments: String...) async throws -> LabProcess {
            try await machine.spawn([LabAgent.program("lab-neighbour"), home.socket] + arguments)
        }

        /// Lets one user attack, and says what it was like for the other one.
        func attack(_ attack: String, connections: Int, calls: Int) async throws -> Stay {
            let before = try descriptors()
            let neighbour = try await neighbour("beside", attack, "\(connections)", "\(calls)")
            expect(try await neighbour.exit(within: .seconds(150)), is: .status(0), "\(neighbour.text(of: .error))")
            for line in neighbour.text(of: .output).split(separator: "\n") { print("neighbour \(attack): \(line)") }
            print("neighbour \(attack): the daemon has \(try memory()) MiB")
            let stay = try #require(neighbour.lines.compactMap { Stay($0.text) }.last)
            #expect(daemon.isRunning)
            try await eventually("the descriptors of those who went are closed") {
                (try? descriptors()).map { $0 <= before + 8 } ?? false
            }
            return stay
        }
    }

    /// What the daemon may grow to, in MiB: a debug build's own, and what the limits add up to for one user.
    private static let mostMemory = 64

    @Test(arguments: ["explain", "deep", "keys", "list"])
    func `a thousand connections of one user keep no other waiting, nor take the memory`(attack: String) async throws {
        let fixture = try await Fixture.start()
        let stay = try await fixture.attack(attack, connections: 1000, calls: 200)
        #expect(stay.calls > 0 && stay.served == stay.calls, "\(stay)")
        // Turns that go round by connection give each of the thousand one before the other user has another.
        #expect(stay.between < 250, "\(stay)")
        let memory = try fixture.memory()
        #expect(isBelow(memory, Self.mostMemory), "\(stay)")
    }

    @Test func `what one user opens and closes neither fills the log nor takes another's history`()
        async throws
    {
        let fixture = try await Fixture.start()
        _ = try await fixture.home.client.open(.init(remote: "tcp://127.0.0.1:1", name: "door"))
        _ = try await fixture.home.client.close("door")
        let stay = try await fixture.attack("churn", connections: 100, calls: 200)
        #expect(stay.calls > 0 && stay.served == stay.calls, "\(stay)")
        let history = try await fixture.home.dialtone("history", "door", on: fixture.machine)
        #expect(history.output.contains("door"), "\(history)")
        print("neighbour churn: the log has \(fixture.daemon.lines.count) lines")
        #expect(fixture.daemon.lines.count < 5_000)
    }

    @Test func `connections that only messages hold are let go, and lock nobody out`() async throws {
        let fixture = try await Fixture.start()
        let before = try fixture.descriptors()
        for _ in 1...2 {
            let neighbour = try await fixture.neighbour("garbage", "1000")
            expect(try await neighbour.exit(), is: .status(0), "\(neighbour.text(of: .error))")
            print("neighbour garbage: \(neighbour.text(of: .output)), \(try fixture.descriptors()) descriptors")
        }
        _ = try await fixture.home.client.connections()
        let stay = try await fixture.attack("none", connections: 0, calls: 50)
        #expect(stay.served == stay.calls, "\(stay)")
        try await eventually("the connections without a process are closed") {
            (try? fixture.descriptors()).map { $0 <= before + 8 } ?? false
        }
    }

    @Test func `one user cannot take the places of all`() async throws {
        let fixture = try await Fixture.start()
        let neighbour = try await fixture.neighbour("hold", "6000")
        print("neighbour hold: \(try await neighbour.line(containing: "held=").text)")
        let stay = try await fixture.attack("none", connections: 0, calls: 50)
        #expect(stay.served == stay.calls, "\(stay)")
        _ = try await fixture.home.client.connections()
        neighbour.closeInput()
        _ = try await neighbour.exit()
    }

    @Test(
        .enabled(
            if: LabSandbox.isInside && access("/dev/fuse", R_OK | W_OK) == 0,
            "no file system in user space can be mounted here"))
    func `a socket that its client keeps locked holds up nobody but its user`() async throws {
        let fixture = try await Fixture.start()
        let directory = "\(fixture.home.file).files"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let neighbour = try await fixture.neighbour("lock", directory)
        _ = try await neighbour.line(containing: "locked")
        let stay = try await fixture.attack("none", connections: 0, calls: 50)
        #expect(stay.calls > 0 && stay.served == stay.calls, "\(stay)")
        _ = try await neighbour.line(containing: "closed")
        expect(try await fixture.home.client.connections()) { $0.isEmpty }
        neighbour.closeInput()
        expect(try await neighbour.exit(), is: .status(0), "\(neighbour.text(of: .error))")
    }

    @Test func `what takes long to close holds up nobody but its user`() async throws {
        let fixture = try await Fixture.start()
        let neighbour = try await fixture.neighbour("linger")
        _ = try await neighbour.line(containing: "sent")
        let stay = try await fixture.attack("none", connections: 0, calls: 50)
        #expect(stay.calls > 0 && stay.served == stay.calls, "\(stay)")
        #expect(neighbour.isRunning)
        neighbour.closeInput()
        _ = try await neighbour.exit()
    }
}
