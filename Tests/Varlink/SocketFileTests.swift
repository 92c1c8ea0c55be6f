// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Testing

@testable import Varlink

@Suite struct SocketFileTests {
    private let directory = TemporaryDirectory()
    private var path: String { directory.path + "/test.sock" }

    private func connect() throws -> RawClient { RawClient(try UnixSocket.connect(to: path)) }

    private func mode(of path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    @Test func aServerIsReachableAtItsPathUntilItCloses() async throws {
        let test = await TestService()
        try await onQueue { try test.server.listen(at: path, mode: 0o640) }
        #expect(mode(of: path) == 0o640)
        #expect(mode(of: path + "~") == nil)
        let client = try connect()
        client.send(ping("by path"))
        #expect(await client.receive() == pong("by path"))
        await onQueue { test.server.close() }
        #expect(mode(of: path) == nil)
        #expect(await client.receive() == nil)
        try await onQueue { try test.server.listen(at: path, mode: 0o600) }
        #expect(mode(of: path) == 0o600)
    }

    @Test func aDeadSocketIsReplaced() async throws {
        _ = try UnixSocket.bind(to: path)
        #expect(mode(of: path) != nil)
        #expect(throws: SystemError("connecting to \(path)", code: ECONNREFUSED)) { try connect() }
        let test = await TestService()
        try await onQueue { try test.server.listen(at: path, mode: 0o666) }
        let client = try connect()
        client.send(ping("alive"))
        #expect(await client.receive() == pong("alive"))
    }

    @Test func aLiveSocketIsRefusedAndLeftAlone() async throws {
        let first = await TestService()
        let second = await TestService()
        try await onQueue { try first.server.listen(at: path, mode: 0o666) }
        await onQueue {
            _ = #expect(throws: VarlinkSocketError.inUse(path: path)) {
                try second.server.listen(at: path, mode: 0o666)
            }
        }
        // Also one whose owner knows nothing of the lock, such as a service manager.
        unlink(path + ".lock")
        await onQueue {
            _ = #expect(throws: VarlinkSocketError.inUse(path: path)) {
                try second.server.listen(at: path, mode: 0o666)
            }
        }
        let client = try connect()
        client.send(ping("still there"))
        #expect(await client.receive() == pong("still there"))
    }

    @Test func ofTwoThatStartTogetherOneGetsThePath() async throws {
        _ = try UnixSocket.bind(to: path)
        let claimed = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let test = await TestService()
                    let listens = await onQueue { (try? test.server.listen(at: path, mode: 0o666)) != nil }
                    // Kept until all have tried.
                    await onQueue { SocketFileTests.kept.append(test) }
                    return listens
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        await onQueue { SocketFileTests.kept = [] }
        #expect(claimed == 1)
    }

    @AgentQueue private static var kept: [TestService] = []

    @Test func whatIsNoSocketIsRefusedAndLeftAlone() async throws {
        try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
        let test = await TestService()
        await onQueue {
            _ = #expect(throws: VarlinkSocketError.notASocket(path: path)) {
                try test.server.listen(at: path, mode: 0o666)
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("precious".utf8))
    }

    @Test func whatTheKernelRefusesSaysWhatWasTried() async throws {
        let test = await TestService()
        let long = directory.path + "/" + String(repeating: "x", count: 120)
        for (path, code) in [(long, ENAMETOOLONG), (directory.path + "/missing/test.sock", ENOENT)] {
            await onQueue {
                let error = #expect(throws: VarlinkSocketError.self) {
                    try test.server.listen(at: path, mode: 0o666)
                }
                guard case .system(let reason) = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(reason.code == code)
                #expect("\(reason)".contains(path))
            }
        }
    }

    @Test func aSocketThatIsHandedInIsServedAndItsNameLeft() async throws {
        let socket = try UnixSocket.bind(to: path)
        try #require(listen(socket.number, 5) == 0)
        let number = socket.release()
        let test = await TestService()
        try await onQueue { try test.server.listen(on: OwnedDescriptor(number)) }
        let client = try connect()
        client.send(ping("activated"))
        #expect(await client.receive() == pong("activated"))
        await onQueue { test.server.close() }
        #expect(mode(of: path) != nil)
    }

    @Test func aDescriptorThatDoesNotListenIsRefused() async throws {
        let test = await TestService()
        let (ours, theirs) = socketPair()
        defer { Glibc.close(theirs) }
        let file = open("/dev/null", O_RDONLY)
        await onQueue {
            for number in [ours, file] {
                let error = #expect(throws: SystemError.self) { try test.server.listen(on: OwnedDescriptor(number)) }
                #expect(error?.code == EINVAL)
            }
        }
    }

    @Test func clientsThatWaitAreServedOnceDescriptorsAreFreeAgain() async throws {
        // In a process of its own: the limit on descriptors would hit the tests beside this one.
        await #expect(processExitsWith: .success) {
            let directory = TemporaryDirectory()
            let path = directory.path + "/test.sock"
            let test = await TestService()
            try await onQueue { try test.server.listen(at: path, mode: 0o666) }
            let client = RawClient(try UnixSocket.connect(to: path))
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(7), &limit)
            limit.rlim_cur = rlim_t(client.number + 1)
            setrlimit(__rlimit_resource_t(7), &limit)
            client.send(ping("patient"))
            try await eventually("the shortage is reported") { !test.incidents.isEmpty }
            let reported = await onQueue { test.incidents }
            guard case .refused(let error) = reported.first, error.code == EMFILE else { exit(2) }
            // One report, not one for each turn of a spinning queue.
            guard reported.count == 1 else { exit(3) }
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(7), &limit)
            guard await client.receive() == pong("patient") else { exit(4) }
        }
    }
}
