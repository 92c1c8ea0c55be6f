// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// `dialtone metrics` of a real agent, as text and as the answer to a request.
@Suite(.lab)
struct MetricsStories {
    private static let request = "GET /metrics HTTP/1.1\\r\\nHost: a\\r\\n"
    private static let ask = "printf '\(request)\\r\\n' | exec \(LabAgent.program("dialtone")) metrics --http"

    @Test func `a refused dial is in either format, and an agent that is gone is told of with the status 503`()
        async throws
    {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let agent = try await home.start(on: machine)
        _ = try await home.dialtone("open", "tcp://127.0.0.1:1", "--name", "office", on: machine)
        let refused =
            #"dialtone_connection_dials_total{name="office",owner="\#(geteuid())",scheme="tcp",result="refused"} "#
        try await eventually("the refused dial is counted") {
            try await home.dialtone("metrics", on: machine).output.contains(refused)
        }
        let text = try await home.dialtone("metrics", on: machine)
        #expect(text.exit == .status(0) && text.error.isEmpty, "\(text)")
        #expect(text.output.hasSuffix("# EOF"), "\(text)")
        #expect(text.output.contains(#"dialtone_connection_outages_total{name="office""#), "\(text)")
        let story = try await home.dialtone("history", "office", on: machine)
        #expect(story.lines.last?.hasPrefix("office  1 outage, down ") == true, "the same count: \(story)")
        let plain = try await home.dialtone("metrics", "--prometheus", on: machine)
        #expect(plain.output.contains(refused) && !plain.output.contains("# EOF"), "\(plain)")

        let environment = ["DIALTONE_SOCKET": home.socket]
        let answer = try await machine.outcome(["sh", "-c", Self.ask], environment: environment)
        #expect(answer.exit == .status(0) && answer.error.isEmpty, "\(answer)")
        #expect(answer.output.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "\(answer)")
        #expect(answer.output.contains(refused), "\(answer)")
        _ = try await agent.terminate()
        let gone = try await machine.outcome(["sh", "-c", Self.ask], environment: environment)
        #expect(gone.output.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"), "\(gone)")
        #expect(gone.output.contains("The agent does not run on \(home.socket)"), "\(gone)")
    }

    @Test func `a request that does not come is told so, and one that is given up is not answered`() async throws {
        let machine = try await Namespace.island()
        let command = [LabAgent.program("dialtone"), "metrics", "--http"]
        let slow = try await machine.spawn(command)
        expect(try await slow.exit(), is: .status(0))
        #expect(slow.text(of: .output).hasPrefix("HTTP/1.1 408 Request Timeout\r\n"), "\(slow.text(of: .output))")
        let given = try await machine.outcome([
            "sh", "-c", "printf '\(Self.request)' | \(command.joined(separator: " "))",
        ])
        #expect(given.exit == .status(0) && given.output.isEmpty && given.error.isEmpty, "\(given)")
    }
}

/// A scrape by HTTP under a real systemd, as it is installed.
@Suite(.booted, .serialized, .timeLimit(.minutes(10)))
struct ScrapeBootStories {
    private static let scrape = """
        import sys, urllib.request, urllib.error
        request = urllib.request.Request(
            "http://127.0.0.1:20910/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        print(answer.status, answer.headers["Content-Type"])
        print(answer.read().decode())
        """

    private func scrape(_ machine: BootedMachine) async throws -> String {
        try await machine.run("/usr/bin/python3", "-c", Self.scrape)
    }

    /// The value of a sample.
    private func value(_ sample: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix("\(sample) ") }.flatMap {
            Double($0.dropFirst(sample.count + 1))
        }
    }

    @Test func `a scrape has the connections of all users, and its counts go on when the agent is killed`() async throws
    {
        let machine = try await BootedMachine.boot(
            "[Service]\nRestartSec=50ms\n",
            configuration: """
                [[connection]]
                name = "office"
                remote = "tcp://127.0.0.1:7001"
                owner = "nobody"

                """)
        try await machine.run("systemctl", "start", "dialtone-metrics.socket")
        let office = #"{name="office",owner="65534",scheme="tcp""#
        let dials = "dialtone_connection_dials_total\(office),result=\"refused\"}"
        try await eventually("refused dials are counted") {
            try await value(dials, in: scrape(machine)).map { $0 > 1 } == true
        }
        let before = try await scrape(machine)
        #expect(before.hasPrefix("200 application/openmetrics-text; version=1.0.0; charset=utf-8\n"), "\(before)")
        let restarts = try await machine.property("NRestarts")
        try await machine.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", "dialtoned.service")
        try await machine.restarted(since: restarts)
        let after = try await scrape(machine)
        for sample in [dials, "dialtone_connection_downtime_seconds_total\(office)}"] {
            let (old, new) = (
                try #require(value(sample, in: before)), try #require(value(sample, in: after), "\(after)")
            )
            #expect(new >= old, "\(sample)")
        }
        let began = "dialtone_connection_dials_created\(office),result=\"refused\"}"
        #expect(value(began, in: after) == value(began, in: before), "\(before)\n\(after)")
        let outages = "dialtone_connection_outages_total\(office),cause=\"refused\"}"
        #expect(value(outages, in: after) == 1, "the same one: \(after)")
        let told = try await machine.run("/opt/dialtone/dialtone", "history")
        #expect(told.contains("  1 outage, down "), "\(told)")
        try await outlivesFlood(machine)
        try await confined(machine)
        try await machine.run("systemctl", "stop", "dialtoned.socket", "dialtoned.service")
        expect(try await scrape(machine)) { $0.hasPrefix("503 ") }
        try await machine.turnOff()
    }

    /// More connections at once than systemd takes for a service that is out of order end no scrape that comes later.
    private func outlivesFlood(_ machine: BootedMachine) async throws {
        let flood = """
            import socket
            for _ in range(1000):
                with socket.socket() as end:
                    end.settimeout(60)
                    end.connect(("127.0.0.1", 20910))
            """
        try await machine.run("/usr/bin/python3", "-c", flood)
        try await eventually("a scrape is answered after a flood") {
            let answer = try? await scrape(machine)
            let state = try await machine.run(
                "systemctl", "show", "dialtone-metrics.socket", "--property=ActiveState,Result")
            try #require(state.contains("ActiveState=active"), "\(state)")
            return answer?.hasPrefix("200 ") == true
        }
    }

    /// Nothing of a scrape is left, and while it ran it could do little.
    private func confined(_ machine: BootedMachine) async throws {
        try await eventually("no scrape runs") {
            try await machine.run("systemctl", "list-units", "--no-legend", "--plain", "--all", "dialtone-metrics@*")
                .isEmpty
        }
        let unit = "dialtone-metrics@0.service"
        let exposure = try await machine.run("systemd-analyze", "security", "--no-pager", unit)
        let figure = try #require(exposure.firstMatch(of: /exposure level for dialtone-metrics@0\.service: (\d+\.\d+)/))
        #expect(try #require(Double(figure.1)) <= 2, "\(exposure)")
    }
}
