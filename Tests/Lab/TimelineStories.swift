// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// `dialtone timeline` of a real outage, as text, as JSON and as pictures that a browser shows.
@Suite(.lab)
struct TimelineStories {
    private static let browser = ["/usr/bin/chromium", "/usr/bin/google-chrome"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private func timeline(_ story: Story, _ arguments: String..., locale: String = "C.UTF-8") async throws -> Outcome {
        try await story.lab.host.outcome(
            [LabAgent.program("dialtone"), "timeline"] + arguments,
            environment: ["DIALTONE_SOCKET": story.agent.socket, "LC_ALL": locale, "TZ": "UTC"])
    }

    /// A network that is down, then a server.
    private func suffer(_ story: Story) async throws {
        let before = story.now
        for uplink in Uplink.allCases { try await story.lab.cut(uplink) }
        _ = try await story.becomes(.waiting, after: before)
        let cut = story.now
        for uplink in Uplink.allCases { try await story.lab.plug(uplink) }
        _ = try await story.becomes(.ready, after: cut)
        let up = story.now
        try await story.server.stop()
        _ = try await story.becomes(.backingOff, after: up)
        let down = story.now
        try await story.server.restart()
        _ = try await story.becomes(.ready, after: down)
    }

    @Test func `what was down shows in each form, with its cause`() async throws {
        try await Story.tell { story in
            try await suffer(story)
            let json = try await timeline(story, "--since", "1m", "--json")
            #expect(json.exit == .status(0), "\(json)")
            let document = try json.object()
            let network = try #require(document["network"] as? [String: Any])
            let kinds = (network["spans"] as? [[String: Any]])?.compactMap { $0["kind"] as? String }
            #expect(kinds?.contains("noNetwork") == true, "\(json)")
            let office = try #require((document["connections"] as? [[String: Any]])?.first)
            #expect(office["outages"] as? Int == 2, "\(json)")
            let spans = try #require(office["spans"] as? [[String: Any]])
            #expect(spans.compactMap { $0["kind"] as? String }.contains("retrying"), "\(spans)")
            #expect(spans.contains { ($0["cause"] as? String)?.contains("no carrier") == true }, "\(spans)")

            let text = try await timeline(story, "--since", "1m")
            #expect(text.output.contains("office   ") && text.output.contains("2 outages, down "), "\(text)")
            #expect(text.output.contains("█"), "\(text)")
            for plain in [try await timeline(story, "--ascii"), try await timeline(story, locale: "C")] {
                #expect(plain.output.allSatisfy(\.isASCII) && plain.output.contains("#"), "\(plain)")
            }
        }
    }

    @Test(.enabled(if: browser != nil, "there is no Chromium to show it"))
    func `a browser shows a bar for each time, and the times as a table`() async throws {
        try await Story.tell { story in
            try await suffer(story)
            let (page, picture) = ("\(story.agent.directory)/t.html", "\(story.agent.directory)/t.svg")
            let written = try await timeline(story, "--since", "1m", "--html", page, "--svg", picture)
            #expect(written.exit == .status(0) && written.output.isEmpty, "\(written)")
            let spans =
                try await timeline(story, "--since", "1m", "--json").output.split(separator: "\"kind\":").count - 1
            for file in [page, picture] {
                let shown = try await story.lab.host.outcome([
                    Self.browser ?? "", "--headless", "--no-sandbox", "--disable-gpu",
                    "--user-data-dir=\(story.agent.directory)/chromium", "--dump-dom", "file://\(file)",
                ])
                #expect(shown.exit == .status(0), "\(shown)")
                // One for each bar, one for the figures of each of the two rows, and the page's own.
                let titles = shown.output.split(separator: "</title>").count - 1
                #expect(titles == spans + 2 + (file == page ? 1 : 0), "\(spans) times, \(titles) titles: \(shown)")
                #expect(!shown.output.contains("parsererror"), "\(shown)")
            }
        }
    }

    @Test func `an agent that was killed or stopped shows, and the figures are those of the history`() async throws {
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(.mosquitto(), on: lab.server)
            let home = try DaemonHome(
                """
                [[connection]]
                name = "office"
                remote = "mqtt://\(LabNetwork.serverAddress(.v4))"
                backoff = { initial = "100ms", maximum = "200ms" }
                """)
            try await server.stop()
            var agent = try await home.start(on: lab.host)
            try await eventually("it to try") { try await isNow(.backingOff, home) }
            try await server.restart()
            try await eventually("it to stand") { try await isNow(.ready, home) }
            try await agent.killNow()
            agent = try await home.start(on: lab.host)
            try await eventually("it to stand after the kill") { try await isNow(.ready, home) }
            try await agent.terminate()
            agent = try await home.start(on: lab.host)
            try await eventually("it to stand after the stop") { try await isNow(.ready, home) }

            let json = try await home.dialtone("timeline", "--since", "5m", "--json", on: lab.host)
            let document = try json.object()
            let office = try #require((document["connections"] as? [[String: Any]])?.first, "\(json)")
            let kinds = (office["spans"] as? [[String: Any]])?.compactMap { $0["kind"] as? String } ?? []
            #expect(kinds.contains("retrying") && kinds.contains("agentOff") && kinds.last == "up", "\(json)")
            let count = try #require(office["outages"] as? Int)
            let told = try await home.dialtone("history", "--since", "5m", on: lab.host)
            let words = count == 1 ? "1 outage, down" : "\(count) outages, down"
            #expect(told.lines.last?.contains(words) == true, "\(json) and \(told)")
            try await agent.terminate()
            let nobody = try await home.dialtone("timeline", on: lab.host)
            #expect(nobody.exit == .status(69) && nobody.output.isEmpty, "\(nobody)")
        }
    }

