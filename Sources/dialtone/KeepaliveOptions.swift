// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI

/// How a connection is kept alive.
struct KeepaliveOptions: ParsableArguments {
    @Option(help: "The longest time between two keepalives, in seconds; 0 for none at all.")
    var keepalive: Int?

    @Option(
        help: ArgumentHelp(
            "What is sent: tcp (the kernel's own probes), crlf, whitespace, xmpp-ping, mqtt, websocket, custom, client "
                + "(the client is woken to send it) or none. By default what the remote's scheme has.",
            valueName: "protocol"))
    var keepaliveProtocol: String?

    @Option(
        help: """
            How many seconds earlier a keepalive may be sent, to share a wake-up with others. It must be less than the \
            interval.
            """)
    var keepaliveTolerance: Int?

    @Flag(
        inversion: .prefixedNo,
        help: "Whether the interval follows what the network turns out to bear, up to the one given; else it does.")
    var keepaliveAdaptive: Bool?

    @Option(
        help: ArgumentHelp(
            #"What a custom keepalive sends; with \r, \n, \t, \0, \\ and \xNN."#, valueName: "text"))
    var keepaliveSend: String?

    @Option(
        help: ArgumentHelp("What exactly answers a custom keepalive, with the same escapes.", valueName: "text"))
    var keepaliveExpect: String?

    @Flag(help: "Wake a sleeping machine for keepalives. For root and the daemon's own user.")
    var wakeMachine = false

    func validate() throws {
        for (option, value) in [("keepalive", keepalive), ("keepalive-tolerance", keepaliveTolerance)] {
            if let value, !(0...PolicyOptions.longest).contains(value) {
                throw ValidationError(
                    "--\(option) \(value) is out of range: give seconds from 0 to \(PolicyOptions.longest)")
            }
        }
        if keepalive == 0, let keepaliveProtocol, keepaliveProtocol != "none" {
            throw ValidationError("--keepalive 0 is for none at all, and not for \(keepaliveProtocol)")
        }
    }

    /// For the daemon; `nil` when nothing was given.
    var wire: ConnectionsAPI.Keepalive? {
        let isOff = keepalive == 0
        let wire = ConnectionsAPI.Keepalive(
            protocol: isOff ? "none" : keepaliveProtocol,
            interval: isOff ? nil : keepalive.map { .seconds($0) },
            tolerance: keepaliveTolerance.map { .seconds($0) }, adaptive: keepaliveAdaptive,
            send: keepaliveSend, expect: keepaliveExpect, wakeMachine: wakeMachine ? true : nil)
        return wire == ConnectionsAPI.Keepalive() ? nil : wire
    }
}
