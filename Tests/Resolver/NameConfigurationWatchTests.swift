// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneResolver

@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct NameConfigurationWatchTests {
    /// A directory of the test's own, and what the watch of the files in it tells.
    @AgentQueue
    private final class Fixture {
        typealias Change = NameConfigurationWatch.Change

        private let place = TemporaryDirectory()
        var directory: String { place.path }
        private(set) var watch: NameConfigurationWatch?
        private let changes = AsyncStream<(Change, [String])>.makeStream()

        func start() {
            watch = NameConfigurationWatch(NameFiles(in: place)) { [weak self] in self?.add($0) }
        }

        private func add(_ change: Change) {
            changes.continuation.yield((change, now ?? []))
        }

        var now: [String]? { watch?.servers.map(\.address.description) }

        /// The servers after the next change, which is one of them; `nil` at the test's time limit.
        func next() async -> [String]? {
            guard let (change, servers) = await nextChange() else { return nil }
            #expect(change == .servers)
            return servers
        }

        func nextChange() async -> (Change, [String])? {
            for await change in changes.stream { return change }
            return nil
        }

        func write(_ server: String, to file: String = "resolv.conf", atomically: Bool = true) throws {
            try write(text: "nameserver \(server)\n", to: file, atomically: atomically)
        }

        func write(text: String, to file: String, atomically: Bool = true) throws {
            try place.write(text, to: file, atomically: atomically)
        }

        func link(_ file: String, to target: String) {
            unlink("\(directory)/\(file)")
            symlink(target, "\(directory)/\(file)")
        }

        isolated deinit {
            watch?.cancel()
        }
    }

    /// Returns when what happened to any file before the call was heard: a change made after it was.
    private func settle() async throws {
        let witness = Fixture()
        witness.start()
        try witness.write("192.0.2.99")
        _ = await witness.next()
    }

    @Test(arguments: [true, false]) func `a file replaced or written in place is read again`(atomically: Bool)
        async throws
    {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        #expect(fixture.now == ["192.0.2.1"])
        try fixture.write("192.0.2.2", atomically: atomically)
        expect(await fixture.next(), is: ["192.0.2.2"])
        #expect(fixture.now == ["192.0.2.2"])
    }

    @Test func `a file that is created later is read once it is written`() async throws {
        let fixture = Fixture()
        fixture.start()
        #expect(fixture.now == [])
        try fixture.write("192.0.2.1", atomically: false)
        expect(await fixture.next(), is: ["192.0.2.1"])
    }

    @Test func `a file that goes leaves no servers`() async throws {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        unlink("\(fixture.directory)/resolv.conf")
        expect(await fixture.next(), is: [])
    }

    @Test func `a change that leaves the meaning as it is is not told`() async throws {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        try fixture.write("192.0.2.1\n# search example.com\n\n; options ndots:2")
        try await settle()
        try fixture.write("192.0.2.1", to: "other.conf")
        try await settle()
        try fixture.write("192.0.2.2")
        expect(await fixture.next(), is: ["192.0.2.2"])
    }

    @Test func `what else changes the answers is told apart`() async throws {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        try fixture.write("192.0.2.1\nsearch example.com")
        expect(try #require(await fixture.nextChange())) { $0 == (.search, ["192.0.2.1"]) }
        try fixture.write("192.0.2.2\nsearch example.com\noptions ndots:2")
        expect(try #require(await fixture.nextChange())) { $0 == ([.search, .servers], ["192.0.2.2"]) }
        try fixture.write(text: "192.0.2.9 pbx", to: "hosts")
        expect(try #require(await fixture.nextChange())) { $0 == (.hosts, ["192.0.2.2"]) }
        try fixture.write(text: "hosts: dns files", to: "nsswitch.conf")
        expect(try #require(await fixture.nextChange())) { $0 == (.search, ["192.0.2.2"]) }
        try fixture.write(text: "hosts: dns files\npasswd: files", to: "nsswitch.conf", atomically: false)
        try await settle()
        unlink("\(fixture.directory)/hosts")
        expect(try #require(await fixture.nextChange())) { $0 == (.hosts, ["192.0.2.2"]) }
    }

    @Test func `a refresh tells what differs and nothing else`() async throws {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        fixture.watch?.refresh()
        try fixture.write("192.0.2.2")
        // Before inotify's event had its turn, and that one finds nothing new.
        fixture.watch?.refresh()
        #expect(fixture.now == ["192.0.2.2"])
        expect(await fixture.next(), is: ["192.0.2.2"])
        try await settle()
        try fixture.write("192.0.2.3")
        expect(await fixture.next(), is: ["192.0.2.3"])
    }

    @Test func `a link is followed to its target and to its next`() async throws {
        let fixture = Fixture()
        for manager in ["one", "two"] {
            try FileManager.default.createDirectory(
                atPath: "\(fixture.directory)/\(manager)", withIntermediateDirectories: true)
        }
        try fixture.write("192.0.2.1", to: "one/stub.conf")
        try fixture.write("192.0.2.2", to: "two/stub.conf")
        fixture.link("resolv.conf", to: "one/stub.conf")
        fixture.start()
        #expect(fixture.now == ["192.0.2.1"])
        try fixture.write("192.0.2.11", to: "one/stub.conf")
        expect(await fixture.next(), is: ["192.0.2.11"])
        // Moved in one step, as a manager does it.
        fixture.link("new", to: "\(fixture.directory)/two/stub.conf")
        rename("\(fixture.directory)/new", "\(fixture.directory)/resolv.conf")
        expect(await fixture.next(), is: ["192.0.2.2"])
        try fixture.write("192.0.2.22", to: "two/stub.conf")
        expect(await fixture.next(), is: ["192.0.2.22"])
        try fixture.write("192.0.2.12", to: "one/stub.conf")
        try fixture.write("192.0.2.23", to: "two/stub.conf")
        expect(await fixture.next(), is: ["192.0.2.23"])
    }

    @Test func `a target whose directory does not exist yet is found when it comes`() async throws {
        let fixture = Fixture()
        fixture.link("resolv.conf", to: "run/manager/stub.conf")
        fixture.start()
        #expect(fixture.now == [])
        try FileManager.default.createDirectory(
            atPath: "\(fixture.directory)/run/manager", withIntermediateDirectories: true)
        try fixture.write("192.0.2.1", to: "run/manager/stub.conf")
        expect(await fixture.next(), is: ["192.0.2.1"])
    }

    @Test func `a loop of links has no servers`() throws {
        let fixture = Fixture()
        fixture.link("resolv.conf", to: "other.conf")
        fixture.link("other.conf", to: "resolv.conf")
        fixture.start()
        #expect(fixture.now == [])
    }

    @Test func `after cancel nothing is told`() async throws {
        let fixture = Fixture()
        try fixture.write("192.0.2.1")
        fixture.start()
        fixture.watch?.cancel()
        try fixture.write("192.0.2.2")
        try await settle()
        #expect(fixture.now == ["192.0.2.1"])
    }
}
