// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePresentation
internal import DialtoneVarlink

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a line for each change of the network and of the connections, as it happens.",
        discussion: """
            Begins with the present state. With names, writes about those connections alone. When the agent goes it \
            says so, waits for its return, and goes on where it was; with --json it says so on the standard error.
            """)

    @Argument(help: "Connections to watch; by default all, and the network.", completion: .connections)
    var names: [String] = []

    @Option(
        help: ArgumentHelp(
            "Watch the route to this host instead, as in sip.example.com:5061 or sips://sip.example.com.",
            valueName: "host"), transform: TargetArgument.parse)
    var host: TargetArgument?

    @OptionGroup
    var owner: OwnerOption

    @Flag(help: "Write one JSON object a line: the replies of MonitorPath and Monitor as the socket carries them.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func validate() throws {
        try host?.requireLink()
        if host != nil, !names.isEmpty || owner.number != nil {
            throw ValidationError("--host watches the route to a host: it takes no names and no --owner")
        }
    }

    func run() async throws {
        let stream = WatchStream(
            names: names, owner: owner.number, json: json,
            pages: DayPages(Output.localTime, knowing: Output.localTime.day(.now())))
        try await Output.endWithReader()
        if let host {
            let target = NetworkAPI.Target(
                host: "\(host.target.host)", port: host.target.port.map { Int($0) }, interface: host.target.interface)
            return try await stream.watchPath(to: target, called: host.text)
        }
        // A script may begin before the connection is there.
        if !json { try await KnownNames.require(names) }
        try await stream.run()
    }
}
