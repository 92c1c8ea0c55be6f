// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneResolver
import DialtoneTestSupport
import Testing

@testable import Reachability

/// A name that is watched, against a real name server.
@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct NameTrackerTests {
    private nonisolated let v4 = IPAddress(v4: 0xC633_6407)
    private nonisolated let v6 = IPAddress(v6: 0x2001_0db8 << 96 | 7)

    /// A tracker of one name, and the states that it told of.
    @AgentQueue
    private final class Fixture {
        let resolver: Resolver
        private let directory = TemporaryDirectory()
        private(set) var tracker: NameTracker?
        private let told = AsyncStream<[IPAddress]>.makeStream()

        init(
            _ server: NameServerStub, named name: String = "sip.example.com", record: NameRecord = NameRecord(),
            patience: Duration = NameTracker.otherFamilyPatience,
            mayAsk: @escaping @AgentQueue () -> Bool = { true }
        ) throws {
            try directory.write("nameserver 127.0.0.1\n", to: "resolv.conf")
            let files = NameFiles(
                resolvConf: "\(directory.path)/resolv.conf", hosts: "\(directory.path)/hosts", nsswitch: "/nonexistent")
            resolver = Resolver(files: files, port: server.port)
            tracker = NameTracker(name, by: resolver, record: record, patience: patience, mayAsk: mayAsk) {
                [weak self] in
                self?.changed()
            }
            resolver.onAnswer = { [weak self] _, family, answer in self?.tracker?.overheard(answer, for: family) }
        }

        func writeHosts(_ text: String) throws {
            try directory.write(text, to: "hosts")
            tracker?.hostsFileChanged()
        }

        /// The addresses that are told next; none for a name that is not resolved, and at the test's time limit `nil`.
        func next() async -> [IPAddress]? {
            for await addresses in told.stream { return addresses }
            return nil
        }

        private func changed() {
            if case .resolved(let known)? = tracker?.state {
                told.continuation.yield(known)
            } else {
                told.continuation.yield([])
            }
        }

        isolated deinit {
            tracker?.stop()
        }
    }

    @AgentQueue
    private final class Budget {
        var isLeft = false
    }

    @Test func `that nobody could ask is no answer for somebody who can`() async throws {
        let (server, v4) = (NameServerStub { [v4] _ in .addresses([v4], ttl: 60) }, v4)
        let budget = Budget()
        let fixture = try Fixture(server, mayAsk: { budget.isLeft })
        #expect(fixture.tracker?.state == .unresolved(isFinal: false))
        fixture.tracker?.askIfHeldBack()
        #expect(fixture.tracker?.state == .unresolved(isFinal: false))
        budget.isLeft = true
        fixture.tracker?.askIfHeldBack()
        #expect(fixture.tracker?.state == .pending)
        while let addresses = await fixture.next(), addresses != [v4] {}
        #expect(server.asked.count == 2)
    }

    @Test func `a family that comes soon after the other is told with it`() async throws {
        let server = NameServerStub { [v4, v6] in
            $0.isForV4 ? .addresses([v4], ttl: 60) : .held(.addresses([v6], ttl: 60))
        }
        let fixture = try Fixture(server, patience: .seconds(30))
        while fixture.tracker?.state == .pending { try await turn() }
        server.releaseHeld()
        expect(await fixture.next(), is: [v6, v4])
    }

    @Test func `one family that is late is not waited for and is added later`() async throws {
        let server = NameServerStub { [v4, v6] in
            $0.isForV4 ? .addresses([v4], ttl: 60) : .held(.addresses([v6], ttl: 60))
        }
        let fixture = try Fixture(server)
        expect(await fixture.next(), is: [v4])
        server.releaseHeld()
        expect(await fixture.next(), is: [v6, v4])
    }

    @Test func `addresses that expire are asked for again`() async throws {
        let rounds = Lock(UInt32(0))
        let server = NameServerStub { question in
            guard question.isForV4 else { return .empty }
            let round = rounds.withLock { rounds in
                rounds += 1
                return rounds
            }
            return .addresses([IPAddress(v4: 0xC633_6400 + round)], ttl: 0)
        }
        let fixture = try Fixture(server, record: NameRecord(shortest: .milliseconds(10)))
        for round in 1...3 as ClosedRange<UInt32> {
            expect(await fixture.next(), is: [IPAddress(v4: 0xC633_6400 + round)])
        }
    }

    @Test func `a name that nobody watches is not asked for again`() async throws {
        let server = NameServerStub { [v4] in $0.isForV4 ? .addresses([v4], ttl: 0) : .empty }
        let fixture = try Fixture(server, record: NameRecord(shortest: .milliseconds(1)))
        _ = await fixture.next()
        fixture.tracker?.stop()
        // Another's timer of the same length, set later, has fired by the time that it asks the second time.
        let witness = try Fixture(server, named: "other.example.com", record: NameRecord(shortest: .milliseconds(1)))
        _ = await witness.next()
        // What was asked before the stop comes to the server before what this one asks.
        let others = { server.asked.drop { $0.name != "other.example.com" }.map(\.name) }
        while others().count < 4 { try await turn() }
        #expect(others().allSatisfy { $0 == "other.example.com" }, "\(others())")
    }

    @Test func `what a dial is told is taken down`() async throws {
        let answers = Lock([v4])
        let server = NameServerStub { question in
            question.isForV4 ? .addresses(answers.withLock { $0 }, ttl: 600) : .empty
        }
        let fixture = try Fixture(server)
        expect(await fixture.next(), is: [v4])
        let moved = IPAddress(v4: 0xC633_6408)
        answers.withLock { $0 = [moved] }
        expect(await fixture.resolver.resolve("sip.example.com"), is: [moved])
        expect(await fixture.next(), is: [moved])
    }

    @Test func `the hosts file concerns the names in it`() async throws {
        let server = NameServerStub { [v4] in $0.isForV4 ? .addresses([v4], ttl: 600) : .empty }
        let fixture = try Fixture(server)
        expect(await fixture.next(), is: [v4])
        let count = server.asked.count
        try fixture.writeHosts("192.0.2.9 other.example.com\n")
        try fixture.writeHosts("192.0.2.9 sip.example.com\n")
        expect(await fixture.next(), is: [IPAddress(v4: 0xC000_0209)])
        #expect(server.asked.count == count)
        try fixture.writeHosts("")
        expect(await fixture.next(), is: [v4])
    }

    @Test func `a name that ceases to exist has no address any more`() async throws {
        let exists = Lock(true)
        let server = NameServerStub { [v4] question in
            guard exists.withLock({ $0 }) else { return .code(3) }
            return question.isForV4 ? .addresses([v4], ttl: 600) : .empty
        }
        let fixture = try Fixture(server)
        expect(await fixture.next(), is: [v4])
        exists.withLock { $0 = false }
        fixture.tracker?.networkChanged()
        expect(await fixture.next(), is: [])
    }
}

extension Resolver {
    @AgentQueue
    fileprivate func resolve(_ name: String) async -> [IPAddress] {
        await withCheckedContinuation { continuation in
            _ = resolve(name) { continuation.resume(returning: (try? $0.get().addresses) ?? []) }
        }
    }
}
