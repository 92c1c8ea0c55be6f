// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import Presentation
internal import Varlink

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the network's path and each connection, on one screen.")

    @Flag(help: "Write one JSON object: the path and the connections as the socket carries them.")
    var json = false

    private struct Document: VarlinkWritable {
        let path: NetworkAPI.Path
        let connections: [ConnectionsAPI.Connection]

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("path", path)
            fields.put("connections", connections)
        }
    }

    func run() async throws {
        let agent = DialtoneClient()
        let path = try await agent.call(NetworkAPI.GetPath.self, .init()).path
        let connections = try await agent.call(ConnectionsAPI.List.self, VarlinkEmpty()).connections
        if json {
            Output.write(json: Document(path: path, connections: connections))
        } else {
            let screen = StatusScreen(path: path, connections: connections, now: .now(), for: Output.reader)
            Output.write(screen.lines(Output.style))
        }
    }
}
