// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import Presentation
internal import Varlink

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a line for each change of the network and of the connections, as it happens.",
        discussion: """
            Begins with the present state. With names, writes about those connections alone. When the agent goes it \
            says so, waits for its return, and goes on where it was; with --json it says so on the standard error.
            """)

    @Argument(help: "Connections to watch; by default all, and the network.")
    var names: [String] = []

    @OptionGroup
    var owner: OwnerOption

    @Flag(help: "Write one JSON object a line: the replies of MonitorPath and Monitor as the socket carries them.")
    var json = false

    func run() async throws {
        try await Output.endWithReader()
        // A script may begin before the connection is there.
        if !json { try await KnownNames.require(names) }
        // A connection of the socket for each stream: one holds its connection until it ends.
        let (names, owner, json) = (names, owner.number, json)
        try await withThrowingTaskGroup(of: Void.self) { group in
            if names.isEmpty, owner == nil {
                group.addTask { try await Self.watchNetwork(json: json) }
            }
            group.addTask { try await Self.watchConnections(names, of: owner, json: json) }
            // Neither ends by itself; what fails one, the agent's return does not mend.
            try await group.next()
            group.cancelAll()
        }
    }

    private static func watchNetwork(json: Bool) async throws {
        var (isKnown, pause) = (false, RetryPause())
        while true {
            do throws(DialtoneError) {
                for try await reply in DialtoneClient().stream(NetworkAPI.MonitorPath.self, .init()) {
                    (isKnown, pause) = (true, RetryPause())
                    if json {
                        Output.write(json: reply)
                    } else {
                        write(WatchLine(network: reply.path, changes: reply.changes, at: .now()))
                    }
                }
            } catch {
                // Where the agent went, the other stream says so.
                guard isKnown, error.isPassing else { throw error }
            }
            try await pause.wait()
        }
    }

    private static func watchConnections(_ names: [String], of owner: Int?, json: Bool) async throws {
        var isThere: Bool?
        for try await event in DialtoneClient().connectionEvents(names: names.isEmpty ? nil : names, owner: owner) {
            switch event {
            case .agentLost(let error):
                // One that was not there in the first place is an error, as for every other command.
                guard isThere != nil else { throw error }
                isThere = false
                write(agentIsThere: false, json: json)
            case .reply(let reply):
                if isThere == false { write(agentIsThere: true, json: json) }
                isThere = true
                try write(reply, json: json)
            }
        }
    }

    private static func write(agentIsThere isThere: Bool, json: Bool) {
        let line = WatchLine(agentIsThere: isThere, at: .now())
        if json { Output.fail("the agent is \(line.text)") } else { write(line) }
    }

    private static func write(_ reply: ConnectionsAPI.Monitor.Reply, json: Bool) throws {
        if json {
            Output.write(json: reply)
        } else if let event = reply.event {
            write(WatchLine(event, for: Output.reader))
        } else {
            if reply.kind == .gap { write(WatchLine(gapAt: .now())) }
            for connection in reply.connections { write(WatchLine(connection, at: .now(), for: Output.reader)) }
        }
    }

    private static func write(_ line: WatchLine) {
        Output.write([line.line(Output.style, clock: Output.localTime)])
    }
}
