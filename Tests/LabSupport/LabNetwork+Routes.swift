// SPDX-License-Identifier: Apache-2.0

/// A route that refuses packets, each with an error of its own.
package enum RefusingRoute: String, Hashable, Sendable, CaseIterable {
    /// Swallows them (`EINVAL` to the sender).
    case blackhole
    /// `EHOSTUNREACH`.
    case unreachable
    /// `EACCES`.
    case prohibit
    /// Ends the search in its table (`ENETUNREACH` if no other rule leads on).
    case `throw`
}

/// Routes and rules of the host.
extension LabNetwork {
    /// Adds the default routes via an uplink, or puts them back; by default with the metric of the start.
    package func addDefaultRoute(
        via uplink: Uplink, metric: Int? = nil, families: [Family] = Family.allCases
    ) async throws {
        try await host.ip(
            batch: families.map {
                "route replace " + defaultRoute(via: uplink, $0, metric: metric ?? uplink.metric)
            })
    }

    /// Removes the default routes via an uplink, by default those with the metric of the start.
    package func removeDefaultRoute(
        via uplink: Uplink, metric: Int? = nil, families: [Family] = Family.allCases
    ) async throws {
        try await host.ip(
            batch: families.map { "route delete " + defaultRoute(via: uplink, $0, metric: metric ?? uplink.metric) })
    }

    /// Makes an uplink the preferred one, as a network manager does when the user switches: default routes with a
    /// metric lower than all others come, then the uplink's former ones go.
    package func preferDefaultRoute(via uplink: Uplink, families: [Family] = Family.allCases) async throws {
        try await addDefaultRoute(via: uplink, metric: Self.preferredMetric, families: families)
        try await removeDefaultRoute(via: uplink, families: families)
    }

    /// The metric of default routes after ``preferDefaultRoute(via:families:)``.
    package static let preferredMetric = 50

    /// Adds a route that refuses: `addRefusingRoute(.blackhole, "203.0.113.0/24")`.
    package func addRefusingRoute(_ kind: RefusingRoute, _ prefix: String, table: Int = 254) async throws {
        try await host.ip("route add \(kind.rawValue) \(prefix) table \(table)")
    }

    /// Removes a route that refuses.
    package func removeRefusingRoute(_ kind: RefusingRoute, _ prefix: String, table: Int = 254) async throws {
        try await host.ip("route delete \(kind.rawValue) \(prefix) table \(table)")
    }

    /// Adds a policy rule: `addRule(.v4, "fwmark 7 prohibit")`.
    package func addRule(_ family: Family, _ rule: String) async throws {
        try await host.ip("\(family.rawValue) rule add \(rule)")
    }

    /// Removes a policy rule.
    package func removeRule(_ family: Family, _ rule: String) async throws {
        try await host.ip("\(family.rawValue) rule delete \(rule)")
    }

    /// A default route as `ip route` takes it; the family is the gateway's.
    func defaultRoute(via uplink: Uplink, _ family: Family, metric: Int) -> String {
        "default via \(uplink.gateway(family)) dev \(uplink.name) metric \(metric)"
    }
}
