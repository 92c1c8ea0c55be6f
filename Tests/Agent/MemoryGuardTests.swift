// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Logging
import Testing

@testable import DialtoneAgent

/// A guard over memory of the test's, at a time of the test's.
@AgentQueue
final class MemoryFixture {
    var used: UInt64 = 1 << 20
    var now = Duration.seconds(100)
    private(set) var readings = 0
    private(set) var trims = 0
    var onTrim: @AgentQueue () -> Void = {}
    /// The number that the next descriptor would have, of a thousand.
    var nextDescriptor = 50
    private(set) lazy var memory = MemoryGuard(
        Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, now: { [weak self] in self?.now ?? .zero },
        trim: { [weak self] in
            self?.trims += 1
            self?.onTrim()
        },
        descriptors: DescriptorRoom(limit: 1000) { [weak self] in self?.nextDescriptor ?? 50 }
    ) { [weak self] _, _ in
        // A server that this guards may have a turn after the fixture is gone.
        self?.readings += 1
        return MemoryUse(name: "memory.max", limit: 32 << 20, used: self?.used ?? 0)
    }

    /// Whether new work of a user is admitted.
    func admits(_ user: UInt32 = 1000, _ work: MemoryBudget.Work = .connection(given: 0)) -> Bool {
        do throws(ResourceShortage) {
            try memory.admit(work, for: user)
            return true
        } catch {
            return false
        }
    }

    /// Lets what was admitted land, and the last reading grow old.
    func rest() { now += .seconds(1) }
}

