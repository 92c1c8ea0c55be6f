// SPDX-License-Identifier: Apache-2.0

/// Addresses of both families, in all the states they can be in.
extension ChangeGenerator {
    mutating func addressChange() -> [Change] {
        let (link, number) = link()
        return switch below(100) {
        case ..<55: addition(link, number)
        // Deprecated at once, or back to full use.
        case ..<67:
            [
                .host(
                    "address change \(address(number)) dev \(link)"
                        + pick([" preferred_lft 0", " preferred_lft forever"]))
            ]
        case ..<90: [.host("address delete \(address(number)) dev \(link)")]
        case ..<94: [.host("-\(family()) address flush dev \(link)" + maybe(50, "scope global"))]
        // Duplicates, for those who look for them before they use an address.
        default: [.far("address \(pick(["add", "delete"])) 2001:db8:\(below(3))::\(pick([2, 3]))/64 dev e\(below(3))")]
        }
    }

    private mutating func address(_ number: Int) -> String {
        pick([
            "10.\(number).0.2/24", "10.\(number).0.3/24", "10.\(number).1.2/32", "10.77.0.2/24", "198.51.100.7/32",
            "10.\(number).2.2 peer 10.\(number).2.1/32", "2001:db8:\(number)::2/64", "2001:db8:\(number)::3/64",
            "fd00:\(number)::2/64", "2001:db8:77::2/64", "fe80::\(number + 2)/64", "2001:db8:f::7/128",
        ])
    }

    private mutating func addition(_ link: String, _ number: Int) -> [Change] {
        let address = address(number)
        // Without `nodad` an IPv6 address is tentative for a while, and stays unusable where it is a duplicate.
        let detection = address.contains(":") ? maybe(60, "nodad") : ""
        let life = pick(["", "", "", "", "", "", "", "", " preferred_lft 0", " valid_lft 1 preferred_lft 1"])
        let properties = maybe(10, "noprefixroute") + maybe(5, "scope link") + life
        return [.host("address \(pick(["add", "replace"])) \(address) dev \(link)\(detection)\(properties)")]
    }
}
