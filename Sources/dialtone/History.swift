// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import Platform
internal import Presentation
internal import Varlink

struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell what happened to the network and to the connections, with reasons and durations.",
        discussion: """
            A line for each thing that happened, the oldest first, and in the end how often and how long each \
            connection was without a flow. The agent keeps it over its restarts, in a few megabytes; each user sees \
            their own connections, root all. Steps on the way to a flow are left out; `dialtone watch` shows them.

            TIME is a time of day (02:30), today, yesterday, a date (2026-11-21), both (2026-11-21 23:00), or how long \
            ago: 90s, 45m, 3h, 2d.
            """)

    @Argument(help: "Connections to tell of; by default all, and the network.")
    var names: [String] = []

    @Option(help: ArgumentHelp("Only what happened then or later.", valueName: "time"))
    var since: Since?

    @OptionGroup
    var owner: OwnerOption

    @Flag(help: "Write one JSON object a line: the replies of History as the socket carries them.")
    var json = false

    func run() async throws {
        // How things stood at that time shows by what was before.
        let parameters = ConnectionsAPI.History.Parameters(
            names: names.isEmpty ? nil : names, owner: owner.number, since: json ? since?.time : nil)
        var story = HistoryStory(
            .init(day: Output.localDay, clock: Output.localTime), for: Output.reader, since: since?.time)
        var kept: Set<String> = []
        // Of names, whether anybody has them is known in the end only.
        var withheld: [String] = []
        for try await entry in DialtoneClient().stream(ConnectionsAPI.History.self, parameters) {
            // The last reply is there to end the others.
            guard entry.time != nil else { continue }
            if let event = entry.event { kept.insert(event.connection.name) }
            if json {
                Output.write(json: entry)
            } else {
                let lines = story.lines(entry, Output.style)
                if names.isEmpty { Output.write(lines) } else { withheld += lines }
            }
        }
        // Of what was before `since`, a script is told nothing.
        if !json || since == nil { try await KnownNames.require(names, beside: kept) }
        if json { return }
        Output.write(withheld)
        Output.write(story.summary(now: .now(), uptime: BootClock.now(), Output.style))
    }
}

/// An instant in the past, as `--since` takes it.
struct Since: ExpressibleByArgument {
    let time: Timestamp

    init?(argument: String) {
        let now = Timestamp.now()
        let time = SinceText.instant(argument, now: now, today: Output.localDate(now), instant: Output.instant)
        guard let time else { return nil }
        self.time = time
    }
}
