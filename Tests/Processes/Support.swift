// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneProcesses

/// The user that the tests run as.
let thisUser = ProgramIdentity(
    user: geteuid(), group: getegid(), groups: [getegid()], name: "tester", home: "/tmp", shell: "/bin/sh")

/// Another user, whom no file of the tests' belongs to.
let nobody = ProgramIdentity(
    user: 65534, group: 65534, groups: [65534, 1234], name: "nobody", home: "/", shell: "/bin/sh")

/// Whether this process can become another user: as root, and in no namespace with one user.
let hasManyUsers: Bool = {
    guard geteuid() == 0, let map = try? String(contentsOfFile: "/proc/self/uid_map", encoding: .utf8) else {
        return false
    }
    return map.split(separator: " ").last.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? 0
        > 65534
}()

/// A socket pair: one end for the program, one for the test.
final class Pair: Sendable {
    let program: CInt
    let test: CInt

    init() {
        (program, test) = socketPair()
        _ = fcntl(program, F_SETFL, O_NONBLOCK)
    }

    deinit {
        close(program)
        close(test)
    }

    /// What the program wrote until it ended, or closed its end.
    func text() async throws -> String {
        _ = fcntl(test, F_SETFL, O_NONBLOCK)
        var bytes: [UInt8] = []
        try await eventually("the program's end of the socket is closed") {
            var chunk = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(test, &chunk, chunk.count)
                if count == 0 { return true }
                if count < 0 { return errno != EAGAIN }
                bytes += chunk[..<count]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What the program has written by now, once it has, without a turn of the queue.
    func textWhenThere() -> String {
        var poll = pollfd(fd: test, events: Int16(POLLIN), revents: 0)
        _ = Foundation.poll(&poll, 1, 90_000)
        return textByNow()
    }

    /// What the program has written by now.
    func textByNow() -> String {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(test, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    }

    func write(_ text: String) {
        precondition(Foundation.write(test, text, text.utf8.count) == text.utf8.count)
    }
}

/// One launched program, and what was said of it.
@AgentQueue
final class Launch {
    private(set) var program: LaunchedProgram?
    private(set) var failure: SystemError?
    private(set) var hasStarted = false
    private(set) var end: ProgramEnd?

    init(
        _ request: ProgramRequest, socket: CInt?, output: CInt = STDERR_FILENO,
        began: @AgentQueue (LaunchedProgram) -> Void = { _ in }
    ) throws {
        program = try LaunchedProgram(request, socket: socket, output: output, began: began) { [weak self] failure in
            self?.hasStarted = true
            self?.failure = failure
        } ended: { [weak self] end in
            self?.end = end
        }
    }

    func ended() async throws -> ProgramEnd {
        try await eventually("the program ends") { self.end != nil }
        return try #require(end)
    }

    func started() async throws {
        try await eventually("the program runs, or does not") { self.hasStarted }
    }
}

/// One attempt of an activator's, and what was said of it.
@AgentQueue
final class Attempt {
    private(set) var failure: String?
    private(set) var end: ProgramEnd?

    init(_ order: WakeOrder, socket: CInt?, began: @AgentQueue (ProcessHandle) -> Void) {
        Activator(bus: "unix:path=/nowhere").perform(
            order, process: nil, socket: socket, began: began, ended: { [weak self] in self?.end = $0 },
            { [weak self] in if case .failed(let reason) = $0 { self?.failure = reason } })
    }
}

extension ProcessHandle {
    /// Waits, without a turn of the queue, until the process waits for something itself; and says what it runs.
    func programWhenAsleep() -> String {
        // Nobody tells that it has come so far.
        for _ in 0..<9000 where state != "S" { _ = poll(nil, 0, 10) }
        return state == "S" ? program : "process \(number) is \(state)"
    }

    /// Its state as proc(5) has it.
    private var state: String {
        let text = (try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)) ?? ""
        return text.split(separator: ")").last.map { String($0.dropFirst().prefix(1)) } ?? "gone"
    }

    /// What it runs.
    private var program: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(number)/exe")) ?? "nothing"
    }

    /// Likewise, until it has ended; says whether it has.
    func hasEndedSoon() -> Bool {
        withNumber { number in
            var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
            return Foundation.poll(&poll, 1, 90_000) == 1
        }
    }
}

extension ProgramRequest {
    /// A shell's script.
    static func script(
        _ script: String, _ streams: Streams = .passed, as identity: ProgramIdentity = thisUser,
        variables: [String: String] = [:]
    ) -> ProgramRequest {
        ProgramRequest(
            command: ["/bin/sh", "-c", script], identity: identity, streams: streams, connection: "office:1",
            variables: variables)
    }

    /// Runs to its end, and gives what it wrote to the socket.
    func output() async throws -> String {
        let pair = Pair()
        let launch = try await Launch(self, socket: pair.program)
        _ = try await launch.ended()
        // The program's copy went with it; this is the last one.
        shutdown(pair.program, CInt(SHUT_RDWR))
        return try await pair.text()
    }
}
