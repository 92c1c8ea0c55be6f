// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneVarlink

/// What the agent counted and measures, for a collector such as Prometheus.
///
/// Labels are a connection's name, its owner's number and the scheme of its remote; a cause, a result, a means or a
/// change by name. Never the remote: what a label says has few values, and stands in other people's databases.
package struct MetricsText {
    private let reply: ConnectionsAPI.Metrics.Reply

    /// What the agent told.
    package init(_ reply: ConnectionsAPI.Metrics.Reply) { self.reply = reply }

    /// In a format.
    package func text(_ format: ExpositionFormat) -> String { format.text(of: families) }

    private var families: [MetricFamily] { present + counted + network + agent }

    private typealias Metric = MetricFamily.Metric
    private typealias Label = MetricFamily.Label

    // MARK: - Connections, now

    private var present: [MetricFamily] {
        [
            gauge("connection_up", "Whether the connection has a socket that works.") {
                $0.state.hasFlow ? 1 : 0
            },
            gauge(
                "connection_session_open",
                "Whether somebody is logged in on the socket, as far as the agent knows; missing where it cannot know."
            ) { $0.session == .unknown ? nil : $0.session == .open ? 1 : 0 },
            gauge(
                "connection_login_missing", "Whether the server expects a login on the socket and nobody has logged in."
            ) { $0.lacksLogin == true ? 1 : 0 },
            MetricFamily(
                name: "dialtone_connection_state", kind: .stateset, help: "What the connection is doing.",
                metrics: reply.connections.map {
                    Metric(
                        labels: labels(of: $0),
                        value: .state(
                            $0.connection.state.rawValue, of: ConnectionsAPI.State.allCases.map(\.rawValue)))
                }),
            gauge(
                "connection_wake_given_up",
                "Whether the agent gave up a wake of the client: it tries nothing more until there is another reason."
            ) { $0.wakeFailed == true ? 1 : 0 },
            gauge(
                "connection_keepalive_interval_seconds", unit: "seconds",
                "The longest time between two keepalives of the protocol, as given or as learned of the network."
            ) { $0.keepaliveInterval?.inSeconds },
            gauge(
                "connection_certificate_expiry_timestamp_seconds", unit: "seconds",
                "When the first of the socket's certificates expires, the server's or the client's own."
            ) { $0.security?.certificateEndsAt?.seconds },
            gauge(
                "connection_unread_bytes", unit: "bytes", "Bytes that arrived and that no client has read."
            ) { $0.unreadBytes.map(Double.init) },
        ]
    }

    private func gauge(
        _ name: String, unit: String? = nil, _ help: String, _ value: (ConnectionsAPI.Connection) -> Double?
    ) -> MetricFamily {
        MetricFamily(
            name: "dialtone_\(name)", kind: .gauge, unit: unit, help: help,
            metrics: reply.connections.compactMap { counted in
                value(counted.connection).map { Metric(labels: labels(of: counted), value: .init($0)) }
            })
    }

    private func labels(of counted: ConnectionsAPI.CountedConnection, _ more: Label...) -> [Label] {
        let connection = counted.connection
        let owner = connection.owner.map { [Label("owner", "\($0)")] } ?? []
        return [Label("name", connection.name)] + owner + [Label("scheme", connection.scheme)] + more
    }

    // MARK: - Connections, counted

    private var counted: [MetricFamily] {
        [
            each("connection_outages", .counter, "How often the connection went down, by the cause.") { connection in
                connection.counters.outages.map { ([Label("cause", $0.cause.rawValue)], .integer($0.count)) }
            },
            each(
                "connection_downtime_seconds", .counter, unit: "seconds",
                "How long the connection was down, the outage under way included."
            ) { [([], .number($0.counters.down.inSeconds))] },
            each(
                "connection_dials", .counter,
                "How many dials ended, by the result: connected, or the cause of the failure."
            ) { connection in
                let failed = connection.counters.failedDials.map { ($0.cause.rawValue, $0.count) }
                return ([("connected", connection.counters.connectedDials)] + failed).map { result, count in
                    ([Label("result", result)], .integer(count))
                }
            },
            each(
                "connection_connect_time_seconds", .histogram, unit: "seconds",
                "How long a dial took until the socket could be used, TLS included."
            ) { [([], histogram($0.counters.connectTime))] },
            each(
                "connection_wakes", .counter,
                "How many wakes of the client ended, by the means of the last attempt and the result."
            ) { connection in
                connection.counters.wakes.flatMap { wakes in
                    [("acknowledged", wakes.acknowledged.total), ("failed", wakes.failed)].map { result, count in
                        ([wakes.label, Label("result", result)], .integer(count))
                    }
                }
            },
            each(
                "connection_answered_messages", .counter,
                "How many messages of the server were answered while the client slept."
            ) { connection in connection.counters.answeredMessages.map { [([], .integer($0))] } ?? [] },
            each(
                "connection_wake_latency_seconds", .histogram, unit: "seconds",
                "How long after its beginning a client acknowledged a wake."
            ) { connection in
                connection.counters.wakes.map { ([$0.label], histogram($0.acknowledged)) }
            },
        ]
    }

    private func each(
        _ name: String, _ kind: MetricFamily.Kind, unit: String? = nil, _ help: String,
        _ values: (ConnectionsAPI.CountedConnection) -> [([Label], MetricFamily.Value)]
    ) -> MetricFamily {
        MetricFamily(
            name: "dialtone_\(name)", kind: kind, unit: unit, help: help,
            metrics: reply.connections.flatMap { connection in
                values(connection).map { more, value in
                    Metric(labels: labels(of: connection) + more, value: value, created: connection.counters.since)
                }
            })
    }

    private func histogram(_ wire: ConnectionsAPI.Histogram) -> MetricFamily.Value {
        let bounds = reply.boundsMicroseconds.map { Double($0) / 1_000_000 }
        let empty = Array(repeating: 0, count: bounds.count + 1)
        return .histogram(
            .init(
                bounds: bounds, counts: wire.counts.count == empty.count ? wire.counts : empty,
                sum: Double(wire.sumMicroseconds) / 1_000_000))
    }

    // MARK: - The network and the agent

    private var network: [MetricFamily] {
        let network = reply.network
        return [
            one(
                "network_status", .stateset, "Whether packets can leave the machine.",
                .state(network.status.rawValue, of: ConnectionsAPI.Status.allCases.map(\.rawValue))),
            one(
                "network_interface_kind", .stateset, "What the interface leads to that packets leave by.",
                .state(network.kind?.rawValue, of: ConnectionsAPI.InterfaceKind.allCases.map(\.rawValue))),
            one(
                "network_expensive", .gauge, "Whether the traffic of that interface costs money by volume.",
                .integer(network.expensive ? 1 : 0)),
            one(
                "network_constrained", .gauge, "Whether the user asked to spare that interface.",
                .integer(network.constrained ? 1 : 0)),
            MetricFamily(
                name: "dialtone_network_changes", kind: .counter,
                help: "How often the path to the network changed, by the name of the change.",
                metrics: network.changes.map {
                    Metric(
                        labels: [Label("change", $0.change)], value: .integer($0.count), created: network.since)
                }),
        ]
    }

    private var agent: [MetricFamily] {
        let agent = reply.agent
        return [
            MetricFamily(
                name: "dialtone_agent", kind: .info, help: "The agent's version.",
                metrics: [Metric(labels: [Label("version", agent.version)], value: .integer(1))]),
            one(
                "agent_start_time_seconds", .gauge, unit: "seconds", "When the agent's process began.",
                .number(agent.startedAt.seconds)),
            one(
                "agent_resident_memory_bytes", .gauge, unit: "bytes", "The agent's memory that is in RAM.",
                agent.residentBytes.map { .integer($0) }),
            one(
                "agent_open_descriptors", .gauge, "How many descriptors the agent has open.",
                agent.descriptors.map { .integer($0) }),
            one(
                "agent_descriptor_limit", .gauge, "How many descriptors the agent may have open.",
                .integer(agent.descriptorLimit)),
            one(
                "agent_wakeups", .counter, "How often a thread of the agent's process gave up the processor to wait.",
                .integer(agent.wakeUps)),
            one(
                "agent_netlink_overruns", .counter,
                "How often the kernel dropped notices of the network before the agent's process read them.",
                .integer(agent.overruns)),
        ]
    }

    /// A family of one metric, or of none where nothing is known of it.
    private func one(
        _ name: String, _ kind: MetricFamily.Kind, unit: String? = nil, _ help: String, _ value: MetricFamily.Value?
    ) -> MetricFamily {
        MetricFamily(
            name: "dialtone_\(name)", kind: kind, unit: unit, help: help,
            metrics: value.map {
                [Metric(labels: [], value: $0, created: kind == .counter ? reply.agent.startedAt : nil)]
            } ?? [])
    }
}

extension MetricFamily.Value {
    /// A whole number as such.
    fileprivate init(_ number: Double) {
        self = Int(exactly: number).map { .integer($0) } ?? .number(number)
    }
}

extension ConnectionsAPI.Histogram {
    /// How often it happened.
    fileprivate var total: Int { counts.reduce(0, &+) }
}

extension ConnectionsAPI.WakeCount {
    fileprivate var label: MetricFamily.Label { .init("means", means?.rawValue ?? "none") }
}

extension ConnectionsAPI.Connection {
    /// What the remote's URL begins with.
    fileprivate var scheme: String { String(remote.prefix { $0 != ":" }) }
}

extension Duration {
    fileprivate var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
