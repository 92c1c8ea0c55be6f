// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtoneNetworkPath

// Ways that the kernel does not choose.

extension NetworkState {
    /// The path to `address` by another interface than the one of the index `avoided`, for packets of `target`'s; `nil`
    /// where no other one has a route there. Interfaces that cost nothing come first.
    package func path(to address: IPAddress, around avoided: Int, for target: Target) -> Path? {
        guard let kernel else { return nil }
        let uplinks = kernel.snapshot.interfaces.values.filter { interface in
            interface.index != avoided && interface.isOperational && interface.kind != .loopback
                && interface.kind != .tunnel
                && interface.addresses.contains { $0.isUsable && $0.address.family == address.family }
        }
        let queries = uplinks.sorted { $0.cost < $1.cost }.prefix(Self.mostUplinks).map { uplink in
            PreparedQuery(RouteQuery(address, for: target, interfaceIndex: uplink.index))
        }
        guard !queries.isEmpty, let answers = try? kernel.routes(for: queries) else { return nil }
        // Bound to an interface, the kernel takes every address for a neighbour there, unless a route says otherwise.
        let paths = answers.map { Path(to: address, by: $0, needsRoute: true, in: kernel.snapshot) }
        return paths.first { $0.status == .satisfied && $0.source != nil && $0.interface?.index != avoided }
    }

    /// A machine has two or three; the interfaces of containers, of which there may be thousands, have no route there.
    private static let mostUplinks = 16
}

extension Interface {
    /// What comes first: what costs nothing, what its user does not ask to spare, what was there first.
    fileprivate var cost: (Int, Int, Int) { (isExpensive ? 1 : 0, isConstrained ? 1 : 0, index) }
}
