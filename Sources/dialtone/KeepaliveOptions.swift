// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI

/// How a connection is kept alive.
struct KeepaliveOptions: ParsableArguments {
    /// What may be sent, as the help explains it.
    static let protocols = [
        "tcp", "crlf", "whitespace", "xmpp-ping", "mqtt", "websocket", "custom", "client", "none",
    ]

    @Option(
        help: ArgumentHelp(
            "The longest time between two keepalives, as in 90s; 0 sends none.", valueName: "duration"))
    var keepalive: DurationArgument?

    @Option(
        help: ArgumentHelp(
            "The keepalive to send: tcp (the kernel's own probes), crlf, whitespace, xmpp-ping, mqtt, websocket, "
                + "custom, client (the agent wakes the client, which sends it) or none. The default follows the URL's "
                + "scheme.",
            valueName: "protocol"), completion: .keepaliveProtocols)
    var keepaliveProtocol: String?

    @Option(
        help: ArgumentHelp(
            "How much earlier a keepalive may be sent, to share a wake-up with others; less than the interval.",
            valueName: "duration"))
    var keepaliveTolerance: DurationArgument?

    @Flag(
        inversion: .prefixedNo,
        help: """
            Learn how long the network keeps an idle connection, and lengthen the interval up to the one given; the \
            default.
            """)
    var keepaliveAdaptive: Bool?

    @Option(
        help: ArgumentHelp(
            #"The bytes of a custom keepalive, with the escapes \r, \n, \t, \0, \\ and \xNN."#, valueName: "text"))
    var keepaliveSend: String?

    @Option(
        help: ArgumentHelp("The exact answer to a custom keepalive, with the same escapes.", valueName: "text"))
    var keepaliveExpect: String?

    @Flag(help: "Wake a sleeping machine for keepalives. For root and the agent's own user.")
    var wakeMachine = false

    func validate() throws {
        try keepalive?.check("--keepalive", atMost: PolicyOptions.longest)
        try keepaliveTolerance?.check("--keepalive-tolerance", atMost: PolicyOptions.longest)
        if isOff, let keepaliveProtocol, keepaliveProtocol != "none" {
            throw ValidationError("--keepalive 0 sends none; leave out --keepalive-protocol \(keepaliveProtocol)")
        }
    }

    private var isOff: Bool { keepalive?.duration == .zero }

    /// For the daemon; `nil` when nothing was given.
    var wire: ConnectionsAPI.Keepalive? {
        let wire = ConnectionsAPI.Keepalive(
            protocol: isOff ? "none" : keepaliveProtocol,
            interval: isOff ? nil : keepalive?.duration,
            tolerance: keepaliveTolerance?.duration, adaptive: keepaliveAdaptive,
            send: keepaliveSend, expect: keepaliveExpect, wakeMachine: wakeMachine ? true : nil)
        return wire == ConnectionsAPI.Keepalive() ? nil : wire
    }
}
