// SPDX-License-Identifier: Apache-2.0

/// What reachability is asked of: a host by name or address, and the packet's properties that policy rules look at.
public struct Target: Hashable, Sendable {
    /// A host, by name or by address.
    public enum Host: Hashable, Sendable, CustomStringConvertible {
        /// A literal address.
        case address(IPAddress)
        /// A name for the resolver, without a trailing dot.
        case name(String)

        /// A literal address if `text` is one, else a name.
        public init(_ text: String) {
            self = IPAddress(text).map { .address($0) } ?? .name(text)
        }

        /// The name or address alone.
        public var description: String {
            switch self {
            case .address(let address): address.description
            case .name(let name): name
            }
        }
    }

    /// A transport protocol that a rule may select on (`FRA_IP_PROTO`).
    public enum TransportProtocol: String, Hashable, Sendable {
        /// RFC 9293.
        case tcp
        /// RFC 768.
        case udp
    }

    /// The host.
    public var host: Host
    /// The destination port (`RTA_DPORT`).
    public var port: UInt16?
    /// The transport protocol (`RTA_IP_PROTO`).
    public var transport: TransportProtocol?
    /// The firewall mark that the packets carry (`RTA_MARK`).
    public var mark: UInt32?
    /// The user whose packets they are (`RTA_UID`); `nil` asks for the calling process's.
    public var user: UInt32?
    /// The interface they must leave by, by name (`RTA_OIF`).
    public var interface: String?
    /// The source address they must carry (`RTA_SRC`).
    public var source: IPAddress?

    /// A target; what is left out is not asked for.
    public init(
        _ host: Host, port: UInt16? = nil, transport: TransportProtocol? = nil, mark: UInt32? = nil,
        user: UInt32? = nil, interface: String? = nil, source: IPAddress? = nil
    ) {
        self.host = host
        self.port = port
        self.transport = transport
        self.mark = mark
        self.user = user
        self.interface = interface
        self.source = source
    }
}
