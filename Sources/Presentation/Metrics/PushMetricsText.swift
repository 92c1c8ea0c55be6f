// SPDX-License-Identifier: Apache-2.0

package import DialtonePushAPI
internal import DialtoneVarlink

/// What the session agent counted and knows of push, for a collector such as Prometheus.
///
/// No label names an app, a server or an account: which apps somebody has stands in nobody's database.
package struct PushMetricsText {
    private let status: PushAPI.Status.Reply
    private let registrations: [PushAPI.Registration]

    /// What the session agent told.
    package init(_ status: PushAPI.Status.Reply, _ registrations: [PushAPI.Registration]) {
        (self.status, self.registrations) = (status, registrations)
    }

    /// In a format.
    package func text(_ format: ExpositionFormat) -> String { format.text(of: server + apps + messages) }

    private typealias Metric = MetricFamily.Metric
    private typealias Label = MetricFamily.Label

    private var server: [MetricFamily] {
        [
            one(
                "logged_in", "Whether this machine is logged in at the push server; missing where none is configured.",
                status.server.map { .integer($0.isUp ? 1 : 0) }),
            one(
                "login_timestamp_seconds", unit: "seconds",
                "Since when it is logged in; missing where it is not.",
                status.server?.since.map { .number($0.seconds) }),
            one(
                "on_bus", "Whether apps can reach the session agent on the session bus.",
                .integer(status.isOnBus ? 1 : 0)),
            one(
                "storage_failing", "Whether messages cannot be kept just now, so that the server is to keep them.",
                .integer(status.storageTrouble == nil ? 0 : 1)),
        ]
    }

    private var apps: [MetricFamily] {
        [
            one(
                "registered_apps", "How many apps have a registration with an endpoint.",
                .integer(Set(registrations.filter { $0.state == .registered }.map { App($0) }).count)),
            MetricFamily(
                name: "dialtone_push_registrations", kind: .gauge,
                help: "How many registrations there are, by how their messages are delivered and by their state.",
                metrics: Delivery.allCases.flatMap { delivery in
                    PushAPI.RegistrationState.allCases.map { state in
                        let these = registrations.filter { Delivery($0) == delivery && $0.state == state }
                        return Metric(
                            labels: [delivery.label, Label("state", state.rawValue)], value: .integer(these.count))
                    }
                }),
        ]
    }

    private var messages: [MetricFamily] {
        [
            MetricFamily(
                name: "dialtone_push_waiting_messages", kind: .gauge,
                help: "How many messages wait for their app, by how they are delivered.",
                metrics: Delivery.allCases.map { delivery in
                    let waiting = registrations.filter { Delivery($0) == delivery }.map(\.waiting)
                    // From a socket: what an agent that is none says, nobody counts on.
                    return Metric(labels: [delivery.label], value: .integer(waiting.reduce(0, &+)))
                }),
            one(
                "last_message_timestamp_seconds", unit: "seconds",
                "When the last message came; missing where none did.",
                status.lastMessageAt.map { .number($0.seconds) }),
            count(
                "arrived_messages", "How many messages came from the server; one that came twice counts twice.",
                status.counters.arrived),
            count("taken_messages", "How many messages an app took.", status.counters.taken),
            count(
                "given_up_messages", "How many messages were given up: too late, or too often refused.",
                status.counters.givenUp),
            count(
                "failed_tries", "How often an app was called with a message and did not take it.",
                status.counters.failedTries),
        ]
    }

    /// A family of one metric, or of none where nothing is known of it.
    private func one(
        _ name: String, unit: String? = nil, _ help: String, _ value: MetricFamily.Value?
    ) -> MetricFamily {
        MetricFamily(
            name: "dialtone_push_\(name)", kind: .gauge, unit: unit, help: help,
            metrics: value.map { [Metric(labels: [], value: $0)] } ?? [])
    }

    /// A count since the start of the session agent.
    private func count(_ name: String, _ help: String, _ count: Int) -> MetricFamily {
        MetricFamily(
            name: "dialtone_push_\(name)", kind: .counter, help: help,
            metrics: [Metric(labels: [], value: .integer(count))])
    }

    /// How messages of a registration are delivered: one that asked for VoIP and lost it has them like all others.
    private enum Delivery: String, CaseIterable {
        case standard, voip

        init(_ registration: PushAPI.Registration) {
            self = registration.kind == .voip && !registration.isDemoted ? .voip : .standard
        }

        var label: Label { Label("type", rawValue) }
    }

    /// What tells one app from another.
    private struct App: Hashable {
        let name: String
        let sandbox: String?

        init(_ registration: PushAPI.Registration) { (name, sandbox) = (registration.app, registration.sandbox) }
    }
}
