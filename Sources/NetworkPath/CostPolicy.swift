// SPDX-License-Identifier: Apache-2.0

/// Which interfaces cost money or are to be spared.
///
/// The kernel does not know. Cellular links count as expensive by themselves; beyond that it is the user's word.
public struct CostPolicy: Hashable, Sendable {
    /// Names of interfaces whose traffic costs money by volume, beside the cellular ones.
    public var expensive: Set<String>
    /// Names of interfaces that the user wants spared.
    public var constrained: Set<String>

    /// A policy; by default no word from the user.
    public init(expensive: Set<String> = [], constrained: Set<String> = []) {
        self.expensive = expensive
        self.constrained = constrained
    }

    /// `interface` with its cost filled in.
    func applied(to interface: Interface) -> Interface {
        var interface = interface
        interface.isExpensive = interface.kind == .cellular || expensive.contains(interface.name)
        interface.isConstrained = constrained.contains(interface.name)
        return interface
    }
}
