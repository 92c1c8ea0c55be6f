// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneLabSupport
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import Glibc
import Testing

/// Programs that run as units, and how they ended, told by what stands for systemd. See `Tests/LabSystemd`.
@Suite(.lab, .launcher) @AgentQueue
struct UnitProgramTests {
    @Test(arguments: [
        ("exit 0", ProgramEnd.exited(status: 0)), ("exit 7", .exited(status: 7)),
        ("kill -TERM $$", .killed(signal: SIGTERM)),
    ])
    func `how a program ended is told`(script: String, end: ProgramEnd) async throws {
        let fixture = try await UnitProgramFixture()
        _ = try await fixture.run(script)
        try await eventually("its end is told") { fixture.ends == [end] }
    }

    @Test func `a program whose bus went is one that runs until its process has ended`() async throws {
        let fixture = try await UnitProgramFixture()
        let process = try await fixture.run("exec sleep 1000")
        #expect(process.isAlive)
        _ = try await fixture.bus.killNow()
        // It is told after what the bus's end brought with it.
        await #expect(throws: NotRun.self) { _ = try await fixture.run("exit 0") }
        #expect(fixture.ends == [])
        #expect(process.isAlive)
        try process.signal(SIGKILL)
        try await eventually("its end is told") { fixture.ends == [.unseen] }
    }
}

/// A program was not run.
private struct NotRun: Error {
    let reason: String
}

/// A launcher's activator, and the bus that it asks.
@AgentQueue
private final class UnitProgramFixture {
    let bus: LabProcess
    private let machine: Namespace
    private let place: Bus
    private let groups: GroupTree
    private let activator: Activator
    private(set) var ends: [ProgramEnd] = []

    init() async throws {
        machine = try await Namespace.island()
        place = try Bus()
        groups = try GroupTree()
        bus = try await place.start(on: machine)
        _ = try await place.systemd(on: machine, group: try groups.make("units"))
        activator = Activator(
            bus: place.environment["DBUS_SYSTEM_BUS_ADDRESS"],
            programsAsUnitsBy: LabAgent.program("dialtone-launcher"))
    }

    /// The process of a shell's script.
    func run(_ script: String) async throws -> ProcessHandle {
        let user = ProgramIdentity(
            user: geteuid(), group: getegid(), groups: [], name: "tester", home: "/", shell: "/bin/sh")
        let program = WakeTargets.Program(command: ["/bin/sh", "-c", script], streams: .standard, identity: user)
        let order = WakeOrder(
            WakeAttempt(wake: 1, attempt: 1, means: .exec, reasons: []), WakeTargets(program: program),
            connection: "office", owner: geteuid(), epoch: 1, socketPath: "/nowhere")
        return try await withCheckedThrowingContinuation { continuation in
            activator.perform(order, process: nil, socket: nil, ended: { [weak self] in self?.ends.append($0) }) {
                switch $0 {
                case .launched(let process): continuation.resume(returning: process)
                case .done: continuation.resume(throwing: NotRun(reason: "done"))
                case .failed(let reason): continuation.resume(throwing: NotRun(reason: reason))
                }
            }
        }
    }
}
