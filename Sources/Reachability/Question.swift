// SPDX-License-Identifier: Apache-2.0

package import NetworkPath

/// What one observed path is asked about. Equal questions share one evaluation, however many observe it.
package enum Question: Hashable, Sendable {
    /// The network as such: could a packet for the Internet leave, over an interface that meets the requirement?
    case network(InterfaceRequirement)
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
