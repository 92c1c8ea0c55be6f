// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the network and each connection, on one screen.",
        discussion: "With NAME, shows all that is known of one connection, and the last that happened to it.")

    @Argument(help: "A connection; by default all, and the network.", completion: .connections)
    var name: String?

    @OptionGroup
    var owner: OwnerOption

    @OptionGroup
    var selection: SelectionOptions

    @Flag(help: "Write one JSON object: the path and the connections as the socket carries them.")
    var json = false

    @OptionGroup
    var color: ColorOption

    /// How many of the last events are shown.
    private static let events = 5

    private struct Document: VarlinkWritable {
        let path: NetworkAPI.Path
        let connections: [ConnectionsAPI.Connection]

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("path", path)
            fields.put("connections", connections)
        }
    }

    func validate() throws { try selection.refuse(json: json) }

    func run() async throws {
        let agent = DialtoneClient()
        let path = try await agent.call(NetworkAPI.GetPath.self, .init()).path
        let all = try await agent.call(ConnectionsAPI.List.self, VarlinkEmpty()).connections
        var shown = selection.selection(owner).of(all)
        if let name {
            try await KnownNames.require([name])
            shown = shown.filter { $0.name == name }
        }
        if let name, shown.isEmpty {
            Output.fail("\"\(name)\" is not among the connections that --owner, --down and --state choose")
            throw ExitCode(EXIT_FAILURE)
        }
        if json || selection.output == .json {
            return Output.write(json: Document(path: path, connections: shown))
        }
        if let format = selection.format { return Output.write(shown.map { format.text(of: $0) }) }
        guard name != nil, selection.output == .table else {
            let screen = StatusScreen(
                path: path, connections: shown, of: all.count, now: .now(), for: Output.reader,
                isWide: selection.output == .wide)
            return Output.write(screen.lines(Output.style))
        }
        for (index, connection) in shown.enumerated() {
            if index > 0 { Output.write([""]) }
            let screen = ConnectionScreen(
                connection, events: try await Self.lastEvents(of: connection), now: .now(), for: Output.reader,
                Output.localTime)
            Output.write(screen.lines(Output.style))
        }
    }

    private static func lastEvents(of connection: ConnectionsAPI.Connection) async throws -> [ConnectionsAPI.Event] {
        let parameters = ConnectionsAPI.History.Parameters(names: [connection.name], owner: connection.owner)
        var events: [ConnectionsAPI.Event] = []
        for try await entry in DialtoneClient().history(parameters) {
            guard let event = entry.event, event.connection.owner == connection.owner else { continue }
            events.append(event)
            if events.count > Self.events { events.removeFirst() }
        }
        return events
    }
}
