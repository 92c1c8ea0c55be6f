// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
import Glibc

/// Opens a connection, takes its socket, greets the server, and parks the socket.
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

    func run(_ remote: String) async throws {
        do throws(DialtoneError) {
            _ = try await agent.open(.init(remote: remote, name: name))
        } catch {
            // An earlier run may have opened it.
            guard error.code == .nameTaken else { throw error }
        }
        try await greet()
    }

    /// Waits for a socket, takes it, greets the server, and parks it.
    func greet() async throws {
        try await agent.withSocket(name, until: .flow) { flow in
            send("HELLO \(name)\n", to: flow.descriptor.number)
        }
    }

    /// Returns whether all of it was sent.
    @discardableResult
    func send(_ text: String, to socket: Int32) -> Bool {
        Glibc.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count
    }
}
