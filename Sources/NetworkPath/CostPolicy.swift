// SPDX-License-Identifier: Apache-2.0

/// Who says what an interface's traffic costs. Where nobody does, the cost is unknown and counts as none.
public enum CostSource: String, Hashable, Sendable, CaseIterable {
    /// The user, in the configuration.
    case configuration
    /// The user, in the connection's profile of the network manager.
    case networkManager
    /// The network manager, by what it sees: a modem, a phone that says in its DHCP answer that it is one.
    case guess
    /// The interface's kind: mobile networks bill by volume.
    case kind
}

/// What a network manager says of an interface's traffic.
package enum Metering: String, Hashable, Sendable, CaseIterable {
    /// Its user said that it costs money by volume.
    case yes
    /// Its user said that it does not.
    case no
    /// It seems to.
    case guessedYes
    /// It seems not to.
    case guessedNo
}

/// Which interfaces cost money or are to be spared.
///
/// The kernel does not know. In this order it is the word of the configuration, of the network manager's profile, the
/// manager's guess that it does, and the interface's kind. A guess that it does not comes last: it is made of the lack
/// of signs, and a cellular link is one.
package struct CostPolicy: Hashable, Sendable {
    /// Names of interfaces whose traffic costs money by volume.
    package var expensive: Set<String>
    /// Names of interfaces whose traffic does not, whatever else is said of them.
    package var inexpensive: Set<String>
    /// Names of interfaces that the user wants spared.
    package var constrained: Set<String>
    /// What the network manager says, by interface name.
    package var metered: [String: Metering]

    /// A policy; by default no word from anybody.
    package init(
        expensive: Set<String> = [], inexpensive: Set<String> = [], constrained: Set<String> = [],
        metered: [String: Metering] = [:]
    ) {
        self.expensive = expensive
        self.inexpensive = inexpensive
        self.constrained = constrained
        self.metered = metered
    }

    /// `interface` with its cost filled in.
    func applied(to interface: Interface) -> Interface {
        var interface = interface
        (interface.isExpensive, interface.costSource) = cost(of: interface)
        interface.isConstrained = constrained.contains(interface.name)
        return interface
    }

    private func cost(of interface: Interface) -> (isExpensive: Bool, source: CostSource?) {
        if expensive.contains(interface.name) { return (true, .configuration) }
        if inexpensive.contains(interface.name) { return (false, .configuration) }
        let metering = metered[interface.name]
        switch metering {
        case .yes: return (true, .networkManager)
        case .no: return (false, .networkManager)
        case .guessedYes: return (true, .guess)
        case .guessedNo, nil: break
        }
        if interface.kind == .cellular { return (true, .kind) }
        return (false, metering == nil ? nil : .guess)
    }
}
