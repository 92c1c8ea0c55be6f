// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneSystemd
import Glibc
import Testing

/// What is asked of the service manager, on a bus of the test's own. See `Tests/LabSystemd`.
@Suite(.lab, .enabled(if: Bus.isThere, "there is no dbus-daemon here"))
struct UnitTests {
    @Test func `a unit is started, and its job is waited for`() async throws {
        let fixture = try await UnitFixture()
        expect(await fixture.start("good.service"), is: "done")
        _ = try await fixture.systemd.line(containing: "start good.service replace")
        expect(await fixture.start("good.service"), is: "done", "a second time over the same connection")
        expect(await fixture.start("eager.service"), is: "done", "also where the job is over before it has a name")
    }

    @Test func `what keeps a unit from being started is told in the manager's words`() async throws {
        let fixture = try await UnitFixture()
        expect(await fixture.start("broken.service"), is: "the unit's start ended as \"failed\"")
        expect(await fixture.start("missing.service"), is: "Unit missing.service not found.")
        expect(await fixture.thaw("missing.service"), is: "Unit missing.service not loaded.")
    }

    @Test func `a slow unit holds up nobody else`() async throws {
        let fixture = try await UnitFixture()
        async let slow = fixture.start("slow.service")
        _ = try await fixture.systemd.line(containing: "start slow.service")
        expect(await fixture.thaw("frozen.service"), is: "done")
        try await fixture.systemd.send("finish\n")
        expect(await slow, is: "done")
    }

    @Test func `a bus that goes in the middle is an answer, and one that returns is used again`() async throws {
        let fixture = try await UnitFixture()
        async let slow = fixture.start("slow.service")
        async let mute = fixture.start("mute.service")
        _ = try await fixture.systemd.line(containing: "start slow.service")
        _ = try await fixture.systemd.line(containing: "start mute.service")
        _ = try await fixture.daemon.killNow()
        let (job, answer) = await (slow, mute)
        #expect(job == "the bus is gone", "what waits for a job")
        #expect(answer == "the bus is gone", "what waits for the answer to its call")
        try await fixture.restart()
        expect(await fixture.start("good.service"), is: "done")
    }

    @Test func `a manager that comes anew on the same bus is heard of its jobs`() async throws {
        let fixture = try await UnitFixture()
        async let slow = fixture.start("slow.service")
        _ = try await fixture.systemd.line(containing: "start slow.service")
        _ = try await fixture.systemd.killNow()
        try await fixture.restartSystemd()
        expect(await fixture.start("good.service"), is: "done")
        // Its first job, as the other's was.
        try await fixture.systemd.send("finish\n")
        expect(await slow, is: "done")
    }

    @Test func `what may have begun when the bus went is stopped before the next begins`() async throws {
        let fixture = try await UnitFixture()
        try await fixture.systemd.send("ignore\n")
        _ = try await fixture.systemd.line(containing: "ignore")
        async let first = fixture.run("first")
        _ = try await fixture.systemd.line(containing: "transient first.service fail")
        _ = try await fixture.daemon.killNow()
        expect(await first, is: "the bus is gone")
        // Of this one nothing was asked.
        expect(await fixture.run("never")) { $0.contains("there is no bus") }
        try await fixture.restart()
        expect(await fixture.run("second"), is: "began")
        let systemd = await fixture.systemd
        let stop = try await systemd.line(containing: "stop first.service replace")
        _ = try await systemd.line(after: stop, containing: "transient second.service fail")
        #expect(!systemd.lines.contains { $0.text.contains("never") })
    }
}

/// A bus, what stands for systemd on it, and the manager that asks.
@AgentQueue
private final class UnitFixture {
    private let machine: Namespace
    private let bus: Bus
    private(set) var daemon: LabProcess
    private(set) var systemd: LabProcess
    private let units: UnitManager
    private let programs: UnitPrograms

    init() async throws {
        machine = try await Namespace.island()
        bus = try Bus()
        daemon = try await bus.start(on: machine)
        systemd = try await bus.systemd(on: machine)
        let address = bus.environment["DBUS_SYSTEM_BUS_ADDRESS"]
        (units, programs) = (UnitManager(address: address), UnitPrograms(address: address))
    }

    func restart() async throws {
        daemon = try await bus.start(on: machine)
        try await restartSystemd()
    }

    func restartSystemd() async throws { systemd = try await bus.systemd(on: machine) }

    func start(_ unit: String) async -> String { await ask { self.units.start(unit, $0) } }

    /// What came of the start of a program that does nothing.
    func run(_ name: String) async -> String {
        let program = UnitProgram(
            name: name, description: "A test's", command: ["/bin/true"], user: geteuid(), directory: "/",
            environment: [], identifier: name, writesToSocket: false, startLimit: .seconds(10))
        return await withCheckedContinuation { continuation in
            programs.start(program, socket: nil) { result in
                switch result {
                case .success: continuation.resume(returning: "began")
                case .failure(let failure): continuation.resume(returning: failure.text)
                }
            } ended: { _ in
            }
        }
    }

    func thaw(_ unit: String) async -> String { await ask { self.units.thaw(unit, $0) } }

    /// What came of a request, in words.
    private func ask(
        _ begin: @AgentQueue (@escaping @AgentQueue (UnitManager.Outcome) -> Void) -> Void
    ) async -> String {
        await withCheckedContinuation { continuation in
            begin { outcome in
                switch outcome {
                case .success: continuation.resume(returning: "done")
                case .failure(let failure): continuation.resume(returning: failure.text)
                }
            }
        }
    }
}
