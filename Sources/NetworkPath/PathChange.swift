// SPDX-License-Identifier: Apache-2.0

/// What differs between two paths, by name. The raw values are published on the socket.
public enum PathChange: String, Hashable, Sendable, CaseIterable {
    /// ``Path/status``.
    case status
    /// ``Path/reason``.
    case reason
    /// ``Path/isCoherent``.
    case coherent
    /// Another interface, or the same one under another name, kind or link state.
    case interface
    /// The addresses of the interface.
    case addresses
    /// ``Path/gateway``.
    case gateway
    /// ``Path/source``.
    case source
    /// ``Path/destination``.
    case destination
    /// ``Path/isDirect`` or ``Path/isLocalAddress``.
    case direct
    /// ``Path/supportsIPv4``.
    case ipv4
    /// ``Path/supportsIPv6``.
    case ipv6
    /// ``Path/supportsDNS``.
    case dns
    /// ``Path/isExpensive``.
    case expensive
    /// ``Path/isConstrained``.
    case constrained
}

extension Path {
    /// The changes from `earlier` to this path, in the order of ``PathChange``. Empty when only the generation differs:
    /// something happened, and the verdict stands.
    public func changes(from earlier: Path) -> [PathChange] {
        PathChange.allCases.filter { change in
            switch change {
            case .status: status != earlier.status
            case .reason: reason != earlier.reason
            case .coherent: isCoherent != earlier.isCoherent
            case .interface: interface?.withoutAddresses != earlier.interface?.withoutAddresses
            case .addresses: interface?.addresses != earlier.interface?.addresses
            case .gateway: gateway != earlier.gateway
            case .source: source != earlier.source
            case .destination: destination != earlier.destination
            case .direct: (isDirect, isLocalAddress) != (earlier.isDirect, earlier.isLocalAddress)
            case .ipv4: supportsIPv4 != earlier.supportsIPv4
            case .ipv6: supportsIPv6 != earlier.supportsIPv6
            case .dns: supportsDNS != earlier.supportsDNS
            case .expensive: isExpensive != earlier.isExpensive
            case .constrained: isConstrained != earlier.isConstrained
            }
        }
    }
}

extension Interface {
    fileprivate var withoutAddresses: Interface {
        var copy = self
        copy.addresses = []
        // Cost has names of its own among the changes.
        copy.isExpensive = false
        copy.isConstrained = false
        return copy
    }
}
