// SPDX-License-Identifier: Apache-2.0

import Foundation
import NetworkPath
import Platform
import Testing

@testable import Resolver

@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct NameServerWatchTests {
    /// A directory of the test's own, and what the watch of a file in it tells.
    @AgentQueue
    private final class Bench {
        let directory = NSTemporaryDirectory() + "names.\(UUID().uuidString)"
        private(set) var watch: NameServerWatch?
        private var lists: [[IPAddress]] = []
        private var waiter: CheckedContinuation<[IPAddress], Never>?

        init() throws {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }

        func start(_ file: String = "resolv.conf") throws {
            watch = try NameServerWatch(file: "\(directory)/\(file)") { [weak self] in self?.add($0) }
        }

        private func add(_ list: [IPAddress]) {
            if let waiter {
                self.waiter = nil
                waiter.resume(returning: list)
            } else {
                lists.append(list)
            }
        }

        var now: [String]? { watch?.servers.map(\.description) }

        func next() async -> [String] {
            let list = lists.isEmpty ? await withCheckedContinuation { waiter = $0 } : lists.removeFirst()
            return list.map(\.description)
        }

        func write(_ server: String, to file: String = "resolv.conf", atomically: Bool = true) throws {
            let url = URL(fileURLWithPath: "\(directory)/\(file)")
            try Data("nameserver \(server)\n".utf8).write(to: url, options: atomically ? .atomic : [])
        }

        func link(_ file: String, to target: String) {
            unlink("\(directory)/\(file)")
            symlink(target, "\(directory)/\(file)")
        }

        isolated deinit {
            watch?.cancel()
            try? FileManager.default.removeItem(atPath: directory)
        }
    }

    /// Returns when what happened to any file before the call was heard: a change made after it was.
    private func settle() async throws {
        let witness = try Bench()
        try witness.start()
        try witness.write("192.0.2.99")
        _ = await witness.next()
    }

    @Test(arguments: [true, false]) func aFileReplacedOrWrittenInPlaceIsReadAgain(atomically: Bool) async throws {
        let bench = try Bench()
        try bench.write("192.0.2.1")
        try bench.start()
        #expect(bench.now == ["192.0.2.1"])
        try bench.write("192.0.2.2", atomically: atomically)
        #expect(await bench.next() == ["192.0.2.2"])
        #expect(bench.now == ["192.0.2.2"])
    }

    @Test func aFileThatIsCreatedLaterIsReadOnceItIsWritten() async throws {
        let bench = try Bench()
        try bench.start()
        #expect(bench.now == [])
        try bench.write("192.0.2.1", atomically: false)
        #expect(await bench.next() == ["192.0.2.1"])
    }

    @Test func aFileThatGoesLeavesNoServers() async throws {
        let bench = try Bench()
        try bench.write("192.0.2.1")
        try bench.start()
        unlink("\(bench.directory)/resolv.conf")
        #expect(await bench.next() == [])
    }

    @Test func aChangeThatLeavesTheListAsItIsIsNotTold() async throws {
        let bench = try Bench()
        try bench.write("192.0.2.1")
        try bench.start()
        try bench.write("192.0.2.1\nsearch example.com")
        try await settle()
        try bench.write("192.0.2.1", to: "other.conf")
        try await settle()
        try bench.write("192.0.2.2")
        #expect(await bench.next() == ["192.0.2.2"])
    }

    @Test func aLinkIsFollowedToItsTargetAndToItsNext() async throws {
        let bench = try Bench()
        for manager in ["one", "two"] {
            try FileManager.default.createDirectory(
                atPath: "\(bench.directory)/\(manager)", withIntermediateDirectories: true)
        }
        try bench.write("192.0.2.1", to: "one/stub.conf")
        try bench.write("192.0.2.2", to: "two/stub.conf")
        bench.link("resolv.conf", to: "one/stub.conf")
        try bench.start()
        #expect(bench.now == ["192.0.2.1"])
        try bench.write("192.0.2.11", to: "one/stub.conf")
        #expect(await bench.next() == ["192.0.2.11"])
        // Moved in one step, as a manager does it.
        bench.link("new", to: "\(bench.directory)/two/stub.conf")
        rename("\(bench.directory)/new", "\(bench.directory)/resolv.conf")
        #expect(await bench.next() == ["192.0.2.2"])
        try bench.write("192.0.2.22", to: "two/stub.conf")
        #expect(await bench.next() == ["192.0.2.22"])
        try bench.write("192.0.2.12", to: "one/stub.conf")
        try bench.write("192.0.2.23", to: "two/stub.conf")
        #expect(await bench.next() == ["192.0.2.23"])
    }

    @Test func aTargetWhoseDirectoryDoesNotExistYetIsFoundWhenItComes() async throws {
        let bench = try Bench()
        bench.link("resolv.conf", to: "run/manager/stub.conf")
        try bench.start()
        #expect(bench.now == [])
        try FileManager.default.createDirectory(
            atPath: "\(bench.directory)/run/manager", withIntermediateDirectories: true)
        try bench.write("192.0.2.1", to: "run/manager/stub.conf")
        #expect(await bench.next() == ["192.0.2.1"])
    }

    @Test func aLoopOfLinksHasNoServers() throws {
        let bench = try Bench()
        bench.link("resolv.conf", to: "other.conf")
        bench.link("other.conf", to: "resolv.conf")
        try bench.start()
        #expect(bench.now == [])
    }

    @Test func afterCancelNothingIsTold() async throws {
        let bench = try Bench()
        try bench.write("192.0.2.1")
        try bench.start()
        bench.watch?.cancel()
        try bench.write("192.0.2.2")
        try await settle()
        #expect(bench.now == ["192.0.2.1"])
    }
}
