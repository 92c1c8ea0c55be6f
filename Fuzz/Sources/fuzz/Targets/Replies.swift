// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneAPI
@testable internal import DialtoneClient
@testable internal import DialtonePresentation
@testable internal import DialtoneVarlink

extension FuzzTarget {
    /// What whoever listens on the agent's socket replies to a client, and what of it is shown to a person.
    static let replies = FuzzTarget(name: "replies") { bytes in
        let kind = Int(bytes.first ?? 0) % (readers.count + 1)
        let messages = bytes.dropFirst()
        if kind < readers.count { return readers[kind](Array(messages)) }
        let localTime = LocalTime(day: { "\($0)" }, clock: { "\($0)" })
        var story = HistoryStory(localTime, for: someone)
        var pages = DayPages(localTime)
        var entries: [ConnectionsAPI.History.Reply] = []
        for message in messages.split(separator: 0) {
            guard case .success(let entry, _) = try? VarlinkReply<ConnectionsAPI.History.Reply>(Array(message)) else {
                continue
            }
            if let told = story.entry(entry) { _ = pages.lines(told, style) }
            entries.append(entry)
        }
        let timeline = Timeline(
            entries, since: Timestamp(milliseconds: now.milliseconds - 86_400_000), until: now, now: now,
            uptime: .milliseconds(messages.count), hasNetwork: true, for: someone)
        _ = TimelineChart(timeline, localTime, isASCII: false).lines(style)
        _ = TimelinePicture(timeline, localTime).html
        _ = story.summary(now: now, uptime: .milliseconds(messages.count), style)
    }

    private static let readers: [@Sendable ([UInt8]) -> Void] = [
        reader(of: ConnectionsAPI.List.self) { reply in
            _ = ConnectionTable(reply.connections, now: now, for: someone).lines(narrow)
            for connection in reply.connections {
                _ = FieldTemplate("{name} {security.version}")?.text(of: connection)
            }
        },
        reader(of: NetworkAPI.GetPath.self) { reply in
            _ = StatusScreen(path: reply.path, connections: [], now: now).lines(style)
            _ = PathText.check(reply.path, target: "a.example", without: "eth0")
        },
        reader(of: NetworkAPI.MonitorPath.self) { reply in
            _ = WatchLine(path: reply.path, of: "network", changes: reply.changes, at: now).lines(style) {
                $0.description
            }
        },
        reader(of: NetworkAPI.Explain.self) { _ = ExplanationScreen($0, target: "a.example").lines(style) },
        reader(of: NetworkAPI.ListInterfaces.self),
        reader(of: ConnectionsAPI.Monitor.self) { reply in
            for connection in reply.connections { _ = WatchLine(connection, at: now, for: someone) }
            _ = reply.event.map { WatchLine($0, for: someone).lines(style) { $0.description } }
        },
        reader(of: ConnectionsAPI.History.self),
        reader(of: ConnectionsAPI.Open.self), reader(of: ConnectionsAPI.Take.self),
        reader(of: ConnectionsAPI.Adopt.self), reader(of: ConnectionsAPI.Park.self),
        reader(of: ConnectionsAPI.KeepAlive.self), reader(of: ServiceAPI.GetInfo.self),
        reader(of: ServiceAPI.GetInterfaceDescription.self),
        reader(of: ConnectionsAPI.Metrics.self) { reply in
            _ = (MetricsText(reply).text(.openMetrics), MetricsText(reply).text(.prometheus))
        },
    ]

    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let style = Style(hasColour: true)
    private static let narrow = Style(hasColour: true, width: 30)
    private static let someone = Reader(user: 1000)

    private static func reader<M: VarlinkMethod>(
        of method: M.Type, _ show: @escaping @Sendable (M.Reply) -> Void = { _ in }
    ) -> @Sendable ([UInt8]) -> Void {
        { message in
            switch try? VarlinkReply<M.Reply>(message) {
            case .success(let reply, _): show(reply)
            case .failure(let failure):
                let error = DialtoneError.refused(method: M.name, failure)
                _ = (error.description, error.isPermissionDenied)
            case nil: break
            }
        }
    }
}
