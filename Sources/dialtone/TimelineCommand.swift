// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc

struct TimelineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timeline",
        abstract: "Show when the network and the connections were up, as a picture.",
        discussion: """
            A row for the network, with a letter for each interface, and a row for each connection, with the time that \
            it was up, its outages, and the longest with its cause. It is drawn from the history, so it goes over \
            restarts of the agent; a wall clock that was set does not bend it.

            TIME is as in `dialtone history`. A FILE of - is the standard output.

            --json writes an object with since, until, network (without names) and connections; also keptSince, \
            if some of what was before that is not kept any more. The network and each connection have name, \
            uptime (0 to 1), outages, downMilliseconds, longestMilliseconds, longestCause and spans: what was \
            the case (kind: up, retrying, noNetwork or agentOff) from begin to end, with interface and cause. \
            What is not known is left out.
            """)

    @Argument(help: "Connections to show; by default all, and the network.", completion: .connections)
    var names: [String] = []

    @Option(
        help: ArgumentHelp("The beginning of the picture; a day ago unless given.", valueName: "time"),
        transform: Since.init)
    var since: Since?

    @Option(help: ArgumentHelp("Its end; now unless given.", valueName: "time"), transform: Since.init)
    var until: Since?

    @Flag(help: "Draw with ASCII characters, as is done where the locale is not UTF-8.")
    var ascii = false

    @Option(help: ArgumentHelp("Write a picture in SVG.", valueName: "file"), completion: .file(extensions: ["svg"]))
    var svg: String?

    @Option(
        help: ArgumentHelp("Write a page in HTML, with the picture and all times as text.", valueName: "file"),
        completion: .file(extensions: ["html"]))
    var html: String?

    @OptionGroup
    var owner: OwnerOption

    @Flag(help: "Write one JSON object: the times, with figures for each row.")
    var json = false

    @OptionGroup
    var color: ColorOption

    /// A day.
    private static let usualLength: Int64 = 86_400_000

    private var times: (since: Timestamp, until: Timestamp) {
        let until = until?.time ?? .now()
        return (since?.time ?? Timestamp(milliseconds: until.milliseconds - Self.usualLength), until)
    }

    func validate() throws {
        let (since, until) = times
        guard since < until else { throw ValidationError("--until is not after --since: there is nothing to show") }
        if json, svg != nil || html != nil || ascii {
            throw ValidationError("--json writes no picture: it takes none of --ascii, --svg and --html")
        }
        for (option, file) in [("--svg", svg), ("--html", html)] where file?.isEmpty == true {
            throw ValidationError("\(option) needs the name of a file, or - for the standard output")
        }
        if let svg, svg == html {
            throw ValidationError("--svg and --html name the same file \(svg): give each its own")
        }
    }

    func run() async throws {
        let parameters = ConnectionsAPI.History.Parameters(
            names: nil, owner: owner.number, since: nil)
        var entries: [ConnectionsAPI.History.Reply] = []
        for try await reply in DialtoneClient().history(parameters) where reply.time != nil { entries.append(reply) }
        try await KnownNames.require(names, beside: Set(entries.compactMap { $0.event?.connection.name }))
        let (since, until) = times
        let timeline = Timeline(
            entries, since: since, until: until, now: .now(), uptime: BootClock.now(),
            hasNetwork: names.isEmpty && owner.number == nil, for: Output.reader, names: Set(names))
        if json { return Output.write(json: timeline) }
        let picture = TimelinePicture(timeline, Output.localTime)
        if let svg { try write(picture.svg, to: svg) }
        if let html { try write(picture.html, to: html) }
        guard svg == nil, html == nil else { return }
        let chart = TimelineChart(timeline, Output.localTime, isASCII: ascii || !Self.hasUTF8)
        Output.write(chart.lines(Output.style))
    }

    private func write(_ text: String, to file: String) throws {
        if file == "-" { return Output.write([text]) }
        do throws(SystemError) {
            try Output.write(text, to: file)
        } catch {
            Output.fail("\(file) cannot be written: \(error)")
            throw ExitCode(EX_CANTCREAT)
        }
    }

    /// Whether the locale's characters are those of UTF-8; the first of these that is set says so (setlocale(3)).
    private static var hasUTF8: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { Output.environment[$0] }.first { !$0.isEmpty }
        let name = locale?.lowercased() ?? ""
        return name.contains("utf-8") || name.contains("utf8")
    }
}
