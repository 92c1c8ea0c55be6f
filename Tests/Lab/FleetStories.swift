// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A real Prometheus with the rules of `Fleet`, which scrapes three agents.
@Suite(
    "A fleet that Prometheus scrapes", .lab, .timeLimit(.minutes(5)),
    .enabled(if: Prometheus.obstacle == nil, Prometheus.obstacle ?? "Prometheus can be run"))
struct FleetStories {
    private static let server = """
        import socket, sys
        server, clients = socket.create_server(("127.0.0.1", int(sys.argv[1]))), []
        print("ready", flush=True)
        while True: clients.append(server.accept())
        """

    private static let alerts = """
        import json, urllib.request
        answer = urllib.request.urlopen("http://127.0.0.1:9090/api/v1/alerts")
        for alert in json.load(answer)["data"]["alerts"]:
            labels = alert["labels"]
            print(alert["state"], labels["alertname"], labels.get("name", "-"))
        print("answered")
        """

    private func serve(_ port: Int, on machine: Namespace) async throws -> LabProcess {
        let server = try await machine.spawn(["python3", "-c", Self.server, "\(port)"])
        _ = try await server.line(containing: "ready")
        return server
    }

    /// Writes Prometheus' configuration, with the rules, which wait two seconds instead of minutes.
    private func configure(_ directory: String, ports: [Int]) throws -> String {
        let rules = URL(filePath: SourceTree.root).appending(path: "Fleet/dialtone.rules.yml")
        let quick = try String(contentsOf: rules, encoding: .utf8).replacing(/for: \d+[mh]/, with: "for: 2s")
        try Data(quick.utf8).write(to: URL(filePath: "\(directory)/rules.yml"))
        let targets = ports.map { "\"127.0.0.1:\($0)\"" }.joined(separator: ", ")
        let text = """
            global: {scrape_interval: 1s, evaluation_interval: 1s}
            rule_files: [rules.yml]
            scrape_configs: [{job_name: dialtone, static_configs: [{targets: [\(targets)]}]}]
            """
        let file = "\(directory)/prometheus.yml"
        try Data(text.utf8).write(to: URL(filePath: file))
        return file
    }

    /// The lines that the alerts make, once they are as a condition says.
    private func alerts(
        on machine: Namespace, _ awaited: String, are condition: @escaping @Sendable ([String]) -> Bool
    ) async throws {
        try await eventually(awaited) {
            let told = try await machine.outcome(["python3", "-c", Self.alerts]).lines
            return told.last == "answered" && condition(told.dropLast())
        }
    }

    @Test func `a server that goes fires the alert of its connection alone, and its return resolves it`() async throws {
        let machine = try await Namespace.island()
        // With a way out: a machine without a network has another alert.
        try await machine.landBridge()
        let names = ["door", "office", "van"]
        var (homes, servers, others): ([DaemonHome], [LabProcess], [LabProcess]) = ([], [], [])
        for (number, name) in names.enumerated() {
            servers.append(try await serve(7001 + number, on: machine))
            let home = try DaemonHome()
            others.append(try await home.start(on: machine))
            _ = try await home.dialtone("open", "tcp://127.0.0.1:\(7001 + number)", "--name", name, on: machine)
            let scrape = [LabAgent.program("dialtone"), "metrics", "--http"]
            let socket = ["systemd-socket-activate", "--inetd", "--accept", "-E", "DIALTONE_SOCKET"]
            others.append(
                try await machine.spawn(
                    socket + ["--listen", "127.0.0.1:\(20_911 + number)"] + scrape,
                    environment: ["DIALTONE_SOCKET": home.socket]))
            homes.append(home)
        }
        let directory = homes[0].directory
        let file = try configure(directory, ports: names.indices.map { 20_911 + $0 })
        others.append(
            try await machine.spawn([
                "prometheus", "--config.file=\(file)", "--storage.tsdb.path=\(directory)/tsdb",
                "--web.listen-address=127.0.0.1:9090",
            ]))
        try await alerts(on: machine, "no alert") { $0.isEmpty }
        try await servers[1].killNow()
        try await alerts(on: machine, "the alert of the office") { $0 == ["firing DialtoneConnectionDown office"] }
        servers[1] = try await serve(7002, on: machine)
        try await alerts(on: machine, "no alert any more, and none of another connection") { $0.isEmpty }
        for process in others + servers { try await process.killNow() }
    }
}

private enum Prometheus {
    /// Why none can be run here.
    static let obstacle: Comment? = {
        let programs = ["/usr/bin/prometheus", "/usr/bin/systemd-socket-activate"]
        let missing = programs.filter { !FileManager.default.isExecutableFile(atPath: $0) }
        return missing.isEmpty ? nil : "there is no \(missing.joined(separator: ", no "))"
    }()
}
