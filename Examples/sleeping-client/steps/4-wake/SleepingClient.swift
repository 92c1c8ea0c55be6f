// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
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
        let client = SleepingClient(name: CommandLine.arguments[1])
        try await client.run(CommandLine.arguments[2])
    }

    /// Serves the connection for as long as the agent runs.
    func run(_ remote: String) async throws {
        do throws(DialtoneError) {
            _ = try await agent.open(.init(remote: remote, name: name))
        } catch {
            // An earlier run may have opened it.
            guard error.code == .nameTaken else { throw error }
        }
        var isGreeted = false
        // First what there is, then each change, until the agent is gone.
        for try await event in agent.stream(ConnectionsAPI.Monitor.self, .init(names: [name])) {
            // The first socket is nobody's yet; from then on a wake says that there is something to do.
            guard event.connections.contains(where: { $0.wake != nil || (!isGreeted && $0.state == .ready) }) else {
                continue
            }
            do {
                if try await serve() { isGreeted = true }
            } catch let error as DialtoneError {
                // Without a socket, the next event tells when there is one again.
                guard error.code == .notReady else { throw error }
            }
        }
    }

    /// Takes the socket, reads what there is, answers, and parks it.
    ///
    /// - Returns: whether the server knows this client: there was a session already, or the greeting was sent.
    func serve() async throws -> Bool {
        var isGreeted = false
        try await agent.withSocket(name) { flow in
            let socket = flow.descriptor.number
            // No greeting arrives on a socket that has ended, and the connection's session is not on that socket.
            if !flow.isOver {
                isGreeted = flow.connection.session == .open || send("HELLO \(name)\n", to: socket)
            }
            answer(socket)
        }
        return isGreeted
    }

    /// Answers all lines that have come. One that has only begun is waited for: parked is between two messages.
    func answer(_ socket: Int32) {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while recv(socket, &byte, 1, Int32(line.isEmpty ? MSG_DONTWAIT : 0)) == 1 {
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

    /// Returns whether all of it was sent.
    @discardableResult
    func send(_ text: String, to socket: Int32) -> Bool {
        Glibc.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count
    }
}
