// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePresentation
internal import DialtoneVarlink

struct Metrics: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the metrics of the connections, for Prometheus.",
        discussion: """
            Writes OpenMetrics 1.0: of each connection whether it is up, its outages, dials and wakes; the network; \
            the agent itself. Counts go on over restarts of the agent. Labels hold names, never the remote. Root gets \
            all connections, others their own.
            """)

    @Flag(
        help: """
            Write Prometheus' text format 0.0.4 instead, for node_exporter's textfile collector.
            """)
    var prometheus = false

    @Flag(
        help: """
            Answer one request of HTTP/1.1 on the standard input and output, as dialtone-metrics@.service does: GET \
            /metrics, in the format that the collector asks for.
            """)
    var http = false

    func validate() throws {
        if http, prometheus {
            throw ValidationError("--prometheus has no effect with --http: the collector says which format it wants")
        }
    }

    func run() async throws {
        if http { return try await ScrapeAnswer.run() }
        let reply = try await DialtoneClient().call(ConnectionsAPI.Metrics.self, VarlinkEmpty())
        Output.write(bytes: Array(MetricsText(reply).text(prometheus ? .prometheus : .openMetrics).utf8))
    }
}
