// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Synchronization

/// Writes a line for each change, for `dialtone watch` and `dialtone history --follow`, until something ends it.
final class WatchStream: Sendable {
    /// What was told of the history, and is gone on with.
    struct Told: Sendable {
        fileprivate var story: HistoryStory
        /// The sequence of the last event that was told, if any was.
        fileprivate var last: Int?
        /// When that was told of the agent which came last.
        fileprivate var agentTime: Timestamp?

        init(_ story: HistoryStory, after last: Int?, agentAt agentTime: Timestamp?) {
            (self.story, self.last, self.agentTime) = (story, last, agentTime)
        }
    }

    private let names: [String]
    private let owner: Int?
    private let json: Bool
    private let pages: Mutex<DayPages>
    /// `nil` where nothing was told.
    private let told: Mutex<Told?>
    private let after: Int?
    /// Whether the history goes on; else the present state comes first.
    private let goesOn: Bool

    /// - Parameters:
    ///   - names: the connections; none for all, and the network.
    ///   - pages: the days that were written so far.
    ///   - told: what of the history was written; `nil` to begin with the present state.
    init(names: [String], owner: Int?, json: Bool, pages: DayPages, following told: Told? = nil) {
        (self.names, self.owner, self.json) = (names, owner, json)
        self.pages = Mutex(pages)
        self.told = Mutex(told)
        after = told?.last
        goesOn = told != nil
    }

    /// Writes until the agent refuses, or what it says makes no sense.
    func run() async throws {
        // A connection of the socket for each stream: one holds its connection until it ends.
        try await withThrowingTaskGroup(of: Void.self) { group in
            if names.isEmpty, owner == nil {
                group.addTask { try await self.watchPath(to: nil) }
            }
            group.addTask { try await self.watchConnections() }
            // Neither ends by itself; what fails one, the agent's return does not mend.
            try await group.next()
            group.cancelAll()
        }
    }

    /// Writes what becomes of the path to a host, or of the network's; goes on when the agent is back.
    func watchPath(to target: NetworkAPI.Target?, called subject: String = "network") async throws {
        var (isKnown, isThere, pause) = (false, true, RetryPause())
        // Otherwise the stream of the connections says it.
        let tellsOfAgent = target != nil
        while true {
            do throws(DialtoneError) {
                // The path to a host comes when its name is resolved.
                let timeout = target == nil ? DialtoneClient.defaultTimeout : nil
                let replies = DialtoneClient().stream(
                    NetworkAPI.MonitorPath.self, .init(target: target), timeout: timeout)
                for try await reply in replies {
                    if tellsOfAgent, !isThere { write(agentIsThere: true) }
                    defer { (isKnown, isThere, pause) = (true, true, RetryPause()) }
                    if goesOn, !isKnown { continue }
                    if json {
                        Output.write(json: reply)
                    } else {
                        write(WatchLine(path: reply.path, of: subject, changes: reply.changes, at: .now()))
                    }
                }
            } catch {
                guard isKnown || goesOn, error.isPassing else { throw error }
                if tellsOfAgent, isThere { write(agentIsThere: false) }
                isThere = false
            }
            try await pause.wait()
        }
    }

    private func watchConnections() async throws {
        // It told the history a moment ago.
        var isThere: Bool? = goesOn ? true : nil
        var isFirst = true
        let events = DialtoneClient().connectionEvents(names: names.isEmpty ? nil : names, owner: owner, after: after)
        for try await event in events {
            switch event {
            case .agentLost(let error):
                // One that was not there in the first place is an error, as for every other command.
                guard isThere != nil else { throw error }
                isThere = false
                write(agentIsThere: false)
            case .reply(let reply):
                if isThere == false { write(agentIsThere: true) }
                try await write(reply, isFirst: isFirst)
                (isThere, isFirst) = (true, false)
            }
        }
    }

    private func write(agentIsThere isThere: Bool) {
        let line = WatchLine(agentIsThere: isThere, at: .now())
        if json { Output.fail("the agent is \(line.text)") } else { write(line) }
    }

    private func write(_ reply: ConnectionsAPI.Monitor.Reply, isFirst: Bool) async throws {
        if json {
            // What is no event is how things stand, which is known at first.
            if !goesOn || !isFirst || reply.event != nil { Output.write(json: reply) }
        } else if let event = reply.event {
            if goesOn {
                tell(.init(event: event, uptime: BootClock.now()))
            } else {
                write(WatchLine(event, for: Output.reader))
            }
        } else if !goesOn {
            if reply.kind == .gap { write(WatchLine(gapAt: .now())) }
            for connection in reply.connections { write(WatchLine(connection, at: .now(), for: Output.reader)) }
        } else if reply.kind == .gap {
            do {
                try await catchUp()
            } catch {
                // An agent that goes again has a gap again when it is back.
                guard (error as? DialtoneError)?.isPassing == true else { throw error }
            }
        }
    }

    /// Tells what happened that the agent has no event of any more: the history has it.
    private func catchUp() async throws {
        // Of all connections: that any was heard of shows that the agent was there. The story picks those it tells of.
        let parameters = ConnectionsAPI.History.Parameters(owner: owner)
        var newest = 0
        for try await reply in DialtoneClient().history(parameters) {
            newest = max(newest, reply.event?.sequence ?? 0)
            // The network's changes come by a stream of their own.
            if reply.event != nil || reply.agent != nil { tell(reply) }
        }
        // An agent without its state numbers events from the beginning.
        told.withLock { told in
            if let last = told?.last { told?.last = min(last, newest) }
        }
    }

    /// Tells what happened in the words of the history, unless it was told.
    private func tell(_ reply: ConnectionsAPI.History.Reply) {
        let entry = told.withLock { told -> HistoryStory.Entry? in
            if let sequence = reply.event?.sequence {
                if let last = told?.last, sequence <= last { return nil }
                told?.last = sequence
            }
            if let time = reply.agent?.time {
                if let last = told?.agentTime, time <= last { return nil }
                told?.agentTime = time
            }
            return told?.story.entry(reply)
        }
        guard let entry else { return }
        pages.withLock { Output.write($0.lines(entry, Output.style)) }
    }

    private func write(_ line: WatchLine) {
        pages.withLock { Output.write($0.lines(line, Output.style)) }
    }
}
