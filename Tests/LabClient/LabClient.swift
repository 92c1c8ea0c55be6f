// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
import DialtoneVarlink
import Dispatch
import Glibc

/// The Swift library's driver for the scenarios that every client library passes; `ClientScenarios` in Tests/Lab has
/// the commands and plays the scenarios.
@main
struct LabClient {
    let client = DialtoneClient()
    /// The socket that was taken last and is held.
    var held: TakenSocket?

    static func main() async {
        var driver = LabClient()
        for await line in lines() {
            let words = line.split(separator: " ").map(String.init)
            if words == ["quit"] { break }
            do throws(DialtoneError) {
                tell(try await driver.answer(to: words, line: line))
            } catch {
                tell("error \(error.nameInScenarios) \(error)")
            }
        }
    }

    /// The lines of standard input. A thread of its own waits for them: one of the tasks' would be missed there.
    private static func lines() -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        DispatchQueue(label: "input").async {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return stream
    }

    /// Does what a command says.
    ///
    /// - Returns: the answer.
    private mutating func answer(to words: [String], line: String) async throws(DialtoneError) -> String {
        switch (words.first, words.count) {
        case ("path", 2):
            return Self.text(of: try await client.call(NetworkAPI.GetPath.self, .init(target: target(words[1]))).path)
        case ("monitor-path", 2):
            monitorPath(to: target(words[1]))
        case ("monitor", 1):
            monitor()
        case ("open", 3):
            _ = try await client.open(.init(remote: words[2], name: words[1]))
        case ("adopt", 4):
            let socket = try connect(to: UInt16(words[3]) ?? 0)
            _ = try await client.adopt(socket, as: words[1], remote: words[2])
        case ("close", 2):
            try await client.close(words[1])
        case ("redial", 2):
            try await client.redial(words[1])
        case ("list", 1):
            return "connections " + Self.text(of: try await client.connections())
        case ("acknowledge", 3):
            try await client.acknowledge(words[1], wake: Int(words[2]) ?? 0)
        case ("descriptors", 1):
            return "descriptors \(Self.openDescriptors())"
        default:
            return try await answerWithSocket(to: words, line: line)
        }
        return "ok"
    }

    /// Does what a command says that is about the socket that is held.
    private mutating func answerWithSocket(
        to words: [String], line: String
    ) async throws(DialtoneError) -> String {
        switch (words.first, words.count) {
        case ("take", 2):
            let flow = try await client.take(words[1])
            let epoch = flow.epoch
            held = TakenSocket(name: words[1], epoch: epoch, descriptor: flow.release())
            return "taken \(words[1]) \(epoch)"
        case ("forget", 2):
            _ = try await client.call(ConnectionsAPI.Take.self, .init(name: words[1]))
        case ("send", 2...):
            guard let held else { return "error BadCommand nothing is taken" }
            held.send(line.dropFirst("send ".count) + "\n")
        case ("receive", 1):
            guard let held else { return "error BadCommand nothing is taken" }
            return held.line().map { "received \($0)" } ?? "received-end"
        case ("park", 1):
            guard let taken = held else { return "error BadCommand nothing is taken" }
            held = nil
            defer { taken.close() }
            try await client.park(taken.name, epoch: taken.epoch)
        case ("abandon", 1):
            held?.close()
            held = nil
        default:
            return "error BadCommand \(line)"
        }
        return "ok"
    }

    // MARK: - Streams

    private func monitorPath(to target: NetworkAPI.Target) {
        let stream = client.stream(NetworkAPI.MonitorPath.self, .init(target: target))
        Task {
            do throws(DialtoneError) {
                for try await reply in stream {
                    let changes = reply.changes.isEmpty ? "-" : reply.changes.joined(separator: ",")
                    tell("* \(Self.text(of: reply.path)) \(changes)")
                }
            } catch {
                tell("* error \(error.nameInScenarios) \(error)")
            }
        }
    }

    private func monitor() {
        let events = client.connectionEvents()
        Task {
            do throws(DialtoneError) {
                for try await element in events {
                    guard let reply = element.reply else {
                        tell("* lost")
                        continue
                    }
                    tell(Self.text(of: reply))
                }
            } catch {
                tell("* error \(error.nameInScenarios) \(error)")
            }
        }
    }

    // MARK: - Texts

    private static func text(of reply: ConnectionsAPI.Monitor.Reply) -> String {
        switch (reply.kind, reply.event) {
        case (.change, let event?):
            let connection = event.connection
            return "* event \(event.sequence) \(event.kind.rawValue) \(connection.name) \(connection.state.rawValue)"
        case (.gap, _): return "* gap"
        case (.snapshot, _), (.change, nil): return "* snapshot \(text(of: reply.connections))"
        }
    }

    private static func text(of connections: [ConnectionsAPI.Connection]) -> String {
        connections.isEmpty ? "-" : connections.map { "\($0.name)=\($0.state.rawValue)" }.joined(separator: ",")
    }

    private static func text(of path: NetworkAPI.Path) -> String {
        "path \(path.status.rawValue) \(path.reason?.rawValue ?? "-")"
    }

    private func target(_ host: String) -> NetworkAPI.Target { .init(host: host) }

    // MARK: - Descriptors

    /// How many this process has, without the one that reads the folder.
    private static func openDescriptors() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return -1 }
        defer { closedir(folder) }
        // "." and "..", and the folder itself.
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return count
    }

    /// A socket of this program's own to a server on this machine.
    private func connect(to port: UInt16) throws(DialtoneError) -> OwnedDescriptor {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw .unreachable(SystemError("connecting to port \(port)", code: errno)) }
        return OwnedDescriptor(descriptor)
    }
}

/// A socket that was taken.
struct TakenSocket {
    let name: String
    let epoch: Int
    let descriptor: CInt

    func send(_ text: String) { _ = Glibc.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

    /// The next line; `nil` at the end. Byte by byte, so that what follows stays for whoever takes the socket next.
    func line() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while recv(descriptor, &byte, 1, 0) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }

    func close() { _ = Glibc.close(descriptor) }
}

extension DialtoneError {
    /// The last part of the interface's name of it.
    fileprivate var nameInScenarios: String {
        switch self {
        case .notRunning: "NotRunning"
        case .refused(_, let failure): String(failure.name.split(separator: ".").last ?? "")
        case .interrupted: "Lost"
        case .accessDenied, .busy, .unreachable, .timedOut, .cancelled: "Other"
        }
    }
}

/// Writes a line at once. Not with `fflush`, which waits for standard input, on which another thread reads.
private func tell(_ line: String) {
    let text = line.split(separator: "\n").joined(separator: " ") + "\n"
    _ = write(STDOUT_FILENO, text, text.utf8.count)
}
