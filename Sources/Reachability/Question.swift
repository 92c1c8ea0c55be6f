// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// What one observed path is asked about. Equal questions share one evaluation, however many observe it.
package enum Question: Hashable, Sendable {
    /// The network as such: could a packet for the Internet leave, over an interface that meets the requirement? A
    /// packet of this user, whom rules may send another way; `nil` for the process's own.
    case network(InterfaceRequirement, user: UInt32? = nil)
    /// One host.
    case host(Target)
}

/// Which interfaces a path may use.
package enum InterfaceRequirement: Hashable, Sendable {
    /// Whichever the kernel's routes lead to.
    case any
    /// Only those of this kind.
    case requires(InterfaceKind)
    /// None of these kinds.
    case prohibits(Set<InterfaceKind>)

    /// The interfaces to ask the kernel for one by one; `nil` where it chooses itself.
    func interfaces(in snapshot: NetworkSnapshot) -> [Int]? {
        let isAllowed: (InterfaceKind) -> Bool
        switch self {
        case .any: return nil
        case .requires(let kind): isAllowed = { $0 == kind }
        case .prohibits(let kinds): isAllowed = { !kinds.contains($0) && $0 != .loopback }
        }
        return snapshot.interfaces.values.filter { isAllowed($0.kind) && $0.isUp }.map(\.index).sorted()
    }
}

extension Path {
    /// This answer to `question` with what holds of the network as a whole.
    func with(_ facts: NetworkFacts, for question: Question) -> Path {
        guard case .network(_, let user) = question else { return with(facts) }
        var facts = facts
        // Another user's packets may not go where those go that the facts were found with.
        if user != nil, status != .unknown {
            (facts.supportsIPv4, facts.supportsIPv6) = (supportsIPv4, supportsIPv6)
        }
        var path = with(facts)
        // "The network" has no destination; the address it was looked up with is nobody's concern.
        path.destination = nil
        return path
    }
}
