// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Synchronization
import Testing

@testable import DialtoneVarlink

@Suite(.timeLimit(.minutes(3))) struct SocketFileTests {
    private let directory = TemporaryDirectory()
    private var path: String { directory.path + "/test.sock" }

    private func connect() throws -> RawClient { RawClient(try UnixSocket.connect(to: path)) }

    private func mode(of path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    @Test func `a server is reachable at its path until it closes`() async throws {
        let test = await TestService()
        try await onQueue { try test.server.listen(at: path, mode: 0o640) }
        #expect(mode(of: path) == 0o640)
        #expect(mode(of: path + "~") == nil)
        let client = try connect()
        client.send(ping("by path"))
        expect(await client.receive(), is: pong("by path"))
        await onQueue { test.server.close() }
        #expect(mode(of: path) == nil)
        expect(await client.receive(), is: nil)
        try await onQueue { try test.server.listen(at: path, mode: 0o600) }
        #expect(mode(of: path) == 0o600)
    }

    @Test func `a dead socket is replaced`() async throws {
        _ = try UnixSocket.bind(to: path)
        #expect(mode(of: path) != nil)
        #expect(throws: SystemError("connecting to \(path)", code: ECONNREFUSED)) { try connect() }
        let test = await TestService()
        try await onQueue { try test.server.listen(at: path, mode: 0o666) }
        let client = try connect()
        client.send(ping("alive"))
        expect(await client.receive(), is: pong("alive"))
    }

    @Test func `a live socket is refused and left alone`() async throws {
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
        expect(await client.receive(), is: pong("still there"))
    }

    @Test func `of two services that start together one gets the path`() async throws {
        for _ in 0..<100 {
            unlink(path)
            _ = try UnixSocket.bind(to: path)
            let listening = Mutex<[Listening]>([])
            let ready = Atomic(0)
            let start: @Sendable () -> Void = {
                // Side by side from the first step on.
                ready.add(1, ordering: .relaxed)
                while ready.load(ordering: .relaxed) < 2 { sched_yield() }
                guard let file = try? SocketFile(claiming: path),
                    let socket = try? file.listen(mode: 0o600, backlog: 1)
                else { return }
                let winner = Listening(socket, file)
                listening.withLock { $0.append(winner) }
            }
            // A queue each, since two turns of one could share a thread.
            let group = DispatchGroup()
            for name in ["one", "other"] { DispatchQueue(label: name).async(group: group, execute: start) }
            await withCheckedContinuation { done in group.notify(queue: .global()) { done.resume() } }
            #expect(listening.withLock { $0.count } == 1)
        }
    }

    /// Keeps what it has until all have tried.
    private final class Listening: Sendable {
        private let socket: OwnedDescriptor
        private let file: SocketFile

        init(_ socket: consuming OwnedDescriptor, _ file: consuming SocketFile) {
            self.socket = socket
            self.file = file
        }
    }

    @Test func `what is no socket is refused and left alone`() async throws {
        try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
        let test = await TestService()
        await onQueue {
            _ = #expect(throws: VarlinkSocketError.notASocket(path: path)) {
                try test.server.listen(at: path, mode: 0o666)
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("precious".utf8))
    }

    @Test func `what the kernel refuses says what was tried`() async throws {
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

    @Test func `a socket that is handed in is served and its name left`() async throws {
        let socket = try UnixSocket.bind(to: path)
        try #require(listen(socket.number, 5) == 0)
        let number = socket.release()
        let test = await TestService()
        try await onQueue { try test.server.listen(on: OwnedDescriptor(number)) }
        let client = try connect()
        client.send(ping("activated"))
        expect(await client.receive(), is: pong("activated"))
        await onQueue { test.server.close() }
        #expect(mode(of: path) != nil)
    }

    @Test func `a descriptor that does not listen is refused`() async throws {
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

    /// Whether this process has a timerfd on a clock (proc(5), `/proc/pid/fdinfo`).
    private static func hasTimer(on clock: CInt) -> Bool {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo")) ?? []
        return descriptors.contains { descriptor in
            let info = try? String(contentsOfFile: "/proc/self/fdinfo/\(descriptor)", encoding: .utf8)
            return info?.contains("clockid: \(clock)\n") ?? false
        }
    }

    @Test func `clients that wait are served once descriptors are free again`() async throws {
        // In a process of its own: the limit on descriptors would hit the tests beside this one.
        await #expect(processExitsWith: .success) {
            let directory = TemporaryDirectory()
            let path = directory.path + "/test.sock"
            let test = await TestService()
            // Dispatch makes the descriptor of its timers at the first sleep that is not over yet when it looks, and
            // does not survive a refusal.
            try await eventually("Dispatch has its timer") { Self.hasTimer(on: CLOCK_BOOTTIME) }
            var limit = rlimit()
            let resource = __rlimit_resource_t(7)  // RLIMIT_NOFILE, an enumeration that Swift does not import by name
            getrlimit(resource, &limit)
            let client = try await onQueue {
                try test.server.listen(at: path, mode: 0o666)
                // On the queue, so that nobody is accepted before there are no descriptors left: the lowest number that
                // is free is the one that accepting would take.
                let client = RawClient(try UnixSocket.connect(to: path))
                let lowest = open("/dev/null", O_RDONLY)
                close(lowest)
                var none = limit
                none.rlim_cur = rlim_t(lowest)
                setrlimit(resource, &none)
                return client
            }
            client.send(ping("patient"))
            try await eventually("the shortage is reported") { !test.incidents.isEmpty }
            let reported = await onQueue { test.incidents }
            guard case .refused(let error) = reported.first, error.code == EMFILE else { exit(2) }
            // One report, not one for each turn of a spinning queue.
            guard reported.count == 1 else { exit(3) }
            setrlimit(resource, &limit)
            guard await client.receive() == pong("patient") else { exit(4) }
        }
    }
}
