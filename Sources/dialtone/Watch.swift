// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import Presentation

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a line for each change of the network and of the connections, as it happens.",
        discussion: "Begins with the present state. With names, writes about those connections alone.")

    @Argument(help: "Connections to watch; by default all, and the network.")
    var names: [String] = []

    @Flag(help: "Write one JSON object a line: the replies of MonitorPath and Monitor as the socket carries them.")
    var json = false

    func run() async throws {
        try await Output.endWithReader()
        // A connection of the socket for each stream: one holds its connection until it ends.
        let (names, json) = (names, json)
        try await withThrowingTaskGroup(of: Void.self) { group in
            if names.isEmpty {
                group.addTask { try await Self.watchNetwork(json: json) }
            }
            group.addTask { try await Self.watchConnections(names, json: json) }
            // Neither ends by itself; the first to fail has lost the agent.
            try await group.next()
            group.cancelAll()
        }
    }

    private static func watchNetwork(json: Bool) async throws {
        for try await reply in DialtoneClient().stream(NetworkAPI.MonitorPath.self, .init()) {
            if json {
                try Output.write(json: reply)
            } else {
                write(WatchLine(network: reply.path, changes: reply.changes, at: .now()))
            }
        }
    }

    private static func watchConnections(_ names: [String], json: Bool) async throws {
        let parameters = ConnectionsAPI.Monitor.Parameters(names: names.isEmpty ? nil : names)
        for try await reply in DialtoneClient().stream(ConnectionsAPI.Monitor.self, parameters) {
            if json {
                try Output.write(json: reply)
            } else if let event = reply.event {
                write(WatchLine(event))
            } else {
                if reply.kind == .gap { write(WatchLine(gapAt: .now())) }
                for connection in reply.connections { write(WatchLine(connection, at: .now())) }
            }
        }
    }

    private static func write(_ line: WatchLine) {
        Output.write([line.line(Output.style, clock: Output.localTime)])
    }
}
