// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath

// The library's values made of what the socket carries: a program has the same ones with a daemon and without. The
// words are the same on both sides.

extension DialtoneNetworkPath.Path {
    /// The path that the socket carries, which says nothing of the name servers.
    public init(_ wire: NetworkAPI.Path) {
        self.init(
            generation: UInt64(clamping: wire.generation), status: Status(rawValue: wire.status.rawValue) ?? .unknown,
            reason: wire.reason.flatMap { Reason(rawValue: $0.rawValue) }, isCoherent: wire.coherent,
            interface: wire.interface.map { DialtoneNetworkPath.Interface($0) },
            gateway: wire.gateway.flatMap { IPAddress($0) }, source: wire.source.flatMap { IPAddress($0) },
            destination: wire.destination.flatMap { IPAddress($0) }, isDirect: wire.isDirect,
            isLocalAddress: wire.isLocalAddress, supportsIPv4: wire.supportsIPv4, supportsIPv6: wire.supportsIPv6,
            supportsDNS: wire.supportsDNS, isExpensive: wire.expensive, isConstrained: wire.constrained)
    }
}

extension DialtoneNetworkPath.Interface {
    /// The interface that the socket carries. Of an address that is not usable it does not say why: it is tentative.
    public init(_ wire: NetworkAPI.Interface) {
        let addresses = wire.addresses.compactMap { text -> InterfaceAddress? in
            let parts = text.split(separator: "/")
            guard parts.count == 2, let address = IPAddress(String(parts[0])), let length = Int(parts[1]) else {
                return nil
            }
            return InterfaceAddress(
                address, prefixLength: length, isTentative: wire.unusable?.contains(text) == true,
                isDeprecated: wire.deprecated?.contains(text) == true)
        }
        self.init(
            index: wire.index, name: wire.name, kind: InterfaceKind(rawValue: wire.kind.rawValue) ?? .other,
            isUp: wire.up, hasCarrier: wire.carrier, addresses: addresses, isExpensive: wire.expensive,
            costSource: wire.costSource.flatMap { CostSource(rawValue: $0.rawValue) },
            isConstrained: wire.constrained)
    }
}
