// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink

struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell what happened to the network and to the connections, with reasons and durations.",
        discussion: """
            A line for each thing that happened, the oldest first, and in the end how often and how long each \
            connection was down. The agent keeps it over its restarts, in a few megabytes; each user sees their own \
            connections, root all. The agent counts outages, so a sum includes those of which no line is left. Steps \
            on the way to a connected socket are left out; `dialtone watch` shows them.

            TIME is a time of day (02:30), now, today, yesterday, a date (2026-11-21), both (2026-11-21 23:00), or how \
            long ago: 90s, 1h30m, "2 days ago".
            """)

    @Argument(help: "Connections to tell of; by default all, and the network.", completion: .connections)
    var names: [String] = []

    @Option(help: ArgumentHelp("Only what happened then or later.", valueName: "time"), transform: Since.init)
    var since: Since?

    @Option(help: ArgumentHelp("Only what happened then or earlier.", valueName: "time"), transform: Since.init)
    var until: Since?

    @Option(
        name: [.customShort("n", allowingJoined: true), .long],
        help: "Only so many lines, the last ones, and no sums.")
    var lines: Int?

    @Flag(name: .shortAndLong, help: "The newest first.")
    var reverse = false

    @Flag(name: .shortAndLong, help: "Go on with what happens from now on, as `dialtone watch` tells it.")
    var follow = false

    @OptionGroup
    var owner: OwnerOption

    @Flag(
        help: """
            Write one JSON object a line: the replies of History as the socket carries them; with --follow, then those \
            of MonitorPath and Monitor.
            """)
    var json = false

    @OptionGroup
    var color: ColorOption

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("--lines \(lines) is out of range: give a number from 0") }
        if let since, let until, until.time < since.time {
            throw ValidationError("--until is before --since: nothing happened between them")
        }
        if follow, reverse || until != nil {
            throw ValidationError("--follow goes on from now: it takes neither --reverse nor --until")
        }
        if json, reverse || lines != nil {
            throw ValidationError("--json writes all in order: it takes neither --reverse nor --lines")
        }
    }

    func run() async throws {
        if follow { try await Output.endWithReader() }
        // How things stood at that time shows by what was before.
        let parameters = ConnectionsAPI.History.Parameters(
            names: names.isEmpty || !json ? nil : names, owner: owner.number, since: json ? since?.time : nil)
        var story = HistoryStory(
            Output.localTime, for: Output.reader, since: since?.time, until: until?.time,
            names: Set(names))
        var pages = DayPages(Output.localTime, subjects: json ? [] : Array((try? await KnownNames.present()) ?? []))
        var kept: Set<String> = []
        var lastSequence: Int?
        var agentTime: Timestamp?
        // What may not be written yet: of names, whether anybody has them is known in the end only.
        var withheld: [HistoryStory.Entry] = []
        let isWithheld = !names.isEmpty || reverse || lines != nil
        for try await reply in DialtoneClient().history(parameters) {
            // The last reply is there to end the others.
            guard let time = reply.time else { continue }
            if let event = reply.event {
                kept.insert(event.connection.name)
                lastSequence = event.sequence
            }
            agentTime = reply.agent?.time ?? agentTime
            if json {
                if until.map({ time <= $0.time }) ?? true { Output.write(json: reply) }
            } else if let entry = story.entry(reply) {
                // What happened to the agent before there was such a connection is nothing of it.
                if !names.isEmpty, kept.isDisjoint(with: names), reply.dropped == nil { continue }
                if isWithheld { withheld.append(entry) } else { Output.write(pages.lines(entry, Output.style)) }
                if let lines, withheld.count / 2 > max(lines, 1) { withheld.removeFirst(withheld.count - lines) }
            }
        }
        // Of what was before `since`, a script is told nothing.
        if !json || since == nil { try await KnownNames.require(names, beside: kept) }
        if !json {
            let told = withheld.suffix(lines ?? withheld.count)
            for entry in reverse ? told.reversed() : Array(told) { Output.write(pages.lines(entry, Output.style)) }
            if lines == nil, !follow {
                Output.write(story.summary(now: .now(), uptime: BootClock.now(), Output.style))
            }
        }
        if follow {
            let stream = WatchStream(
                names: names, owner: owner.number, json: json, pages: pages,
                following: .init(story, after: lastSequence, agentAt: agentTime))
            try await stream.run()
        }
    }
}

/// An instant in the past, as `--since` takes it.
struct Since {
    let time: Timestamp

    init(_ text: String) throws {
        let now = Timestamp.now()
        let time = SinceText.instant(text, now: now, today: Output.localDate(now), instant: Output.instant)
        guard let time else {
            throw ValidationError(
                "\"\(text)\" is no time in the past: give one as in 02:30, yesterday, 2026-11-21, "
                    + "\"2026-11-21 23:00\", 90s or \"2 days ago\"")
        }
        self.time = time
    }
}
