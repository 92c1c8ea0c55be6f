// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneNetworkPath

/// What policy rules select packets by, beyond the destination.
struct PacketOptions: ParsableArguments {
    @Option(
        help: "Their firewall mark, 0 to 4294967295, as in 7 or 0x7.",
        transform: { text in try Number.parse(text, atLeast: 0) })
    var mark: Int?

    @Option(
        help: "Their protocol, tcp or udp; tcp where there is a port.",
        transform: { text in
            guard let transport = Target.TransportProtocol(rawValue: text) else {
                throw ValidationError("invalid protocol \"\(text)\" (tcp or udp)")
            }
            return transport
        })
    var `protocol`: Target.TransportProtocol?

    @Option(help: "The number of their user; by default yours.")
    var uid: UInt32?

    @Option(help: "The interface that they must leave by.", completion: .interfaces)
    var interface: String?

    @Option(
        help: ArgumentHelp("The source address that they must carry.", valueName: "address"),
        transform: { text in
            guard let address = IPAddress(text) else {
                throw ValidationError("invalid address \"\(text)\" (an IP address)")
            }
            return address
        })
    var source: IPAddress?

    /// `target`, for packets with these properties.
    func applied(to target: Target) -> Target {
        var target = target
        target.mark = mark.flatMap { UInt32(exactly: $0) }
        target.transport = `protocol`
        target.user = uid
        target.interface = interface ?? target.interface
        target.source = source
        return target
    }
}
