// SPDX-License-Identifier: Apache-2.0

/// What all the links together offer: the reason why there is no route is read from it.
struct LinkSummary: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// Some link but the loopback is up with a carrier.
    static let link = LinkSummary(rawValue: 1)

    /// Some such link has a usable address of this family that reaches beyond it.
    static func address(_ family: IPAddress.Family) -> LinkSummary { LinkSummary(rawValue: family == .v4 ? 2 : 4) }

    /// Whether a verdict on an address of `family` sees a difference between this and `other`.
    func looks(unlike other: LinkSummary, from family: IPAddress.Family) -> Bool {
        !symmetricDifference(other).isDisjoint(with: [.link, .address(family)])
    }
}

extension NetworkSnapshot {
    /// Finds out now what all links together offer, which every verdict without a route is read from.
    package mutating func prepareForVerdicts() {
        if knownLinkSummary == nil { knownLinkSummary = linkSummary }
    }

    /// What the links offer now.
    var linkSummary: LinkSummary {
        if let knownLinkSummary { return knownLinkSummary }
        var linkSummary: LinkSummary = []
        for link in interfaces.values where link.kind != .loopback && link.isOperational {
            linkSummary.insert(.link)
            for address in link.addresses where address.isUsable && !address.address.isLinkLocal {
                linkSummary.insert(.address(address.address.family))
            }
        }
        return linkSummary
    }
}
