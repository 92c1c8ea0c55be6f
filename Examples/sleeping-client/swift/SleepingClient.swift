// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import Glibc
import Platform

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
        while true {
            do {
                try await client.run(CommandLine.arguments[2])
            } catch let error as DialtoneError {
                // It was restarted, or is about to be. The connection outlives that.
                if case .refused = error { throw error }
            }
            print("the agent is gone")
            fflush(nil)
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Serves the connection for as long as the agent runs. A new agent may not know the connection: each run opens it.
    func run(_ remote: String) async throws {
        // An earlier run may have opened it.
        try await unless("NameTaken") { _ = try await agent.open(.init(remote: remote, name: name)) }
        var isGreeted = false
        // First what there is, then each change, until the agent is gone.
        for try await event in agent.stream(ConnectionsAPI.Monitor.self, .init(names: [name])) {
            // The first flow is nobody's yet; from then on a wake says that there is something to do.
            guard event.connections.contains(where: { $0.wake != nil || (!isGreeted && $0.state == .ready) }) else {
                continue
            }
            // Without a flow, the next event tells when there is one again.
            if try await unless("NotReady", serve) { isGreeted = true }
        }
    }

    /// Takes the flow, reads what there is, answers, and parks it; again if another flow has taken its place.
    func serve() async throws {
        var isParked = false
        while !isParked {
            let (epoch, isOver) = try await readAndAnswer()
            if isOver { continue }
            isParked = try await unless("StaleEpoch") { try await agent.park(name, epoch: epoch) }
        }
    }

    /// Does something that the agent may refuse with this error; returns whether it did not.
    @discardableResult
    func unless(_ refusal: String, _ body: () async throws -> Void) async throws -> Bool {
        do {
            try await body()
            return true
        } catch let error as DialtoneError {
            guard case .refused(_, let failure) = error, failure.name == "org.dialtone.Connections.\(refusal)" else {
                throw error
            }
            return false
        }
    }

    /// The socket is closed with the flow, at the end.
    func readAndAnswer() async throws -> (epoch: Int, isOver: Bool) {
        let flow = try await agent.take(name)
        if flow.connection.session != .open, !flow.isOver { send("HELLO \(name)\n", to: flow.descriptor.number) }
        answer(flow.descriptor.number)
        return (flow.epoch, flow.isOver)
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

    func send(_ text: String, to socket: Int32) {
        _ = Glibc.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }
}
