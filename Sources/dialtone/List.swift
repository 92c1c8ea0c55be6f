// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import Presentation
internal import Varlink

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the connections.")

    @Flag(help: "Write one JSON object a line, a connection each.")
    var json = false

    func run() async throws {
        let agent = DialtoneClient()
        let connections = try await agent.call(ConnectionsAPI.List.self, VarlinkEmpty()).connections
        if json {
            for connection in connections { Output.write(json: connection) }
        } else {
            Output.write(ConnectionTable(connections, now: .now(), for: Output.reader).lines(Output.style))
        }
    }
}
