// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneNetworkPath
package import DialtoneVarlink

/// The network and the connections over time, by the history: what was up from when to when, and why not.
package struct Timeline: Hashable, Sendable {
    /// What was the case for some time. The raw values are what `--json` has.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A socket stands, or packets leave.
        case up
        /// There is a network, and no socket: the server does not answer, or has not yet.
        case retrying
        /// No packet can leave.
        case noNetwork
        /// The agent did not run.
        case agentOff

        /// As people read it.
        var text: String {
            switch self {
            case .up: "up"
            case .retrying: "retrying"
            case .noNetwork: "no network"
            case .agentOff: "agent off"
            }
        }

        /// Whether it counts as an outage.
        var isOutage: Bool { self == .retrying || self == .noNetwork }
    }

    /// A time in which one thing was the case.
    package struct Span: Hashable, Sendable {
        package internal(set) var kind: Kind
        package internal(set) var begin: Timestamp
        package internal(set) var end: Timestamp
        /// The interface that packets left by, of the network's row.
        package internal(set) var interface: String?
        /// Why, where it was not up.
        package internal(set) var cause: String?

        /// How long it lasted.
        var lasting: Duration { end - begin }
    }

    /// The network, or a connection.
    package struct Row: Hashable, Sendable {
        package let name: String
        /// One after the other, with nothing between them of which nothing is known.
        package internal(set) var spans: [Span]
        /// How many outages there were; of a connection, as `dialtone history` counts them.
        package internal(set) var outages = 0
        /// How long it was down, all together.
        package internal(set) var down = Duration.zero
        /// How long the longest outage was.
        package internal(set) var longest = Duration.zero
        /// Why that one began.
        package internal(set) var longestCause: String?

        fileprivate init(name: String, spans: [Span]) {
            (self.name, self.spans) = (name, spans)
        }

        /// The network's, of which the history has no sums.
        fileprivate init(network spans: [Span]) {
            self.init(name: "network", spans: spans)
            let outages = spans.filter(\.kind.isOutage)
            self.outages = outages.count
            down = outages.reduce(.zero) { $0 + $1.lasting }
            let worst = outages.max { $0.lasting < $1.lasting }
            (longest, longestCause) = (worst?.lasting ?? .zero, worst?.cause)
        }

        /// The share of the time it was up, of that and of its outages; `nil` of neither. The first attempts of a new
        /// connection are no outage, and take nothing from it.
        package var uptime: Double? {
            let up = spans.reduce(Duration.zero) { $1.kind == .up ? $0 + $1.lasting : $0 }
            return up + down > .zero ? up / (up + down) : nil
        }
    }

    /// From when on it is shown.
    package let since: Timestamp
    /// Up to when.
    package let until: Timestamp
    /// The network; `nil` where nothing is known of it, or connections were asked for by name.
    package private(set) var network: Row?
    /// The connections, by name.
    package private(set) var connections: [Row] = []

    /// The interfaces that packets left by, in the order in which they first did.
    package private(set) var interfaces: [String] = []
    /// Since when something is kept of all rows, where that is not all of the time that is shown.
    package private(set) var keptSince: Timestamp?

    /// All rows, the network first.
    package var rows: [Row] { (network.map { [$0] } ?? []) + connections }

    /// A picture of what the history has.
    ///
    /// - Parameters:
    ///   - entries: all that it has, the oldest first; what was before `since` says how things stood then.
    ///   - uptime: how long the machine has been up at `now`, its sleep included.
    ///   - hasNetwork: whether the network is shown.
    ///   - names: the connections that are shown; none for all.
    package init(
        _ entries: [ConnectionsAPI.History.Reply], since: Timestamp, until: Timestamp, now: Timestamp,
        uptime: Duration?, hasNetwork: Bool, for reader: Reader = Reader(), names: Set<String> = []
    ) {
        self.since = since
        self.until = until
        let end = min(until, now)
        var drawing = TimelineDrawing(for: reader, names: names)
        let steady = SteadyTimes(entries, now: now, uptime: uptime)
        for (time, entry) in steady { drawing.add(entry, at: time) }
        drawing.end(at: end)
        let networkSpans = hasNetwork ? Self.cut(drawing.network, since, end) : []
        if !networkSpans.isEmpty { network = Row(network: networkSpans) }
        for case let name? in networkSpans.map(\.interface) where !interfaces.contains(name) { interfaces.append(name) }
        let dropped = entries.compactMap(\.dropped).filter { entry in
            entry.part == .connections || (hasNetwork && entry.part == .network)
        }
        keptSince = dropped.map(\.until).max().flatMap { $0 > since ? min($0, end) : nil }
        var story = HistoryStory(
            LocalTime(day: { _ in "" }, clock: { _ in "" }), for: reader, since: since, until: until,
            names: names)
        for entry in steady.moved { _ = story.entry(entry) }
        let figures = story.figures(now: now, uptime: uptime)
        connections = drawing.connections.sorted { $0.key < $1.key }.compactMap { name, spans in
            var row = Row(name: name, spans: Self.cut(spans, since, end))
            guard !row.spans.isEmpty else { return nil }
            if let figures = figures[name] {
                (row.outages, row.down, row.longest) = (figures.count, figures.down, figures.longest)
                row.longestCause = figures.cause
            }
            return row
        }
    }

    /// What of the spans lies in the time that is shown.
    private static func cut(_ spans: [Span], _ since: Timestamp, _ until: Timestamp) -> [Span] {
        spans.compactMap { span in
            var span = span
            span.begin = max(span.begin, since)
            span.end = min(span.end, until)
            return span.begin < span.end ? span : nil
        }
    }
}

extension Timeline: VarlinkWritable {
    /// Writes its fields, for `--json`.
    package func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("since", since)
        fields.put("until", until)
        if let keptSince { fields.put("keptSince", keptSince) }
        if let network { fields.put("network", network) }
        fields.put("connections", connections)
    }
}

extension Timeline.Row: VarlinkWritable {
    /// Writes its fields.
    package func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("name", name)
        if let uptime { fields.put("uptime", uptime) }
        fields.put("outages", outages)
        fields.put("downMilliseconds", down)
        fields.put("longestMilliseconds", longest)
        if let longestCause { fields.put("longestCause", longestCause) }
        fields.put("spans", spans)
    }
}

extension Timeline.Span: VarlinkWritable {
    /// Writes its fields.
    package func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("kind", kind.rawValue)
        fields.put("begin", begin)
        fields.put("end", end)
        if let interface { fields.put("interface", interface) }
        if let cause { fields.put("cause", cause) }
    }
}
