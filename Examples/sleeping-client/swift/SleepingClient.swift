// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import Glibc

/// A client that sleeps until its server speaks: takes the connection, reads, answers, parks.
///
///     sleeping-client NAME URL        for instance: sleeping-client chat tcp://192.0.2.7:7000
///
/// The server speaks lines. A new session begins with "HELLO NAME"; each line that comes is answered by "GOT ...".
@main
struct SleepingClient {
    let agent = DialtoneClient()
    let name: String

    static func main() async throws {
        guard CommandLine.arguments.count == 3 else {
            print("usage: sleeping-client NAME URL")
            exit(64)
        }
        try await SleepingClient(name: CommandLine.arguments[1]).run(CommandLine.arguments[2])
    }

    func run(_ remote: String) async throws {
        var events = agent.connectionEvents(names: [name]).makeAsyncIterator()
        _ = try await events.next()
        do {
            _ = try await agent.open(.init(remote: remote, name: name))
        } catch where error.isRefusal("NameTaken") {
            // An earlier run opened it.
        }
        var isGreeted = false
        while let event = try await events.next() {
            // The first flow is nobody's yet; from then on a wake says that there is something to do.
            let isDue = event.connections.contains { $0.wake != nil || (!isGreeted && $0.state == .ready) }
            guard isDue else { continue }
            do {
                try await serve()
                isGreeted = true
            } catch where error.isRefusal("NotReady") {
                // The next event tells when there is a flow again.
            }
        }
    }

    /// Takes the flow, reads what there is, answers, and parks it; again if another flow has taken its place.
    func serve() async throws(DialtoneError) {
        while true {
            let flow = try await agent.take(name)
            let (epoch, isOver, hasSession) = (flow.epoch, flow.isOver, flow.connection.session == .open)
            let socket = flow.release()
            if !hasSession, !isOver { send("HELLO \(name)\n", to: socket) }
            answer(socket)
            close(socket)
            if isOver { continue }
            do throws(DialtoneError) {
                return try await agent.park(name, epoch: epoch)
            } catch {
                // The line was lost meanwhile, and another flow is there.
                if !error.isRefusal("StaleEpoch") { throw error }
            }
        }
    }

    /// Answers all lines that have come. One that has only begun is waited for: parked is between two messages.
    func answer(_ socket: Int32) {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while recv(socket, &byte, 1, Int32(line.isEmpty ? MSG_DONTWAIT.rawValue : 0)) == 1 {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            let text = String(decoding: line, as: UTF8.self)
            print("read", text)
            fflush(nil)
            send("GOT \(text)\n", to: socket)
            line = []
        }
    }

    func send(_ text: String, to socket: Int32) {
        _ = Glibc.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL.rawValue))
    }
}

extension Error {
    /// Whether the agent refused with this error of `org.dialtone.Connections`.
    func isRefusal(_ name: String) -> Bool {
        guard case .refused(_, let failure)? = self as? DialtoneError else { return false }
        return failure.name == "org.dialtone.Connections.\(name)"
    }
}
