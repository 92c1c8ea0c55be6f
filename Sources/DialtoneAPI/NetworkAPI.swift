// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// `org.dialtone.Network` in Swift. What each field means stands in the interface's definition, ``description``.
public enum NetworkAPI {
    /// The interface's name.
    public static let name = "org.dialtone.Network"
    /// The interface's definition in Varlink's language.
    public static let description = String(decoding: PackageResources.org_dialtone_Network_varlink, as: UTF8.self)

    /// A network interface.
    public struct Interface: Codable, Hashable, Sendable {
        /// What an interface leads to.
        public enum Kind: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case loopback, wired, wifi, cellular, tunnel, bridge, virtual, other
        }

        /// Who says what its traffic costs.
        public enum CostSource: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case configuration, networkManager, guess, kind
        }

        /// The kernel's number of it.
        public var index: Int
        /// Its name.
        public var name: String
        /// What it leads to.
        public var kind: Kind
        /// Whether an administrator has it up.
        public var up: Bool
        /// Whether the other end is there.
        public var carrier: Bool
        /// Its addresses with their prefix lengths.
        public var addresses: [String]
        /// Those of them that serve no new connections; `nil` for none.
        public var deprecated: [String]?
        /// Those of them that packets may not carry; `nil` for none.
        public var unusable: [String]?
        /// Whether its traffic costs money by volume.
        public var expensive: Bool
        /// Who says so, or says that it does not; `nil` where nobody knows.
        public var costSource: CostSource?
        /// Whether the user asked to spare it.
        public var constrained: Bool

        /// An interface.
        public init(
            index: Int, name: String, kind: Kind, up: Bool, carrier: Bool, addresses: [String],
            deprecated: [String]? = nil, unusable: [String]? = nil, expensive: Bool, costSource: CostSource? = nil,
            constrained: Bool
        ) {
            self.index = index
            self.name = name
            self.kind = kind
            self.up = up
            self.carrier = carrier
            self.addresses = addresses
            self.deprecated = deprecated
            self.unusable = unusable
            self.expensive = expensive
            self.costSource = costSource
            self.constrained = constrained
        }
    }

    /// The way that packets take to a target now, or why there is none.
    public struct Path: Codable, Hashable, Sendable {
        /// Whether the target can be reached.
        public enum Status: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case satisfied, unsatisfied, requiresConnection, unknown
        }

        /// Why it cannot be reached.
        public enum Reason: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case noRoute, noCarrier, noAddress, gatewayUnreachable, prohibited, blackhole, unreachable, nameUnresolved
        }

        /// Counts what happened to the network.
        public var generation: Int
        /// Whether the target can be reached.
        public var status: Status
        /// Why it cannot.
        public var reason: Reason?
        /// False while the kernel's state is read anew.
        public var coherent: Bool
        /// The interface that packets leave by.
        public var interface: Interface?
        /// The next hop.
        public var gateway: String?
        /// The source address that packets carry.
        public var source: String?
        /// The address that the verdict is for.
        public var destination: String?
        /// Whether the destination is on a network that this machine is attached to.
        public var isDirect: Bool
        /// Whether the destination is this machine.
        public var isLocalAddress: Bool
        /// Whether IPv4 packets can leave.
        public var supportsIPv4: Bool
        /// Whether IPv6 packets can leave.
        public var supportsIPv6: Bool
        /// Whether a configured name server can be reached.
        public var supportsDNS: Bool
        /// Whether the interface's traffic costs money by volume.
        public var expensive: Bool
        /// Whether the user asked to spare the interface.
        public var constrained: Bool

        /// A path.
        public init(
            generation: Int, status: Status, reason: Reason? = nil, coherent: Bool, interface: Interface? = nil,
            gateway: String? = nil, source: String? = nil, destination: String? = nil, isDirect: Bool,
            isLocalAddress: Bool, supportsIPv4: Bool, supportsIPv6: Bool, supportsDNS: Bool, expensive: Bool,
            constrained: Bool
        ) {
            self.generation = generation
            self.status = status
            self.reason = reason
            self.coherent = coherent
            self.interface = interface
            self.gateway = gateway
            self.source = source
            self.destination = destination
            self.isDirect = isDirect
            self.isLocalAddress = isLocalAddress
            self.supportsIPv4 = supportsIPv4
            self.supportsIPv6 = supportsIPv6
            self.supportsDNS = supportsDNS
            self.expensive = expensive
            self.constrained = constrained
        }
    }

    /// What reachability is asked of.
    public struct Target: VarlinkParameters, Hashable {
        /// A transport protocol.
        public enum TransportProtocol: String, Codable, Hashable, Sendable, CaseIterable {
            /// RFC 9293 and RFC 768.
            case tcp, udp
        }

        /// A name or an address.
        public var host: String
        /// The destination port.
        public var port: Int?
        /// The transport protocol.
        public var `protocol`: TransportProtocol?
        /// The firewall mark of the packets.
        public var mark: Int?
        /// The name of the interface that they must leave by.
        public var interface: String?
        /// The source address that they must carry.
        public var source: String?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case host, port, `protocol`, mark, interface, source
        }

        /// A target.
        public init(
            host: String, port: Int? = nil, protocol: TransportProtocol? = nil, mark: Int? = nil,
            interface: String? = nil, source: String? = nil
        ) {
            self.host = host
            self.port = port
            self.protocol = `protocol`
            self.mark = mark
            self.interface = interface
            self.source = source
        }
    }
}