/// New work where memory is short.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct MemoryGuardTests {
    @Test func `it is refused with the limit and what is in use, and admitted again when some was given back`() throws {
        let fixture = MemoryFixture()
        #expect(fixture.admits())
        fixture.rest()
        fixture.used = 25 << 20
        #expect(
            throws: ResourceShortage(
                reason: "25 MiB are in use and 0 about to be, of 32 MiB of memory.max, "
                    + "and the rest is kept for what there is")
        ) { try fixture.memory.admit(.subscription, for: 1000) }
        fixture.rest()
        fixture.used = 20 << 20
        #expect(fixture.admits())
    }

    @Test func `before anybody is refused, what lies free in the heap is given back, once in a while`() {
        let fixture = MemoryFixture()
        fixture.used = 31 << 20
        fixture.onTrim = { fixture.used = 1 << 20 }
        #expect(fixture.admits())
        #expect(fixture.trims == 1)
        (fixture.used, fixture.onTrim) = (31 << 20, {})
        fixture.now += .milliseconds(20)
        for _ in 0..<10 { #expect(!fixture.admits()) }
        #expect(fixture.trims == 1)
        fixture.onTrim = { fixture.used = 1 << 20 }
        #expect(fixture.admits(0), "root does not wait for it")
        #expect(fixture.trims == 2)
        (fixture.used, fixture.onTrim) = (31 << 20, {})
        fixture.now += .milliseconds(20)
        for _ in 0..<10 { #expect(!fixture.admits(0)) }
        #expect(fixture.trims == 2)
        for _ in 0..<10 { #expect(!fixture.admits(0, .client)) }
        #expect(fixture.trims == 12, "its way in least of all")
    }

    @Test func `a thousand at once are one reading`() {
        let fixture = MemoryFixture()
        let admitted = (0..<1000).count { _ in fixture.admits(1000, .client) }
        #expect((admitted, fixture.readings) == (1000, 1))
        fixture.rest()
        #expect(fixture.admits())
        #expect(fixture.readings == 2)
    }

    @Test func `what is taken at once is counted by the next reading`() {
        let fixture = MemoryFixture()
        fixture.used = 24 << 20
        #expect(fixture.admits(0, .answer(bytes: 3 << 20)))
        fixture.now += .milliseconds(20)
        #expect(fixture.admits(0, .answer(bytes: 4 << 20)), "a reading shows the first")
    }

    @Test func `under pressure memory is given back and others than root are refused, for two spans of the kernel's`() {
        let fixture = MemoryFixture()
        fixture.memory.pressed()
        #expect(fixture.trims == 1)
        #expect(!fixture.admits(4711))
        #expect(fixture.admits(0))
        fixture.now += MemoryPressure.span * 2
        #expect(fixture.admits(4711))
    }

    @Test func `systemd says what is watched, and nothing is where it says so`() throws {
        func source(_ environment: [String: String], group: String? = "/cg") -> MemoryPressure.Source? {
            MemoryPressure.source(group: group) { environment[$0] }
        }
        let standard = Array("\(MemoryPressure.standardTrigger)\0".utf8)
        #expect(source([:]) == .init(path: "/cg/memory.pressure", trigger: standard))
        #expect(source([:], group: nil) == nil)
        #expect(source(["MEMORY_PRESSURE_WATCH": "/dev/null"]) == nil)
        #expect(source(["MEMORY_PRESSURE_WATCH": "/run/x"]) == .init(path: "/run/x", trigger: []))
        #expect(
            source(["MEMORY_PRESSURE_WATCH": "/run/x", "MEMORY_PRESSURE_WRITE": "c29tZQA="])
                == .init(path: "/run/x", trigger: Array("some\0".utf8)))
    }

    @Test func `a word on a FIFO, as systemd allows, is one of pressure`() async throws {
        let path = NSTemporaryDirectory() + "pressure.\(UUID().uuidString)"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let writer = OwnedDescriptor(open(path, O_RDWR | O_CLOEXEC))
        var words = 0
        let pressure = try MemoryPressure(.init(path: path, trigger: [])) { words += 1 }
        for count in 1...2 {
            #expect(write(writer.number, "x", 1) == 1)
            try await eventually("word \(count)") { words == count }
        }
        withExtendedLifetime(pressure) {}
    }

    @Test(.enabled(if: access("/proc/pressure/memory", W_OK) == 0, "this kernel tells of no pressure"))
    func `the kernel takes the trigger, and says nothing while there is no pressure`() async throws {
        var words = 0
        let trigger = Array("\(MemoryPressure.standardTrigger)\0".utf8)
        let pressure = try MemoryPressure(.init(path: "/proc/pressure/memory", trigger: trigger)) { words += 1 }
        // A round of the poller, which would report a file that is taken for readable without an end.
        let fixture = ServiceFixture()
        for _ in 0..<3 { _ = try await fixture.client().ask(ConnectionsAPI.List.self, .init()) }
        #expect(words == 0)
        withExtendedLifetime(pressure) {}
    }

    @Test func `with three quarters of its descriptors in use nobody begins anything new, and root with seven eighths`()
    {
        let fixture = MemoryFixture()
        for (next, isAdmitted) in [
            (749, [true, true]), (750, [true, false]), (874, [true, false]), (875, [false, false]),
        ] {
            fixture.nextDescriptor = next
            #expect([0, 1000].map { fixture.admits($0) } == isAdmitted, "\(next)")
        }
        fixture.nextDescriptor = 50
        #expect(fixture.admits())
    }

    @Test func `the next descriptor is the lowest that is free`() throws {
        let room = DescriptorRoom()
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #expect(room.limit == Int(limit.rlim_cur) && room.shortage(forRoot: false) == nil, "\(room.limit)")
    }

    @Test func `connections, monitors and clients are refused by name, and what there is goes on`() async throws {
        let memory = MemoryFixture()
        let fixture = ServiceFixture(memory: memory.memory)
        let client = try fixture.client()
        _ = try await client.ask(ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "office"))
        let idle = try fixture.client()
        memory.rest()
        memory.used = 31 << 20
        let refusal: ConnectionsAPI.OutOfResources = try await client.refusal(
            of: ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1"))
        #expect(refusal.reason.contains("of 32 MiB of"))
        let _: ConnectionsAPI.OutOfResources = try await idle.monitor().refusal()
        let paths: NetworkAPI.OutOfResources = try await idle.stream(NetworkAPI.MonitorPath.self, .init()).refusal()
        #expect(paths.reason == refusal.reason)
        let late = try fixture.client()
        let turnedAway: ConnectionsAPI.OutOfResources = try await late.refusal(of: ConnectionsAPI.List.self, .init())
        #expect(turnedAway.reason == refusal.reason)
        try await eventually("it was hung up on") { fixture.server.connectionCount == 2 }
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections.map(\.name), is: ["office"])
        _ = try await client.ask(ConnectionsAPI.Redial.self, .init(name: "office"))
        memory.rest()
        memory.used = 1 << 20
        try await fixture.open("other")
        #expect(fixture.registry.count == 2)
    }

    @Test func `a long list is refused where there is no memory for it, and a short one told`() async throws {
        let memory = MemoryFixture()
        let fixture = ServiceFixture(memory: memory.memory)
        let client = try fixture.client()
        for number in 0..<40 {
            let remote = "ws://192.0.2.7:1/" + String(repeating: "t", count: 3000)
            _ = try await client.ask(ConnectionsAPI.Open.self, .init(remote: remote, name: "c\(number)"))
            memory.rest()
        }
        // A megabyte is promised to them, and root's answers may go up to thirty.
        memory.used = (28 << 20) + (750 << 10)
        memory.rest()
        let refusal: ConnectionsAPI.OutOfResources = try await client.refusal(
            of: ConnectionsAPI.List.self, .init())
        #expect(refusal.reason.contains("of 32 MiB"), "\(refusal.reason)")
        for number in 10..<40 {
            _ = try await client.ask(ConnectionsAPI.Close.self, .init(name: "c\(number)"))
        }
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections.count, is: 10)
        memory.rest()
        memory.used = 1 << 20
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections.count, is: 10)
    }
}
