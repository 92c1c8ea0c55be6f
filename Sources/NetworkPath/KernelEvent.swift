// SPDX-License-Identifier: Apache-2.0

/// What one message of the kernel says, as a value.
package enum KernelEvent: Hashable, Sendable {
    /// An interface exists, with these properties (`RTM_NEWLINK`). Its addresses are not part of it.
    ///
    /// `isRunning` is its RFC 2863 state (from `IFF_RUNNING`), which the kernel settles together with the routes, a
    /// moment after the carrier came or went; `group` is the number by which rules may pass over its routes
    /// (`IFLA_GROUP`). Both are `nil` where they are not told.
    case interfacePresent(Interface, isRunning: Bool? = nil, group: UInt32? = nil)
    /// An interface is gone (`RTM_DELLINK`).
    case interfaceRemoved(index: Int)
    /// An interface has an address, with these flags (`RTM_NEWADDR`).
    case addressPresent(InterfaceAddress, interfaceIndex: Int)
    /// It no longer has it (`RTM_DELADDR`).
    case addressRemoved(InterfaceAddress, interfaceIndex: Int)
    /// A route to these destinations appeared, changed or went (`RTM_NEWROUTE`, `RTM_DELROUTE`). What it was does not
    /// matter: the kernel is asked again for every target inside the prefix.
    case routeChanged(IPPrefix, through: RouteLinks = .these([]), isRemoval: Bool = false)
    /// A policy rule appeared or went (`RTM_NEWRULE`, `RTM_DELRULE`).
    case ruleChanged
    /// A next-hop object appeared, changed or went (`RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`), and with it, in silence, the
    /// routes through it.
    case nextHopChanged
    /// A setting changed by which the kernel passes over routes: `ignore_routes_with_linkdown` (`RTM_NEWNETCONF`).
    case routeSelectionChanged
    /// A neighbour answers or does not (`RTM_NEWNEIGH`).
    case neighbourChanged(NetworkSnapshot.Neighbour, isFailed: Bool)
    /// The kernel asks for a neighbour, and has no answer yet (`RTM_NEWNEIGH` with `NUD_INCOMPLETE`). What held before
    /// holds on: one that failed and that somebody has a packet for is asked for again at once, and again in vain.
    case neighbourAwaited(NetworkSnapshot.Neighbour)
    /// The kernel holds nothing of a neighbour any more (`RTM_DELNEIGH`): not that it answers, nor that it does not.
    case neighbourForgotten(NetworkSnapshot.Neighbour)

    /// The links that a route leads through.
    package enum RouteLinks: Hashable, Sendable {
        /// These, by index; none for a route that refuses.
        case these([Int])
        /// Those of a next-hop object, which the message does not name.
        case unnamed
    }
}
