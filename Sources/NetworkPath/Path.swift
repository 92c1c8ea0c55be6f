// SPDX-License-Identifier: Apache-2.0

/// The way packets take to a target now, or why there is none. An immutable value.
public struct Path: Hashable, Sendable {
    /// Whether the target can be reached.
    public enum Status: String, Hashable, Sendable {
        /// The kernel would send the packet, and nothing is known to stand in its way.
        case satisfied
        /// It would not, or it would be lost; ``Path/reason`` says why.
        case unsatisfied
        /// It would once a connection is brought up on demand.
        case requiresConnection
        /// The kernel cannot be asked (netlink is not to be had). Never reported as offline.
        case unknown
    }

    /// Why a path is not satisfied.
    public enum Reason: String, Hashable, Sendable {
        /// No route leads there.
        case noRoute
        /// The link it would leave by, or every link, has nothing at its other end.
        case noCarrier
        /// There is no usable source address.
        case noAddress
        /// The next hop does not answer.
        case gatewayUnreachable
        /// A rule or route forbids it.
        case prohibited
        /// A rule or route swallows it.
        case blackhole
        /// A route declares it unreachable.
        case unreachable
        /// The host's name has no address, or cannot be asked for.
        case nameUnresolved
    }

    /// Counts changes of the network; equal numbers mean nothing happened between two paths.
    public var generation: UInt64
    /// Whether the target can be reached.
    public var status: Status
    /// Why not; `nil` when it can.
    public var reason: Reason?
    /// False while the kernel's state is being re-read after an overrun: the verdict is the last one known.
    public var isCoherent: Bool
    /// The interface packets leave by.
    public var interface: Interface?
    /// The next hop; `nil` when the destination is on the link or on this machine.
    public var gateway: IPAddress?
    /// The source address packets carry.
    public var source: IPAddress?
    /// The address the verdict was made for; `nil` for "the network" as such.
    public var destination: IPAddress?
    /// Whether the destination is on a directly attached network.
    public var isDirect: Bool
    /// Whether the destination is this machine.
    public var isLocalAddress: Bool
    /// Whether IPv4 packets can leave.
    public var supportsIPv4: Bool
    /// Whether IPv6 packets can leave.
    public var supportsIPv6: Bool
    /// Whether DNS works: a packet to a configured name server can leave, and the last question that was asked of them
    /// did not end in silence.
    public var supportsDNS: Bool
    /// The configured name servers, in the order of resolv.conf(5).
    public var nameServers: [IPAddress]
    /// Whether the interface's traffic costs money by volume.
    public var isExpensive: Bool
    /// Whether the user asked to spare the interface.
    public var isConstrained: Bool

    /// A path. The defaults describe one that leads nowhere.
    public init(
        generation: UInt64 = 0, status: Status, reason: Reason? = nil, isCoherent: Bool = true,
        interface: Interface? = nil, gateway: IPAddress? = nil, source: IPAddress? = nil,
        destination: IPAddress? = nil, isDirect: Bool = false, isLocalAddress: Bool = false,
        supportsIPv4: Bool = false, supportsIPv6: Bool = false, supportsDNS: Bool = false,
        nameServers: [IPAddress] = [], isExpensive: Bool = false, isConstrained: Bool = false
    ) {
        self.generation = generation
        self.status = status
        self.reason = reason
        self.isCoherent = isCoherent
        self.interface = interface
        self.gateway = gateway
        self.source = source
        self.destination = destination
        self.isDirect = isDirect
        self.isLocalAddress = isLocalAddress
        self.supportsIPv4 = supportsIPv4
        self.supportsIPv6 = supportsIPv6
        self.supportsDNS = supportsDNS
        self.nameServers = nameServers
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }
}
