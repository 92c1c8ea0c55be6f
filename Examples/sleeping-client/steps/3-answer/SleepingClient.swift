// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
import Glibc

/// A client that sleeps until there is something to read, and answers it.
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
        while true { try await serve() }
    }

    /// Waits for a socket, takes it, greets the server, and parks it.
    func greet() async throws {
        try await agent.withSocket(name, until: .flow) { flow in
            send("HELLO \(name)\n", to: flow.descriptor.number)
        }
    }

    /// Sleeps until there is something to read, takes the socket, answers, and parks it.
    func serve() async throws {
        try await agent.withSocket(name, until: .data) { flow in
            answer(flow.descriptor.number)
        }
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
