// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

@testable import DialtonePresentation

/// Metrics as a collector reads them.
@Suite struct MetricsTextTests {
    /// A reply with something in every field.
    static let reply = ConnectionsAPI.Metrics.Reply(
        boundsMicroseconds: [1000, 2500, 1_000_000],
        network: .init(
            since: Sample.noon, status: .satisfied, kind: .cellular, expensive: true, constrained: false,
            changes: [.init(change: "gateway", count: 4), .init(change: "status", count: 2)]),
        agent: .init(
            version: "0.1.0", startedAt: Sample.noon, residentBytes: 6_291_456, descriptors: 12, descriptorLimit: 1024,
            wakeUps: 99, overruns: 1),
        connections: [
            .init(
                connection: Sample.connection("office") {
                    ($0.owner, $0.remote, $0.session) = (1000, "sips://sip.example.com", .open)
                    $0.security = .init(
                        version: "1.3", cipher: "any", assurance: .verified, isResumed: false,
                        certificateEndsAt: Sample.noon)
                    ($0.keepaliveInterval, $0.unreadBytes) = (.milliseconds(27_500), 7)
                },
                counters: .init(
                    since: Sample.noon,
                    outages: [.init(cause: .noCarrier, count: 1), .init(cause: .refused, count: 2)],
                    down: .milliseconds(1500), connectedDials: 4, failedDials: [.init(cause: .timedOut, count: 3)],
                    connectTime: .init(counts: [1, 0, 2, 1], sumMicroseconds: 3_000_500),
                    wakes: [
                        .init(acknowledged: .init(counts: [], sumMicroseconds: 0), failed: 1),
                        .init(
                            means: .signal, acknowledged: .init(counts: [2, 0, 0, 0], sumMicroseconds: 1800),
                            failed: 0),
                    ], answeredMessages: 5)),
            .init(
                connection: Sample.connection("door", .backingOff) {
                    ($0.session, $0.lacksLogin, $0.wakeFailed) = (.unknown, true, true)
                },
                counters: .init(
                    since: Sample.noon, outages: [], down: .zero, connectedDials: 0, failedDials: [],
                    connectTime: .init(counts: [], sumMicroseconds: 0), wakes: [])),
        ])

    private func lines(_ part: String, _ format: ExpositionFormat = .openMetrics) -> [String] {
        MetricsText(Self.reply).text(format).split(separator: "\n").map(String.init)
            .filter { $0.contains("dialtone_\(part)") }
    }

    @Test func `a gauge is one line for each connection of which there is something to tell`() {
        #expect(
            lines("connection_session_open") == [
                "# TYPE dialtone_connection_session_open gauge",
                "# HELP dialtone_connection_session_open Whether somebody is logged in on the socket, as far as the "
                    + "agent knows; missing where it cannot know.",
                #"dialtone_connection_session_open{name="office",owner="1000",scheme="sips"} 1"#,
            ])
        #expect(
            lines("connection_keepalive_interval_seconds").last
                == #"dialtone_connection_keepalive_interval_seconds{name="office",owner="1000",scheme="sips"} 27.5"#)
        #expect(
            lines("connection_certificate_expiry").dropFirst(3) == [
                #"dialtone_connection_certificate_expiry_timestamp_seconds{name="office",owner="1000",scheme="sips"} "#
                    + "1800000000"
            ])
    }

    @Test func `a counter says in OpenMetrics when it began, and has its ending in the text format's description`() {
        let office = #"{name="office",owner="1000",scheme="sips""#
        #expect(
            lines("connection_dials") == [
                "# TYPE dialtone_connection_dials counter",
                "# HELP dialtone_connection_dials How many dials ended, by the result: connected, or the cause of the "
                    + "failure.",
                "dialtone_connection_dials_total\(office),result=\"connected\"} 4",
                "dialtone_connection_dials_created\(office),result=\"connected\"} 1800000000.0",
                "dialtone_connection_dials_total\(office),result=\"timedOut\"} 3",
                "dialtone_connection_dials_created\(office),result=\"timedOut\"} 1800000000.0",
                #"dialtone_connection_dials_total{name="door",scheme="tcp",result="connected"} 0"#,
                #"dialtone_connection_dials_created{name="door",scheme="tcp",result="connected"} 1800000000.0"#,
            ])
        #expect(
            lines("connection_downtime", .prometheus) == [
                "# HELP dialtone_connection_downtime_seconds_total How long the connection was down, the outage under "
                    + "way included.",
                "# TYPE dialtone_connection_downtime_seconds_total counter",
                "dialtone_connection_downtime_seconds_total\(office)} 1.5",
                #"dialtone_connection_downtime_seconds_total{name="door",scheme="tcp"} 0.0"#,
            ])
    }

    @Test func `a histogram counts up to its last bucket`() {
        let text = lines("connection_connect_time").filter { $0.contains("office") && !$0.contains("created") }
        #expect(
            text.map { $0.replacing(#"name="office",owner="1000",scheme="sips""#, with: "") } == [
                #"dialtone_connection_connect_time_seconds_bucket{,le="0.001"} 1"#,
                #"dialtone_connection_connect_time_seconds_bucket{,le="0.0025"} 1"#,
                #"dialtone_connection_connect_time_seconds_bucket{,le="1.0"} 3"#,
                #"dialtone_connection_connect_time_seconds_bucket{,le="+Inf"} 4"#,
                "dialtone_connection_connect_time_seconds_count{} 4",
                "dialtone_connection_connect_time_seconds_sum{} 3.0005",
            ])
    }

    @Test func `answered messages are told where they are counted`() {
        #expect(
            lines("connection_answered_messages_total").map { $0.split(separator: " ").last } == ["5"])
    }

    @Test func `wakes are told by means and result`() {
        let text = lines("connection_wakes_total").map { $0.split(separator: "scheme=\"sips\",")[1] }
        #expect(
            text == [
                #"means="none",result="acknowledged"} 0"#, #"means="none",result="failed"} 1"#,
                #"means="signal",result="acknowledged"} 2"#, #"means="signal",result="failed"} 0"#,
            ])
    }

    @Test func `labels and help are escaped`() {
        let family = MetricFamily(
            name: "a", kind: .gauge, help: "a \"quoted\" \\ and\na second line",
            metrics: [.init(labels: [.init("name", "x\"y\\z\nw")], value: .integer(1))])
        #expect(
            ExpositionFormat.openMetrics.text(of: [family]) == #"""
                # TYPE a gauge
                # HELP a a \"quoted\" \\ and\na second line
                a{name="x\"y\\z\nw"} 1
                # EOF

                """#)
        #expect(
            ExpositionFormat.prometheus.text(of: [family]).hasPrefix(#"# HELP a a "quoted" \\ and\na second line"#))
    }

    @Test func `no address stands in it`() {
        let text = MetricsText(Self.reply).text(.openMetrics)
        #expect(!text.contains("example.com"), "\(text)")
    }

    @Test(arguments: [ExpositionFormat.openMetrics, .prometheus], [true, false])
    func `an independent reader takes every line`(format: ExpositionFormat, isFull: Bool) async throws {
        var reply = Self.reply
        if !isFull { reply.connections = [] }
        try await Collectors.read(MetricsText(reply).text(format), format)
    }
}
