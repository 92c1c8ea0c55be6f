// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSession

/// What UPower says of the battery. Its stand-in is `upower.py`.
@Suite struct PowerWatchTests {
    private typealias Power = PowerWatch.Power

    /// A bus that has UPower or not, and what is told of it.
    private final class Machine: Sendable {
        let bus: PrivateBus
        private let told = Lock<[Power]>([])
        private let watch = Lock<PowerWatch?>(nil)
        private let service = Lock<BusProgram?>(nil)

        init(_ kind: PrivateBus.Kind) async throws {
            bus = try PrivateBus(kind)
            try await bus.start()
        }

        func follow() async {
            let (told, address) = (told, bus.address)
            let made = await onQueue { PowerWatch(address: address) { power in told.withLock { $0.append(power) } } }
            watch.withLock { $0 = made }
        }

        /// Starts UPower, and returns when it answers.
        func start() async throws {
            let started = try BusProgram("upower", on: bus)
            service.withLock { $0 = started }
            try await eventually("UPower") { self.set("OnBattery", "<false>") }
        }

        func end() { service.withLock { $0 = nil } }

        /// Changes a property.
        @discardableResult
        func set(_ name: String, _ value: String) -> Bool {
            Program.run(
                systemProgram("gdbus") ?? "gdbus",
                [
                    "call", "--address", bus.address, "--dest", "org.freedesktop.UPower", "--object-path",
                    "/org/example/Test", "--method", "org.example.Test.Set", name, value,
                ]
            ).status == 0
        }

        /// Waits until that was told, as the last.
        func hears(_ power: Power) async throws {
            do {
                try await eventually("\(power)") { self.told.withLock { $0.last ?? Power() } == power }
            } catch let error as NothingCame {
                throw NothingCame(description: "\(error.description); told: \(told.withLock { $0 })")
            }
        }

        var count: Int { told.withLock { $0.count } }
    }

    @Test(arguments: kinds)
    func `it is told what changes, and the mains again when UPower ends`(_ kind: PrivateBus.Kind) async throws {
        let machine = try await Machine(kind)
        await machine.follow()
        try await machine.start()
        machine.set("OnBattery", "<true>")
        // A machine without a battery has one of no kind, with 0 %.
        try await machine.hears(Power(isOnBattery: true, level: nil))
        machine.set("OnBattery", "<false>")
        try await machine.hears(Power())
        machine.set("Type", "<uint32 2>")
        machine.set("Percentage", "<80.7>")
        machine.set("OnBattery", "<true>")
        try await machine.hears(Power(isOnBattery: true, level: 80))
        #expect(machine.count == 3, "how full it is at the mains is nothing to be woken for")
        let count = machine.count
        machine.set("Percentage", "<80.2>")
        machine.set("Percentage", "<-3.0>")
        try await machine.hears(Power(isOnBattery: true, level: 0))
        #expect(machine.count == count + 1, "what differs by less than a percent is no news")
        machine.set("Percentage", "<1e300>")
        try await machine.hears(Power(isOnBattery: true, level: 100))
        machine.end()
        try await machine.hears(Power())
        try await machine.start()
        machine.set("OnBattery", "<true>")
        try await machine.hears(Power(isOnBattery: true, level: nil))
    }

    @Test(arguments: kinds)
    func `what UPower knew before is asked for`(_ kind: PrivateBus.Kind) async throws {
        let machine = try await Machine(kind)
        try await machine.start()
        for (name, value) in [("Type", "<uint32 2>"), ("Percentage", "<15.0>"), ("OnBattery", "<true>")] {
            machine.set(name, value)
        }
        await machine.follow()
        try await machine.hears(Power(isOnBattery: true, level: 15))
        // What is of another type than it should be changes nothing.
        let count = machine.count
        machine.set("OnBattery", "<'no'>")
        machine.set("Percentage", "<uint32 3>")
        machine.set("Percentage", "<16.0>")
        try await machine.hears(Power(isOnBattery: true, level: 16))
        #expect(machine.count == count + 1)
    }
}
