// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneTestSupport
import Foundation
import Glibc

@testable import DialtonePushServers

/// A server in Python that stands in for a real one, while this value lives.
final class StandIn {
    /// The ports of its WebSocket and of its HTTP.
    let ports: (webSocket: UInt16, http: UInt16)
    private let process: pid_t
    /// Its standard input: it ends when this is closed.
    private let input: CInt

    /// The Python that has PyPI's `websockets`; `nil`, and the reason on standard error, when there is none.
    static let python: String? = {
        let made = Program.run("\(folder)/../../scripts/python-varlink", [])
        let program = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
        let tried = Program.run(program, ["-c", "import websockets.asyncio.server"])
        if made.status == 0, tried.status == 0 { return program }
        let reason = "scripts/python-varlink: \(made.error)\(tried.error)\(tried.status < 0 ? tried.output : "")"
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        return nil
    }()

    /// Where the scripts are.
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().standardizedFileURL.path

    /// Starts a script; `nil` where it does not say its ports.
    init?(_ script: String, _ arguments: [String] = []) {
        guard let python = Self.python else { return nil }
        // Its standard input and output in one, for which no other child of this process has a descriptor.
        let (own, child) = socketPair()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, child, 0)
        posix_spawn_file_actions_adddup2(&actions, child, 1)
        var words = ([python, "\(Self.folder)/\(script)"] + arguments).map { strdup($0) } + [nil]
        var process: pid_t = 0
        let status = posix_spawn(&process, python, &actions, nil, &words, environ)
        words.forEach { free($0) }
        posix_spawn_file_actions_destroy(&actions)
        close(child)
        (self.process, input) = (status == 0 ? process : -1, own)
        var (line, byte) = ([UInt8](), UInt8(0))
        while read(own, &byte, 1) == 1, byte != 10 { line.append(byte) }
        let ports = String(decoding: line, as: UTF8.self).split(separator: " ").compactMap { UInt16($0) }
        self.ports = ports.count == 2 ? (ports[0], ports[1]) : (0, 0)
        if ports.count != 2 { return nil }
    }

    deinit {
        close(input)
        if process > 0 { waitpid(process, nil, 0) }
    }

    /// Posts to its HTTP.
    ///
    /// - Returns: the whole answer; empty where there is none.
    func post(_ path: String, _ body: [UInt8] = [], _ fields: [String] = []) -> String {
        guard let socket = try? LoopbackSocket(ports.http) else { return "" }
        let lines = ["POST \(path) HTTP/1.0", "Content-Length: \(body.count)"] + fields + ["", ""]
        socket.send(Array(lines.joined(separator: "\r\n").utf8) + body)
        var answer: [UInt8] = []
        while let bytes = try? socket.receive(), !bytes.isEmpty { answer += bytes }
        return String(decoding: answer, as: UTF8.self)
    }
}

/// A driver of a server's value over TCP, as the session agent has one over its agent.
struct LoopbackDriver<Server: PushServer> {
    private(set) var server: Server
    let port: UInt16
    private var socket: LoopbackSocket?
    /// What was saved last.
    private(set) var memory: [UInt8]?
    private(set) var reports: [PushServerReport] = []
    /// What arrived and was not asked for.
    private var arrived: [ArrivedMessage] = []

    init(_ server: Server, port: UInt16) { (self.server, self.port) = (server, port) }

    private var now: Moment {
        var (boot, real) = (timespec(), timespec())
        clock_gettime(CLOCK_BOOTTIME, &boot)
        clock_gettime(CLOCK_REALTIME, &real)
        return Moment(
            uptime: .seconds(boot.tv_sec) + .nanoseconds(boot.tv_nsec),
            wall: WallTime(milliseconds: Int64(real.tv_sec) * 1000 + Int64(real.tv_nsec) / 1_000_000))
    }

    /// Opens a socket, in place of the one before.
    mutating func connect() {
        if socket != nil { give(.disconnected) }
        socket = try? LoopbackSocket(port)
        give(.connected)
    }

    /// Ends the socket, and waits for nothing more.
    mutating func hangUp() {
        give(.disconnected)
        socket = nil
    }

    /// Opens a socket on which the opening of the parked one is played, as the machine's agent would.
    ///
    /// - Returns: whether each answer was as the opening has it.
    mutating func playOpening(of parking: PushParking) -> Bool {
        hangUp()
        guard let socket = try? LoopbackSocket(port) else { return false }
        var unread: [UInt8] = []
        for step in parking.opening {
            socket.send(step.send)
            var length: Int?
            while length == nil {
                if let until = step.until {
                    length = unread.indices.first { unread[...$0].suffix(until.count) == until[...] }.map { $0 + 1 }
                } else if unread.count >= 2, unread[1] < 126, unread.count >= 2 + Int(unread[1]) {
                    length = 2 + Int(unread[1])
                } else if unread.count >= 4, unread[1] == 126 {
                    let whole = 4 + Int(unread[2]) << 8 + Int(unread[3])
                    if unread.count >= whole { length = whole }
                }
                if length == nil {
                    guard let bytes = try? socket.receive(), !bytes.isEmpty else { return false }
                    unread += bytes
                }
            }
            let answer = Array(unread.prefix(length ?? 0))
            unread.removeFirst(answer.count)
            let contents = String(decoding: answer, as: UTF8.self)
            guard answer.starts(with: step.begins),
                contents.contains(String(decoding: step.contains ?? [], as: UTF8.self))
            else { return false }
        }
        self.socket = socket
        give(.opened)
        if !unread.isEmpty { give(.received(unread)) }
        return true
    }

    /// Gives an input, and does what the turn says.
    mutating func give(_ input: PushServerInput) {
        let turn = server.take(input, at: now)
        memory = turn.memory ?? memory
        arrived += turn.arrived
        socket?.send(turn.output)
        reports += turn.reports
        if turn.redial != nil { connect() }
    }

    /// Reads until a report fits, and takes it out of those that came.
    mutating func report<Result>(_ fits: (PushServerReport) -> Result?) -> Result? {
        while true {
            for (index, report) in reports.enumerated() {
                if let result = fits(report) {
                    reports.remove(at: index)
                    return result
                }
            }
            guard receive() else { return nil }
        }
    }

    /// Reads until a message is there, and takes it.
    mutating func message() -> ArrivedMessage? {
        while arrived.isEmpty { guard receive() else { return nil } }
        return arrived.removeFirst()
    }

    private mutating func receive() -> Bool {
        guard let bytes = try? socket?.receive() else { return false }
        if bytes.isEmpty { connect() } else { give(.received(bytes)) }
        return true
    }

    /// The endpoint of a registration.
    mutating func endpoint(of wanted: RegistrationID) -> String? {
        report { report in
            if case .registered(wanted, let endpoint, _) = report { endpoint } else { nil }
        }
    }
}
