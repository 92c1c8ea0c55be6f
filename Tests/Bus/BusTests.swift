// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneBus

private let name = "org.example.Server"

/// How many calls were taken, and how many before somebody else had a turn.
@AgentQueue
private final class Flood {
    var taken = 0
    var takenBefore = 0
}

/// What is called and served over a real bus.
@Suite(.serialized) struct BusTests {
    @Test(arguments: PrivateBus.kinds) func `each value crosses the bus and comes back`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        try await line.serve([
            .init("Echo", [.init("value", "v")], returns: [.init("value", "v")]) { $0.reply($0.arguments) }
        ])
        let values: [BusValue] = [
            .string("ä€"), .string(""), .path("/a/b"), .boolean(true), .byte(255), .int32(.min), .uint32(.max),
            .int64(.min), .uint64(.max), .double(0.5), .bytes([]), .bytes([0, 255]), .strings([]), .strings(["a", ""]),
            .dictionary([:]), .dictionary(["a": .string("b"), "c": .dictionary(["d": .bytes([1])])]),
            .structure([.int32(1), .structure([.string("x")])]), .variant(.variant(.byte(1))),
            .array(of: "a{sv}", [.dictionary(["k": .boolean(false)])]),
            .array(of: "(ss)", [.structure([.string("a"), .string("b")])]),
        ]
        for value in values {
            expect(try await line.caller.call(name, "Echo", [.variant(value)]), is: .success([.variant(value)]))
        }
        for value in [BusValue.path("no path"), .other("h"), .dictionary(["a": .other("g")])] {
            try expect(await line.caller.call(name, "Echo", [.variant(value)])) {
                if case .failure(.refusedByBus(BusFailure.Name.invalidArguments, _)) = $0 { true } else { false }
            }
        }
    }

    @Test(arguments: PrivateBus.kinds) func `what is larger or deeper than anybody means is refused`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        try await line.serve([.init("Take", [.init("value", "v")]) { $0.reply() }])
        func deep(_ count: Int) -> BusValue { (1..<count).reduce(.byte(1)) { value, _ in .variant(value) } }
        let values: [(BusValue, isTaken: Bool)] = [
            // Its type counts, too.
            (.bytes(.init(repeating: 0, count: 64 * 1024 - 2)), true),
            (.bytes(.init(repeating: 0, count: 64 * 1024 - 1)), false),
            (.string(String(repeating: "a", count: 64 * 1024 + 1)), false),
            (.array(of: "y", []), true), (.array(of: "u", .init(repeating: .uint32(1), count: 4094)), true),
            (.array(of: "u", .init(repeating: .uint32(1), count: 4095)), false), (deep(8), true), (deep(9), false),
        ]
        for (value, isTaken) in values {
            let answer = try await line.caller.call(name, "Take", [.variant(value)])
            if isTaken {
                expect(answer, is: .success([]), "\(value.signature)")
            } else {
                expect(answer, "\(value.signature)") {
                    if case .failure(.error(BusFailure.Name.invalidArguments, _)) = $0 { true } else { false }
                }
            }
        }
    }

    @Test(arguments: PrivateBus.kinds) func `what nobody reads of a call is held against the same bounds`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        try await line.serve([
            .init("Take", [.init("value", "v")], returns: [.init("type", "s")]) { call in
                guard case .variant(let value) = call.arguments.first else { return }
                call.reply([.string(value.signature)])
            }
        ])
        let text = String(repeating: "a", count: 50_000)
        let type = "a(" + String(repeating: "y", count: 240) + ")"
        func many(_ count: Int, _ value: String...) -> [String] {
            ["\(count)"] + Array(repeating: value, count: count).flatMap(\.self)
        }
        let values: [(type: String, value: [String], isTaken: Bool)] = [
            ("a{ss}", ["1", "key", text], true), ("a{ss}", ["2", "key", text, "other", text], false),
            ("a{sas}", ["1", "key", "2", text, text], false), ("a{sa{ss}}", ["1", "key", "1", text, text], false),
            ("a{uv}", ["1", "7", "s", text], true), ("a{uv}", ["2", "7", "s", text, "8", "s", text], false),
            ("(ua{uu})", ["1"] + many(1000, "1", "2"), true), ("(ua{uu})", ["1"] + many(1500, "1", "2"), false),
            ("ag", many(10, type), true), ("ag", many(300, type), false),
            ("av", many(10, type, "0"), true), ("av", many(300, type, "0"), false), ("q", ["7"], true),
        ]
        for value in values {
            let result = Program.run(
                systemProgram("busctl") ?? "",
                ["--address=\(line.bus.address)", "call", name, "/test", "org.example.Test", "Take", "v", value.type]
                    + value.value)
            let (said, isTaken) = ((result.output + result.error).prefix(200), value.isTaken)
            #expect(said.contains("s \"\(value.type)\"") == isTaken, "\(value.type), taken \(isTaken): \(said)")
            #expect(said.contains("within 64 KiB") != isTaken, "\(value.type), taken \(isTaken): \(said)")
        }
    }

    @Test(arguments: PrivateBus.kinds) func `a call that waits keeps nothing of what came with it`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        let calls = Lock<[BusCall]>([])
        try await line.serve([
            .init("Keep", [.init("file", "h")], returns: [.init("who", "s")]) { call in
                calls.withLock { $0.append(call) }
            }
        ])
        var ends: [CInt] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let (kept, given) = (ends[0], ends[1])
        defer { close(kept) }
        let answers = Lock<[Bool]>([])
        await onQueue {
            line.caller.connection?.call(
                name, "/test", "org.example.Test", "Keep", filling: { $0.descriptor(given) }
            ) { answer in answers.withLock { $0.append((try? answer.get()) != nil) } }
        }
        close(given)
        try await eventually("it arrives") { calls.withLock { $0.count } == 1 }
        // Whoever has the message has the other end.
        try await eventually("the message is gone") {
            var request = pollfd(fd: kept, events: 0, revents: 0)
            return poll(&request, 1, 0) == 1 && CInt(request.revents) & POLLHUP != 0
        }
        expect(await onQueue { calls.withLock { $0.first?.arguments } }, is: [])
        #expect(answers.withLock { $0 } == [])
        await onQueue { calls.withLock { $0.first }?.reply([.string("later")]) }
        try await eventually("it is answered") { answers.withLock { $0 } == [true] }
        await onQueue { calls.withLock { $0 = [] } }
    }

    @Test(arguments: PrivateBus.kinds) func `a call is answered later, with its sender's name`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        let calls = Lock<[BusCall]>([])
        try await line.serve([
            .init("Later", [], returns: [.init("who", "s")]) { call in calls.withLock { $0.append(call) } }
        ])
        async let answer = line.caller.call(name, "Later")
        try await eventually("it arrives") { calls.withLock { $0.count } == 1 }
        await onQueue {
            for call in calls.withLock({ $0 }) {
                call.reply([.string(call.sender)])
                call.fail(BusFailure.Name.failed, "a second answer is none")
            }
            calls.withLock { $0 = [] }
        }
        let sender = await onQueue { line.caller.connection?.uniqueName ?? "" }
        #expect(sender.hasPrefix(":"), "\(sender)")
        expect(try await answer, is: .success([.string(sender)]))
        // One that is let go of.
        async let none = line.caller.call(name, "Later")
        try await eventually("it arrives") { calls.withLock { $0.count } == 1 }
        await onQueue { calls.withLock { $0 = [] } }
        expect(
            try await none, is: .failure(.error(name: BusFailure.Name.failed, text: "nobody answered this call")))
    }

    @Test(arguments: PrivateBus.kinds) func `why there is no answer is told apart`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        let calls = Lock<[BusCall]>([])
        try await line.serve([
            .init("Keep", []) { call in calls.withLock { $0.append(call) } },
            .init("Fail", []) { $0.fail("org.example.Error.No", "no") },
        ])
        expect(
            try await line.caller.call(name, "Fail"),
            is: .failure(.error(name: "org.example.Error.No", text: "no")))
        expect(try await line.caller.call(name, "Keep", limit: .milliseconds(50)), is: .failure(.timedOut))
        try expect(await line.caller.call("org.example.Nobody", "Any", isStarting: true)) {
            if case .failure(.unknownService) = $0 { true } else { false }
        }
        let started = Lock<Result<Void, BusFailure>?>(nil)
        await onQueue {
            line.caller.connection?.start("org.example.Nobody") { answer in started.withLock { $0 = answer } }
        }
        try await eventually("an answer to a start") { started.withLock { $0 != nil } }
        expect(started.withLock { $0 }) {
            if case .failure(.unknownService) = $0 { true } else { false }
        }
        async let left = line.caller.call(name, "Keep")
        try await eventually("it arrives") { calls.withLock { $0.count } == 2 }
        await line.server.leave()
        expect(try await left, is: .failure(.serviceEnded))
        await onQueue { calls.withLock { $0 = [] } }
        line.bus.stop()
        try await eventually("the loss is told") { line.caller.news == ["connected", "lost"] }
        expect(try await line.caller.call(name, "Any"), is: .failure(.disconnected))
    }

    @Test(arguments: PrivateBus.kinds) func `a bus that is lost fails what waits and is served again`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        let calls = Lock<[BusCall]>([])
        try await line.serve([.init("Keep", []) { call in calls.withLock { $0.append(call) } }])
        async let waits = line.caller.call(name, "Keep")
        try await eventually("it arrives") { calls.withLock { $0.count } == 1 }
        line.bus.stop()
        expect(try await waits, is: .failure(.disconnected))
        try await line.bus.start()
        try await eventually("both are back") {
            line.caller.news == ["connected", "lost", "connected"] && line.server.news == line.caller.news
        }
        // The server asks for its name when it is back.
        let isOwned = Lock(false)
        try await eventually("its name is back") {
            line.caller.connection?.hasOwner(name) { answer in
                if case .success(true) = answer { isOwned.withLock { $0 = true } }
            }
            return isOwned.withLock { $0 }
        }
        // An answer to who asked on the bus before is nobody's.
        await onQueue { for call in calls.withLock({ $0 }) { call.reply() } }
        async let again = line.caller.call(name, "Keep")
        try await eventually("it is served again") { calls.withLock { $0.count } == 2 }
        await onQueue { calls.withLock { $0.last }?.reply() }
        expect(try await again, is: .success([]))
        await onQueue { calls.withLock { $0 = [] } }
    }

    @Test(arguments: PrivateBus.kinds) func `a name is waited for in line`(_ kind: PrivateBus.Kind) async throws {
        let line = try await Line(kind)
        let states = Lock<[BusConnection.NameState]>([])
        try await line.serve([])
        await onQueue { line.caller.connection?.own(name) { state in states.withLock { $0.append(state) } } }
        try await eventually("it waits") { states.withLock { $0 } == [.waiting] }
        await line.server.leave()
        try await eventually("it is its turn") { states.withLock { $0 } == [.waiting, .owned] }
        await onQueue {
            line.caller.connection?.own("no name") { state in states.withLock { $0.append(state) } }
        }
        try await eventually("the bus refuses one that is none") {
            if case .refused = states.withLock({ $0.last }) { true } else { false }
        }
    }

    @Test(arguments: PrivateBus.kinds) func `who is behind a name is asked for and followed`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        let seen = Lock<[String]>([])
        @Sendable func note(_ text: String) { seen.withLock { $0.append(text) } }
        await onQueue {
            let caller = line.caller.connection
            caller?.followOwner(of: name) { note($0 == nil ? "gone" : "there") }
            caller?.owner(of: name) { note("owner \((try? $0.get()) ?? "none")") }
        }
        try await eventually("nobody owns it") { seen.withLock { $0 } == ["owner none"] }
        try await line.serve([])
        try await eventually("it is told") { seen.withLock { $0 } == ["owner none", "there"] }
        let unique = await onQueue { line.server.connection?.uniqueName ?? "" }
        await onQueue {
            let caller = line.caller.connection
            caller?.owner(of: name) { note("owner \((try? $0.get()) ?? "none")") }
            caller?.hasOwner(name) { note("owned \((try? $0.get()) ?? false)") }
            caller?.credentials(of: unique) {
                let credentials = try? $0.get()
                note("user \(credentials?.user ?? 0) process \(credentials?.process ?? 0)")
            }
            caller?.activatableNames { note("activatable \((try? $0.get()) ?? [])") }
        }
        try await eventually("all answers") { seen.withLock { $0.count } == 6 }
        #expect(
            Array(seen.withLock { $0 }[2..<5]) == [
                "owner \(unique)", "owned true", "user \(geteuid()) process \(getpid())",
            ])
        await line.server.leave()
        try await eventually("it is told") { seen.withLock { $0.last } == "gone" }
    }

    @Test func `only names that the bus takes are names`() {
        let names = ["org.example.App", ":1.5", "org", "org.example.App'", "org..x", "", "org.1x"]
        #expect(names.filter(BusConnection.isServiceName) == ["org.example.App", ":1.5"])
    }

    @Test(arguments: PrivateBus.kinds) func `a flood of calls leaves others their turns`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let line = try await Line(kind)
        // dbus-daemon lets 128 calls of a program wait for their answers.
        let all = 2 * BusConnection.mostInTurn - 8
        let flood = Flood()
        try await line.serve([
            .init("Take", []) { call in
                flood.taken += 1
                if flood.taken == 1 { AgentQueue.async { flood.takenBefore = flood.taken } }
                // Long enough for the bus to have the next one ready.
                var sum = 0
                for number in 0..<20_000 { sum ^= number }
                if sum >= 0 { call.reply() }
            }
        ])
        await onQueue {
            for _ in 0..<all { line.caller.connection?.call(name, "/test", "org.example.Test", "Take") { _ in } }
        }
        try await eventually("all are taken") { flood.taken == all }
        expect(await flood.takenBefore) { (1...BusConnection.mostInTurn).contains($0) }
    }
}