    private func isNow(_ state: ConnectionsAPI.State, _ home: DaemonHome) async throws -> Bool {
        try await home.client.connections().first?.state == state
    }

    @Test func `what makes no sense, or cannot be written, is told`() async throws {
        try await Story.tell { story in
            let backwards = try await timeline(story, "--since", "1h", "--until", "2h")
            #expect(backwards.exit == .status(64) && backwards.error.contains("nothing to show"), "\(backwards)")
            let both = try await timeline(story, "--json", "--svg", "x")
            #expect(both.exit == .status(64), "\(both)")
            let nowhere = try await timeline(story, "--svg", "/nonexistent/x.svg")
            #expect(nowhere.exit == .status(73), "\(nowhere)")
            #expect(nowhere.error.contains("/nonexistent/x.svg cannot be written: "), "\(nowhere)")
            for files in [["--svg", ""], ["--svg", "-", "--html", "-"], ["--html", "x", "--svg", "x"]] {
                let wrong = try await timeline(
                    story, files[0], files[1], files.dropFirst(2).first ?? "--html",
                    files.dropFirst(3).first ?? "y")
                #expect(wrong.exit == .status(64) && wrong.output.isEmpty, "\(wrong)")
            }
            for option in ["--since", "--until"] {
                let nonsense = try await timeline(story, option, "nonsense")
                #expect(nonsense.exit == .status(64) && nonsense.error.contains("nonsense"), "\(nonsense)")
            }
            let far = try await timeline(story, "--since", "999999w")
            #expect(far.exit == .status(0), "\(far)")
            let folder = try await timeline(story, "--html", story.agent.directory)
            #expect(folder.exit == .status(73) && folder.error.contains(story.agent.directory), "\(folder)")
            let nobody = try await timeline(story, "ofice")
            #expect(nobody.exit == .status(1) && nobody.error.contains("Did you mean \"office\"?"), "\(nobody)")
            let early = try await timeline(story, "--until", "2001-01-01")
            #expect(early.output.hasPrefix("Nothing is known of that time."), "\(early)")
        }
    }
}
