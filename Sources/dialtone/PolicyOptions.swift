// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneVarlink
internal import Glibc

/// How a connection is supervised.
struct PolicyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How long sent bytes may stay unacknowledged before the socket counts as lost, as in 30s.",
            valueName: "duration"))
    var userTimeout: DurationArgument?

    @Option(
        help: ArgumentHelp(
            "How long to keep a socket after its local address or route is gone, in case they come back: 0s to 1m; "
                + "default 5s.",
            valueName: "duration"))
    var grace: DurationArgument?

    @Option(
        help: "The firewall mark of its packets, 1 to 4294967295, as in 7 or 0x7.",
        transform: { text in try Number.parse(text, atLeast: 1) })
    var mark: Int?

    @Flag(
        name: .customLong("keep-abandoned"),
        help: """
            Keep the socket of a client that ends without parking it, so that the next client reads on. By default \
            the agent dials a new one, since nobody knows how far the client had read.
            """)
    var keepsAbandonedFlow = false

    @Flag(
        inversion: .prefixedNo,
        help: "Move to a better path while the old one still works: dial the new one first, then leave the old one.")
    var makeBeforeBreak: Bool?

    @Flag(
        inversion: .prefixedNo,
        help: "Try another uplink if nothing gets through on the usual one.")
    var otherUplinks: Bool?

    @Option(
        help: "The traffic class (DSCP) of its packets: cs5 (the default), ef, af41, …, none, or a number.",
        completion: .trafficClasses)
    var trafficClass: String?

    @Option(help: "The priority of its packets on this machine (SO_PRIORITY), 0 to 6; default 6.")
    var priority: Int?

    @Option(
        help: ArgumentHelp(
            "A socket option, as in maximum_segment=1200; dialtone-varlink(7) lists them; repeatable.",
            valueName: "name=number"),
        transform: SocketOption.init)
    var socketOption: [SocketOption] = []

    @OptionGroup(title: "Keepalive")
    var keepalive: KeepaliveOptions

    @OptionGroup
    var left: LeftOptions

    @OptionGroup(title: "TLS")
    var tls: TLSOptions

    /// The longest of the other times: a day.
    static let longest = Duration.seconds(86_400)

    func validate() throws {
        try userTimeout?.check("--user-timeout", atMost: ConnectionPolicy.userTimeouts.upperBound)
        try grace?.check("--grace", atMost: ConnectionPolicy.graces.upperBound)
    }

    /// For the daemon. Its error names a wrong setting, but has no field for the reason (`InvalidParameter`), so the
    /// command makes the same check first. For an opening the daemon gives a reason.
    ///
    /// - Parameter remote: where it leads; `nil` for a socket that was adopted alone.
    func settings(to remote: String?) throws -> ConnectionsAPI.Settings {
        let settings = try wire()
        let check = SettingsCheck(
            settings, to: remote.flatMap { try? Remote($0) }, owner: getuid(), redials: remote != nil)
        let wrong = check.problems.first { !$0.isHarmless && !$0.field.hasPrefix("opening") }
        if let wrong { throw ValidationError("\(wrong.field): \(wrong.reason)") }
        return settings
    }

    private func wire() throws -> ConnectionsAPI.Settings {
        .init(
            keepalive: keepalive.wire, opening: try left.openingWire(), answers: try left.answersWire(), tls: tls.wire,
            userTimeout: userTimeout?.duration, grace: grace?.duration,
            keepAbandoned: keepsAbandonedFlow ? true : nil, makeBeforeBreak: makeBeforeBreak,
            otherUplinks: otherUplinks,
            trafficClass: trafficClass, priority: priority, mark: mark,
            socket: socketOption.isEmpty ? nil : SocketOption.object(socketOption))
    }
}

/// An option of a socket, by its name in a file or in `SocketSettings`.
struct SocketOption {
    let name: String
    let value: Int

    init(_ text: String) throws {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, let value = Int(parts[1]), !parts[0].contains(where: { "\"\\".contains($0) })
        else {
            throw ValidationError("invalid option of sockets \"\(text)\" (name=number)")
        }
        let words = parts[0].split { $0 == "_" || $0 == "-" }
        name = words.dropFirst().reduce("\(words.first ?? "")") { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
        self.value = value
        guard let object = Self.object([self]), object != .init() else {
            throw ValidationError("no option of sockets is called \"\(parts[0])\"")
        }
    }

    /// By way of JSON, so that the names stand in the definition of the interface alone.
    static func object(_ options: [Self]) -> ConnectionsAPI.SocketSettings? {
        let members = options.map { "\"\($0.name)\":\($0.value)" }
        return .init(json: "{\(members.joined(separator: ","))}".utf8)
    }
}

/// Numbers as people write marks.
enum Number {
    static func parse(_ text: String, atLeast least: Int) throws -> Int {
        let number = text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text)
        guard let number, (least...Int(UInt32.max)).contains(number) else {
            throw ValidationError("invalid mark \"\(text)\" (\(least)–4294967295, or 0x and hexadecimal)")
        }
        return number
    }
}
