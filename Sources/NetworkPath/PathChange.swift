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
    /// The addresses of the interface, or what may be done with one of them. Their order alone is no change.
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
    /// ``Path/supportsDNS`` or ``Path/nameServers``.
    case dns
    /// ``Path/isExpensive``, or who says so (``Interface/costSource``).
    case expensive
    /// ``Path/isConstrained``.
    case constrained
}

extension Path {
    /// The changes from `earlier` to this path, in the order of ``PathChange``. Empty when only the generation differs:
    /// something happened, and the verdict stands.
    public func changes(from earlier: Path) -> [PathChange] {
        // Compared field by field, without copies: this runs for every observer at every event.
        var changes: [PathChange] = []
        func note(_ change: PathChange, if differs: Bool) {
            if differs { changes.append(change) }
        }
        note(.status, if: status != earlier.status)
        note(.reason, if: reason != earlier.reason)
        note(.coherent, if: isCoherent != earlier.isCoherent)
        note(.interface, if: !Interface.areAlike(interface, earlier.interface))
        note(.addresses, if: !Interface.haveAlikeAddresses(interface, earlier.interface))
        note(.gateway, if: gateway != earlier.gateway)
        note(.source, if: source != earlier.source)
        note(.destination, if: destination != earlier.destination)
        note(.direct, if: isDirect != earlier.isDirect || isLocalAddress != earlier.isLocalAddress)
        note(.ipv4, if: supportsIPv4 != earlier.supportsIPv4)
        note(.ipv6, if: supportsIPv6 != earlier.supportsIPv6)
        note(.dns, if: supportsDNS != earlier.supportsDNS || nameServers != earlier.nameServers)
        note(
            .expensive,
            if: isExpensive != earlier.isExpensive || interface?.costSource != earlier.interface?.costSource)
        note(.constrained, if: isConstrained != earlier.isConstrained)
        return changes
    }
}

extension Path {
    /// Whether nothing changed by the verdict of this path, so that ``changes(from:)`` has no name for it; without the
    /// list. Fields that often differ come first.
    package func differsOnlyInGeneration(from other: Path) -> Bool {
        status == other.status && reason == other.reason && gateway == other.gateway && source == other.source
            && Interface.areAlike(interface, other.interface) && interface?.costSource == other.interface?.costSource
            && Interface.haveAlikeAddresses(interface, other.interface) && destination == other.destination
            && isCoherent == other.isCoherent
            && isDirect == other.isDirect && isLocalAddress == other.isLocalAddress
            && supportsIPv4 == other.supportsIPv4 && supportsIPv6 == other.supportsIPv6
            && supportsDNS == other.supportsDNS && nameServers == other.nameServers
            && isExpensive == other.isExpensive && isConstrained == other.isConstrained
    }
}

extension Interface {
    /// Whether two are the same in all but their addresses and their cost, which have names of their own among the
    /// changes.
    fileprivate static func areAlike(_ one: Interface?, _ other: Interface?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return one.index == other.index && one.name == other.name && one.kind == other.kind
            && one.isUp == other.isUp && one.hasCarrier == other.hasCarrier
    }

    /// Whether two have addresses that look the same, in whatever order: a lease that is renewed may change that alone.
    fileprivate static func haveAlikeAddresses(_ one: Interface?, _ other: Interface?) -> Bool {
        let (ours, theirs) = (one?.addresses ?? [], other?.addresses ?? [])
        if ours == theirs { return true }
        guard ours.count == theirs.count else { return false }
        // An interface may have thousands, of which next to none differ.
        let start = zip(ours, theirs).prefix { $0 == $1 }.count
        let end = zip(ours.reversed(), theirs.reversed()).prefix { $0 == $1 }.count
        let differing = start..<max(start, ours.count - end)
        return Set(ours[differing].map(\.look)) == Set(theirs[differing].map(\.look))
    }
}
